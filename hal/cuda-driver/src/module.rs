//! Loaded modules.

use crate::context::Context;
use crate::functions::*;
use crate::{CudaError, without_debug_information};
use flipwave_device::{Address, DeviceError};
use flipwave_ptx::{Code, FunctionCode, FunctionKind};
use std::ffi::{CString, c_int, c_void};

/// Bytes of each log of the driver's compiler.
const LOG_BYTES: usize = 16 << 10;

/// A module that the driver has compiled.
#[derive(Debug)]
pub struct Module {
    handle: Handle,
    /// The module, as Flipwave reads it.
    pub tree: flipwave_ptx::Module,
    /// Its code.
    pub code: Code,
}

// SAFETY: modules belong to the process.
unsafe impl Send for Module {}

/// A kernel of a module.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    pub handle: Handle,
    pub code: &'a FunctionCode,
    /// Bytes of shared memory that the kernel declares.
    pub static_shared: u32,
}

impl Module {
    /// Compiles and loads a module.
    ///
    /// # Errors
    /// [`DeviceError::Load`] with the messages of the driver's compiler.
    pub fn load(context: &Context, module: &flipwave_ptx::Module) -> Result<Module, DeviceError> {
        let failed = |reason: String| DeviceError::Load(reason);
        let code = flipwave_ptx::resolve(module).map_err(|error| failed(error.to_string()))?;
        let text = CString::new(without_debug_information(module).to_string())
            .map_err(|_| failed("the module contains a zero byte".to_owned()))?;
        let functions = context.functions().map_err(|error| failed(error.to_string()))?;
        let mut logs = [vec![0u8; LOG_BYTES], vec![0u8; LOG_BYTES]];
        let options: [c_int; 4] = [INFO_LOG, INFO_LOG_BYTES, ERROR_LOG, ERROR_LOG_BYTES];
        let [info, errors] = &mut logs;
        let values: [*mut c_void; 4] = [
            info.as_mut_ptr().cast(),
            LOG_BYTES as *mut c_void,
            errors.as_mut_ptr().cast(),
            LOG_BYTES as *mut c_void,
        ];
        let mut handle = std::ptr::null_mut();
        // SAFETY: the text ends with a zero; options and values have four elements, as the driver documents them: the
        // logs have this size, and all outlive the call, which writes one handle.
        let status = unsafe {
            (functions.cuModuleLoadDataEx)(
                &mut handle,
                text.as_ptr().cast(),
                options.len() as u32,
                options.as_ptr(),
                values.as_ptr(),
            )
        };
        functions.check("cuModuleLoadDataEx", status).map_err(|error| {
            let [_, errors] = &logs;
            let log: Vec<u8> = errors.iter().copied().take_while(|byte| *byte != 0).collect();
            let log = String::from_utf8_lossy(&log);
            match log.trim() {
                "" => failed(error.to_string()),
                log => failed(format!("{error}; the driver's compiler wrote:\n{log}")),
            }
        })?;
        Ok(Module { handle, tree: module.clone(), code })
    }

    /// Address and size in bytes of a variable; `None` if the driver knows none of this name.
    pub fn variable(&self, context: &Context, name: &str) -> Option<(Address, u64)> {
        let functions = context.functions().ok()?;
        let name = CString::new(name).ok()?;
        let (mut address, mut bytes) = (0, 0usize);
        // SAFETY: the name ends with a zero; address and size outlive the call, which writes both.
        let status = unsafe {
            let (address, bytes) = (&raw mut address, &raw mut bytes);
            (functions.cuModuleGetGlobal_v2)(address, bytes, self.handle, name.as_ptr())
        };
        (status == Status(0)).then_some((Address(address), bytes as u64))
    }

    /// The kernel with a name.
    ///
    /// # Errors
    /// [`DeviceError::UnknownKernel`].
    pub fn kernel(&self, context: &Context, name: &str) -> Result<Kernel<'_>, DeviceError> {
        let mut kernels = self.code.functions.iter();
        let found = kernels
            .find(|function| function.kind == FunctionKind::Entry && *function.name == *name);
        let code = found.ok_or_else(|| DeviceError::UnknownKernel {
            wanted: name.to_owned(),
            present: self.code.kernels().map(|kernel| kernel.name.to_string()).collect(),
        })?;
        let internal = |error: CudaError| DeviceError::Internal(error.to_string());
        let functions = context.functions().map_err(internal)?;
        let name = CString::new(name).unwrap_or_default();
        let mut handle = std::ptr::null_mut();
        // SAFETY: the name ends with a zero; `handle` outlives the call, which writes one handle.
        let status =
            unsafe { (functions.cuModuleGetFunction)(&mut handle, self.handle, name.as_ptr()) };
        functions.check("cuModuleGetFunction", status).map_err(internal)?;
        let mut bytes = 0;
        // SAFETY: `bytes` outlives the call, which writes one number.
        let status =
            unsafe { (functions.cuFuncGetAttribute)(&mut bytes, STATIC_SHARED_BYTES, handle) };
        functions.check("cuFuncGetAttribute", status).map_err(internal)?;
        Ok(Kernel { handle, code, static_shared: u32::try_from(bytes).unwrap_or_default() })
    }
}
