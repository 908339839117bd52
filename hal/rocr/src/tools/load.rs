//! What the runtime's loader is asked for.

use super::Tools;
use crate::HsaError;
use flipwave_device::Address;
use hsa_sys::{
    CoreApiTable, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, HSA_STATUS_SUCCESS, hsa_agent_t,
    hsa_code_object_reader_t, hsa_executable_symbol_t, hsa_executable_t, hsa_status_t,
};
use std::ffi::CString;

/// A version of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub descriptor: Address,
    /// What was added to ELF virtual addresses.
    pub bias: u64,
    /// Private bytes that it needs beyond those of the original.
    pub more_private: u32,
}

/// Gives a reader of these bytes to be used.
pub fn with_reader(
    tools: &Tools,
    bytes: &[u8],
    what: impl FnOnce(hsa_code_object_reader_t) -> hsa_status_t,
) -> hsa_status_t {
    let mut reader = hsa_code_object_reader_t::default();
    let create = tools.core.hsa_code_object_reader_create_from_memory_fn;
    // SAFETY: the bytes stay as long as the executable, and so longer than the reader.
    let status = unsafe { create(bytes.as_ptr().cast(), bytes.len(), &mut reader) };
    if status != HSA_STATUS_SUCCESS {
        return status;
    }
    let status = what(reader);
    // SAFETY: made above. A failure leaves it behind.
    let _ = unsafe { (tools.core.hsa_code_object_reader_destroy_fn)(reader) };
    status
}

/// Looks a kernel up in an executable that is ready.
pub fn find_kernel(
    core: &CoreApiTable,
    executable: hsa_executable_t,
    symbol: &str,
    agent: hsa_agent_t,
) -> Result<Address, HsaError> {
    let name = CString::new(symbol).unwrap_or_default();
    let mut found = hsa_executable_symbol_t::default();
    // SAFETY: the name ends with zero, and it, the agent and `found` outlive the call; the caller has
    // the executable from the runtime.
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
