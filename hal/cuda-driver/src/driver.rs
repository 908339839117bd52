//! The driver and its devices.

use crate::functions::{CAPABILITY_MAJOR, CAPABILITY_MINOR, DeviceHandle, Functions};
use crate::{Capability, CudaError, OpenError, library};
use std::ffi::{CStr, c_char, c_int};
use std::fmt;

/// Size of the buffer for the name of a device, in bytes.
const NAME_BYTES: usize = 256;

/// Version of CUDA that a driver supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverVersion {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUDA {}.{}", self.major, self.minor)
    }
}

/// A device of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its name.
    pub name: String,
    /// Its compute capability.
    pub capability: Capability,
    pub(crate) handle: DeviceHandle,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (compute capability {})", self.name, self.capability)
    }
}

/// NVIDIA's driver, initialized in this process.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    pub(crate) functions: Functions,
}

impl Driver {
    /// Opens and initializes the driver.
    ///
    /// # Errors
    /// [`OpenError`] if there is no driver, or it finds no GPU.
    pub fn open() -> Result<Driver, OpenError> {
        let functions = library::open()?;
        // SAFETY: `cuInit` may be called any number of times.
        functions.check("cuInit", unsafe { (functions.cuInit)(0) })?;
        Ok(Driver { functions })
    }

    /// Version of CUDA that the driver supports.
    ///
    /// # Errors
    /// [`CudaError`].
    pub fn version(&self) -> Result<DriverVersion, CudaError> {
        let version = self.number("cuDriverGetVersion", |version| {
            // SAFETY: `version` outlives the call, which writes one number.
            unsafe { (self.functions.cuDriverGetVersion)(version) }
        })?;
        let version = u32::try_from(version).unwrap_or_default();
        Ok(DriverVersion { major: version / 1000, minor: version % 1000 / 10 })
    }

    /// The devices, by their numbers.
    ///
    /// # Errors
    /// [`CudaError`].
    pub fn devices(&self) -> Result<Vec<DeviceInfo>, CudaError> {
        let count = self.number("cuDeviceGetCount", |count| {
            // SAFETY: `count` outlives the call, which writes one number.
            unsafe { (self.functions.cuDeviceGetCount)(count) }
        })?;
        (0..count).map(|number| self.device(number)).collect()
    }

    fn device(&self, number: c_int) -> Result<DeviceInfo, CudaError> {
        let functions = &self.functions;
        let handle = self.number("cuDeviceGet", |handle| {
            // SAFETY: `handle` outlives the call, which writes one handle.
            unsafe { (functions.cuDeviceGet)(handle, number) }
        })?;
        let mut name = [0u8; NAME_BYTES];
        // SAFETY: the buffer has this size, in which the call writes a string that ends with a zero.
        let status = unsafe {
            let buffer = name.as_mut_ptr().cast::<c_char>();
            (functions.cuDeviceGetName)(buffer, NAME_BYTES as c_int, handle)
        };
        functions.check("cuDeviceGetName", status)?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        let attribute = |attribute| {
            let value = self.number("cuDeviceGetAttribute", |value| {
                // SAFETY: `value` outlives the call, which writes one number.
                unsafe { (functions.cuDeviceGetAttribute)(value, attribute, handle) }
            });
            value.map(|value| u32::try_from(value).unwrap_or_default())
        };
        let (major, minor) = (attribute(CAPABILITY_MAJOR)?, attribute(CAPABILITY_MINOR)?);
        let name = name.to_string_lossy().into_owned();
        Ok(DeviceInfo { name, capability: Capability { major, minor }, handle })
    }

    /// The number that a call writes.
    fn number(
        &self,
        call: &'static str,
        query: impl FnOnce(*mut c_int) -> crate::functions::Status,
    ) -> Result<c_int, CudaError> {
        let mut number = 0;
        let status = query(&mut number);
        self.functions.check(call, status).map(|()| number)
    }
}
