//! Alternate versions of kernels of original code objects. Each is loaded into its own executable when its
//! kernel is dispatched for the first time.

use super::code::LoadedKernel;
use super::load::{Entry, find_kernel, with_reader};
use super::runtime::{RUNTIME, Runtime};
use crate::HsaError;
use flipwave_codeobj::CodeObject;
use hsa_sys::{
    HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, HSA_PROFILE_FULL, hsa_executable_t,
    hsa_loaded_code_object_t,
};
use std::ptr;

/// A loaded alternate version of a kernel.
#[derive(Debug)]
pub struct Alternate {
    pub entry: Entry,
    _executable: Executable,
}

/// An executable of the tools library, destroyed on drop. Keeps the code object alive, because the
/// runtime's list of loaded code for debuggers refers to its bytes.
#[derive(Debug)]
struct Executable {
    handle: hsa_executable_t,
    _object: CodeObject,
}

impl Drop for Executable {
    fn drop(&mut self) {
        if let Some(runtime) = RUNTIME.get() {
            // SAFETY: created by `load_object`, and none of its kernels runs any more.
            let _ = unsafe { (runtime.core.hsa_executable_destroy_fn)(self.handle) };
        }
    }
}

impl Alternate {
    /// Gets an alternate version of a kernel from the interceptor and loads it.
    pub fn load(runtime: &Runtime, kernel: &LoadedKernel) -> Option<Alternate> {
        let object =
            runtime.interceptor.load_alternate(kernel.code, &kernel.original, &kernel.name)?;
        let loaded = Alternate::load_object(runtime, kernel, object);
        loaded
            .map_err(|reason| {
                runtime.interceptor.alternate_rejected(kernel.code, &kernel.name, &reason);
            })
            .ok()
    }

    fn load_object(
        runtime: &Runtime,
        kernel: &LoadedKernel,
        object: CodeObject,
    ) -> Result<Alternate, HsaError> {
        let core = &runtime.core;
        let original = &kernel.original.kernels()[kernel.index];
        let mut handle = hsa_executable_t::default();
        // SAFETY: `handle` outlives the call, which writes to it.
        let status = unsafe {
            (core.hsa_executable_create_alt_fn)(
                HSA_PROFILE_FULL,
                HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                ptr::null(),
                &mut handle,
            )
        };
        HsaError::check("hsa_executable_create_alt", status)?;
        let executable = Executable { handle, _object: object.clone() };
        let mut loaded = hsa_loaded_code_object_t::default();
        let status = with_reader(runtime, object.bytes(), |reader| {
            // SAFETY: executable and reader are valid handles; options may be null.
            unsafe {
                (core.hsa_executable_load_agent_code_object_fn)(
                    handle,
                    kernel.gpu,
                    reader,
                    ptr::null(),
                    &mut loaded,
                )
            }
        });
        HsaError::check("hsa_executable_load_agent_code_object", status)?;
        // SAFETY: the executable is a valid handle; options may be null.
        let status = unsafe { (core.hsa_executable_freeze_fn)(handle, ptr::null()) };
        HsaError::check("hsa_executable_freeze", status)?;
        let descriptor = find_kernel(core, handle, &original.symbol, kernel.gpu)?;
        let old = &original.descriptor;
        let new = object.kernel(&original.symbol).map_or(old, |kernel| &kernel.descriptor);
        let (old_size, new_size) = (old.private_segment_fixed_size, new.private_segment_fixed_size);
        let entry = Entry {
            descriptor,
            bias: descriptor.0.wrapping_sub(new.address),
            extra_private_bytes: new_size.saturating_sub(old_size),
        };
        Ok(Alternate { entry, _executable: executable })
    }
}
