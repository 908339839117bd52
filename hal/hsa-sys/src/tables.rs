//! The tables through which the runtime calls its own functions, and in which tools put theirs
//! (`hsa_api_trace.h`).

use crate::functions::signatures::*;
use crate::types::*;
use std::ffi::{c_int, c_void};

/// An entry that Flipwave does not use.
type Unused = usize;

/// The version of a table.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiTableVersion {
    /// Tables with other ones are something else.
    pub major_id: u32,
    /// The size in bytes: later runtimes have more entries.
    pub minor_id: u32,
    /// Nothing.
    pub step_id: u32,
    /// Nothing.
    pub reserved: u32,
}

/// The tables.
#[repr(C)]
#[derive(Debug)]
pub struct HsaApiTable {
    /// This table's version.
    pub version: ApiTableVersion,
    /// HSA's functions.
    pub core: *mut CoreApiTable,
    /// AMD's functions.
    pub amd_ext: *mut AmdExtTable,
}

/// The major version of all tables here.
pub const HSA_API_TABLE_MAJOR_VERSION: u32 = 1;

/// Gives a signal a value, which says nothing of other memory.
pub type hsa_signal_store_relaxed = hsa_signal_store_screlease;
/// Makes a queue whose packets are shown to tools; otherwise as [`hsa_queue_create`].
pub type hsa_amd_queue_intercept_create = hsa_queue_create;
/// Registers who is shown the packets of such a queue.
pub type hsa_amd_queue_intercept_register = unsafe extern "C" fn(
    *mut hsa_queue_t,
    hsa_amd_queue_intercept_handler,
    *mut c_void,
) -> hsa_status_t;
/// Registers who is told when a signal's value fits: `hsa_signal_condition_t` and the value.
pub type hsa_amd_signal_async_handler = unsafe extern "C" fn(
    hsa_signal_t,
    u32,
    hsa_signal_value_t,
    hsa_amd_signal_handler,
    *mut c_void,
) -> hsa_status_t;
/// Reads a code object from a file.
pub type hsa_code_object_reader_create_from_file =
    unsafe extern "C" fn(c_int, *mut hsa_code_object_reader_t) -> hsa_status_t;

/// HSA's functions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each entry is the function of its name")]
pub struct CoreApiTable {
    pub version: ApiTableVersion,
    unused0: [Unused; 7],
    pub hsa_queue_create_fn: hsa_queue_create,
    unused8: [Unused; 1],
    pub hsa_queue_destroy_fn: hsa_queue_destroy,
    unused10: [Unused; 25],
    pub hsa_memory_copy_fn: hsa_memory_copy,
    unused36: [Unused; 1],
    pub hsa_signal_create_fn: hsa_signal_create,
    pub hsa_signal_destroy_fn: hsa_signal_destroy,
    unused39: [Unused; 2],
    pub hsa_signal_store_relaxed_fn: hsa_signal_store_relaxed,
    pub hsa_signal_store_screlease_fn: hsa_signal_store_screlease,
    unused43: [Unused; 41],
    pub hsa_executable_destroy_fn: hsa_executable_destroy,
    unused85: [Unused; 1],
    pub hsa_executable_freeze_fn: hsa_executable_freeze,
    unused87: [Unused; 6],
    pub hsa_executable_symbol_get_info_fn: hsa_executable_symbol_get_info,
    unused94: [Unused; 21],
    pub hsa_code_object_reader_create_from_file_fn: hsa_code_object_reader_create_from_file,
    pub hsa_code_object_reader_create_from_memory_fn: hsa_code_object_reader_create_from_memory,
    pub hsa_code_object_reader_destroy_fn: hsa_code_object_reader_destroy,
    unused118: [Unused; 2],
    pub hsa_executable_load_agent_code_object_fn: hsa_executable_load_agent_code_object,
    unused121: [Unused; 1],
    pub hsa_executable_get_symbol_by_name_fn: hsa_executable_get_symbol_by_name,
    unused123: [Unused; 2],
}

/// AMD's functions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each entry is the function of its name")]
pub struct AmdExtTable {
    pub version: ApiTableVersion,
    unused0: [Unused; 7],
    pub hsa_amd_signal_async_handler_fn: hsa_amd_signal_async_handler,
    unused8: [Unused; 26],
    pub hsa_amd_register_system_event_handler_fn: hsa_amd_register_system_event_handler,
    pub hsa_amd_queue_intercept_create_fn: hsa_amd_queue_intercept_create,
    pub hsa_amd_queue_intercept_register_fn: hsa_amd_queue_intercept_register,
}

impl HsaApiTable {
    /// Whether the tables have all entries that are used here.
    ///
    /// # Safety
    /// The tables are the runtime's.
    pub unsafe fn is_known(&self) -> bool {
        let is = |version: ApiTableVersion, size: usize| {
            version.major_id == HSA_API_TABLE_MAJOR_VERSION && version.minor_id as usize >= size
        };
        is(self.version, size_of::<HsaApiTable>())
            // SAFETY: every table begins with its version.
            && is(unsafe { *self.core.cast() }, size_of::<CoreApiTable>())
            // SAFETY: as above.
            && is(unsafe { *self.amd_ext.cast() }, size_of::<AmdExtTable>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Indices are those of clang 19 for `hsa_api_trace.h` of ROCm 5.2.3.
    #[test]
    fn entries_are_where_the_header_has_them() {
        macro_rules! check {
            ($table:ty: $($entry:ident $index:literal,)*) => {$(
                let place = offset_of!($table, $entry);
                assert_eq!(place, 16 + 8 * $index, stringify!($entry));
            )*};
        }
        check!(CoreApiTable:
            hsa_queue_create_fn 7,
            hsa_queue_destroy_fn 9,
            hsa_memory_copy_fn 35,
            hsa_signal_create_fn 37,
            hsa_signal_destroy_fn 38,
            hsa_signal_store_relaxed_fn 41,
            hsa_signal_store_screlease_fn 42,
            hsa_executable_destroy_fn 84,
            hsa_executable_freeze_fn 86,
            hsa_executable_symbol_get_info_fn 93,
            hsa_code_object_reader_create_from_file_fn 115,
            hsa_code_object_reader_create_from_memory_fn 116,
            hsa_code_object_reader_destroy_fn 117,
            hsa_executable_load_agent_code_object_fn 120,
            hsa_executable_get_symbol_by_name_fn 122,
        );
        check!(AmdExtTable:
            hsa_amd_signal_async_handler_fn 7,
            hsa_amd_register_system_event_handler_fn 34,
            hsa_amd_queue_intercept_create_fn 35,
            hsa_amd_queue_intercept_register_fn 36,
        );
        assert_eq!(size_of::<CoreApiTable>(), 1016);
        // The header's has eleven entries more.
        assert_eq!(size_of::<AmdExtTable>(), 400 - 8 * 11);
        assert_eq!([offset_of!(HsaApiTable, core), offset_of!(HsaApiTable, amd_ext)], [16, 24]);
    }
}
