//! Other versions of kernels whose code object was loaded as it is: each is loaded, as an executable of
//! its own, when its kernel is dispatched for the first time.

use super::code::LoadedKernel;
use super::load::{Entry, find_kernel, with_reader};
use super::{TOOLS, Tools};
use crate::HsaError;
use flipwave_codeobj::CodeObject;
use hsa_sys::{
    HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, HSA_PROFILE_FULL, hsa_executable_t,
    hsa_loaded_code_object_t,
};
use std::ptr;

/// Another version of a kernel.
#[derive(Debug)]
pub struct Beside {
    pub entry: Entry,
    _executable: Executable,
}

/// An executable of ours, which is given up when it is dropped. The runtime lists its bytes for
/// debuggers, so that they stay as long.
#[derive(Debug)]
struct Executable {
    handle: hsa_executable_t,
    _object: CodeObject,
}

impl Drop for Executable {
    fn drop(&mut self) {
        if let Some(tools) = TOOLS.get() {
            // SAFETY: made by `load`, and no kernel of it runs any more.
            let _ = unsafe { (tools.core.hsa_executable_destroy_fn)(self.handle) };
        }
    }
}

impl Beside {
    /// Asks for another version of a kernel, and loads it.
    pub fn load(tools: &Tools, kernel: &LoadedKernel) -> Option<Beside> {
        let object = tools.interceptor.beside(kernel.code, &kernel.original, &kernel.name)?;
        let loaded = Beside::of(tools, kernel, object);
        loaded
            .map_err(|reason| {
                tools.interceptor.refused_beside(kernel.code, &kernel.name, &reason);
            })
            .ok()
    }

    fn of(tools: &Tools, kernel: &LoadedKernel, object: CodeObject) -> Result<Beside, HsaError> {
        let core = &tools.core;
        let before = &kernel.original.kernels()[kernel.index];
        let mut handle = hsa_executable_t::default();
        // SAFETY: the place outlives the call.
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
        let status = with_reader(tools, object.bytes(), |reader| {
            // SAFETY: an executable and a reader that live, and no options.
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
        // SAFETY: an executable that lives, and no options.
        let status = unsafe { (core.hsa_executable_freeze_fn)(handle, ptr::null()) };
        HsaError::check("hsa_executable_freeze", status)?;
        let descriptor = find_kernel(core, handle, &before.symbol, kernel.gpu)?;
        let new = object.kernel(&before.symbol).map_or(&before.descriptor, |own| &own.descriptor);
        let private = |own: &flipwave_codeobj::Descriptor| own.private_segment_fixed_size;
        let entry = Entry {
            descriptor,
            bias: descriptor.0.wrapping_sub(new.address),
            more_private: private(new).saturating_sub(private(&before.descriptor)),
        };
        Ok(Beside { entry, _executable: executable })
    }
}
