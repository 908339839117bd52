//! Calls of the runtime's loader.

use super::runtime::Runtime;
use crate::HsaError;
use flipwave_device::Address;
use hsa_sys::{
    CoreApiTable, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, HSA_STATUS_SUCCESS, hsa_agent_t,
    hsa_code_object_reader_t, hsa_executable_symbol_t, hsa_executable_t, hsa_status_t,
};
use std::ffi::CString;

/// A loaded version of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub descriptor: Address,
    /// Memory address minus ELF virtual address.
    pub bias: u64,
    /// Private memory of a work-item in addition to the original version's, in bytes.
    pub extra_private_bytes: u32,
}

/// Calls `use_reader` with a temporary reader of `bytes`.
pub fn with_reader(
    runtime: &Runtime,
    bytes: &[u8],
    use_reader: impl FnOnce(hsa_code_object_reader_t) -> hsa_status_t,
) -> hsa_status_t {
    let mut reader = hsa_code_object_reader_t::default();
    let create = runtime.core.hsa_code_object_reader_create_from_memory_fn;
    // SAFETY: the bytes outlive the executable, and so the reader.
    let status = unsafe { create(bytes.as_ptr().cast(), bytes.len(), &mut reader) };
    if status != HSA_STATUS_SUCCESS {
        return status;
    }
    let status = use_reader(reader);
    // SAFETY: created above and destroyed once. A failure leaks the reader.
    let _ = unsafe { (runtime.core.hsa_code_object_reader_destroy_fn)(reader) };
    status
}

/// Returns the address of the descriptor with a symbol in a frozen executable.
pub fn find_kernel(
    core: &CoreApiTable,
    executable: hsa_executable_t,
    symbol: &str,
    agent: hsa_agent_t,
) -> Result<Address, HsaError> {
    let name = CString::new(symbol).unwrap_or_default();
    let mut found = hsa_executable_symbol_t::default();
    // SAFETY: the name is NUL-terminated; the name, the agent and `found` outlive the call; the
    // executable is a valid handle.
    let status = unsafe {
        (core.hsa_executable_get_symbol_by_name_fn)(executable, name.as_ptr(), &agent, &mut found)
    };
    HsaError::check("hsa_executable_get_symbol_by_name", status)?;
    let mut address = 0u64;
    // SAFETY: this attribute has 64 bits.
    let status = unsafe {
        (core.hsa_executable_symbol_get_info_fn)(
            found,
            HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
            (&raw mut address).cast(),
        )
    };
    HsaError::check("hsa_executable_symbol_get_info", status)?;
    Ok(Address(address))
}
