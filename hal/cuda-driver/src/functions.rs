//! Functions of the driver. Names, types and numbers are those of NVIDIA's "CUDA Driver API" 12; functions with the
//! suffix `_v2` are those that its header `cuda.h` calls by the name without suffix.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Result of a call (`CUresult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub c_int);

/// A device (`CUdevice`).
pub type DeviceHandle = c_int;
/// Address in device memory (`CUdeviceptr`).
pub type DevicePointer = u64;
/// A context, module, function or stream, which the driver owns.
pub type Handle = *mut c_void;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `..._MINOR`.
pub const CAPABILITY_MAJOR: c_int = 75;
pub const CAPABILITY_MINOR: c_int = 76;
/// `CU_JIT_INFO_LOG_BUFFER`, `CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES` and those of errors.
pub const INFO_LOG: c_int = 3;
pub const INFO_LOG_BYTES: c_int = 4;
pub const ERROR_LOG: c_int = 5;
pub const ERROR_LOG_BYTES: c_int = 6;
/// `CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES`: static shared memory.
pub const STATIC_SHARED_BYTES: c_int = 1;
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
pub const MOST_DYNAMIC_SHARED_BYTES: c_int = 8;
/// `CU_LAUNCH_PARAM_END`, `..._BUFFER_POINTER` and `..._BUFFER_SIZE`.
pub const PARAMETERS_END: usize = 0;
pub const PARAMETERS_BUFFER: usize = 1;
pub const PARAMETERS_SIZE: usize = 2;
/// `CU_STREAM_NON_BLOCKING`.
pub const NON_BLOCKING: c_uint = 1;
/// `CU_MEMHOSTALLOC_PORTABLE` and `CU_MEMHOSTALLOC_DEVICEMAP`.
pub const PORTABLE: c_uint = 1;
pub const MAPPED: c_uint = 2;

/// Declares the struct [`Functions`] with the address of each function.
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ty),* $(,)?);)*) => {
        /// The functions of the driver.
        #[derive(Clone, Copy, Debug)]
        #[allow(non_snake_case, reason = "names are those of the documentation")]
        pub struct Functions {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($argument),*) -> Status,)*
        }

        impl Functions {
            /// Looks up all functions. Returns the first error of `find`.
            ///
            /// # Safety
            /// `find` returns the function of the given name, with the signature in `cuda.h`.
            pub unsafe fn find<E>(
                mut find: impl FnMut(&'static CStr) -> Result<*mut c_void, E>,
            ) -> Result<Functions, E> {
                Ok(Functions {$(
                    $name: {
                        const NAME: &str = concat!(stringify!($name), "\0");
                        let name = CStr::from_bytes_with_nul(NAME.as_bytes()).unwrap_or_default();
                        let address = find(name)?;
                        // SAFETY: the caller guarantees that this is the function's address.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) -> Status,
                            >(address)
                        }
                    },
                )*})
            }
        }
    };
}

functions! {
    /// Initializes the driver: flags, which are 0.
    fn cuInit(c_uint);
    /// Version of CUDA that the driver supports, as 1000 times the major plus 10 times the minor number.
    fn cuDriverGetVersion(*mut c_int);
    /// Name of an error, a static string.
    fn cuGetErrorName(Status, *mut *const c_char);
    /// Description of an error, a static string.
    fn cuGetErrorString(Status, *mut *const c_char);
    /// Number of devices.
    fn cuDeviceGetCount(*mut c_int);
    /// Device with a number.
    fn cuDeviceGet(*mut DeviceHandle, c_int);
    /// Name of a device: destination, its size in bytes.
    fn cuDeviceGetName(*mut c_char, c_int, DeviceHandle);
    /// Attribute of a device (`CUdevice_attribute`).
    fn cuDeviceGetAttribute(*mut c_int, c_int, DeviceHandle);
    /// Creates the primary context of a device, or counts another use of it.
    fn cuDevicePrimaryCtxRetain(*mut Handle, DeviceHandle);
    /// Ends a use of the primary context.
    fn cuDevicePrimaryCtxRelease_v2(DeviceHandle);
    /// Makes a context that of the calling thread.
    fn cuCtxSetCurrent(Handle);
    /// Compiles and loads a module: image, number of options (`CUjit_option`), options, values.
    fn cuModuleLoadDataEx(*mut Handle, *const c_void, c_uint, *const c_int, *const *mut c_void);
    /// Function of a module by name.
    fn cuModuleGetFunction(*mut Handle, Handle, *const c_char);
    /// Address and size of a variable of a module by name.
    fn cuModuleGetGlobal_v2(*mut DevicePointer, *mut usize, Handle, *const c_char);
    /// Attribute of a function (`CUfunction_attribute`).
    fn cuFuncGetAttribute(*mut c_int, c_int, Handle);
    /// Sets an attribute of a function.
    fn cuFuncSetAttribute(Handle, c_int, c_int);
    /// Allocates device memory.
    fn cuMemAlloc_v2(*mut DevicePointer, usize);
    /// Frees device memory.
    fn cuMemFree_v2(DevicePointer);
    /// Copies to device memory.
    fn cuMemcpyHtoD_v2(DevicePointer, *const c_void, usize);
    /// Copies from device memory.
    fn cuMemcpyDtoH_v2(*mut c_void, DevicePointer, usize);
    /// Fills device memory with a byte.
    fn cuMemsetD8_v2(DevicePointer, u8, usize);
    /// Allocates page-locked memory of the host: size, flags.
    fn cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    /// Address at which kernels access memory of the host.
    fn cuMemHostGetDevicePointer_v2(*mut DevicePointer, *mut c_void, c_uint);
    /// Creates a stream with flags.
    fn cuStreamCreate(*mut Handle, c_uint);
    /// Returns success if the work of a stream has ended.
    fn cuStreamQuery(Handle);
    /// Launches a kernel: function, blocks, threads of a block, bytes of dynamic shared memory, stream, addresses of
    /// the arguments or null, arguments in another form.
    fn cuLaunchKernel(
        Handle,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        Handle,
        *mut *mut c_void,
        *mut *mut c_void,
    );
}
