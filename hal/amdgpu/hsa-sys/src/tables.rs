//! The API tables through which the runtime calls its functions, and in which tools replace them
//! (`hsa_api_trace.h`).

use crate::functions::signatures::*;
use crate::types::*;
use std::ffi::{c_int, c_void};

/// A table entry that Flipwave does not use.
type Unused = usize;

/// The version of a table.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiTableVersion {
    /// Incompatible tables have different major versions.
    pub major_id: u32,
    /// Size of the table in bytes: later runtimes have more entries.
    pub minor_id: u32,
    /// Unused.
    pub step_id: u32,
    /// Reserved.
    pub reserved: u32,
}

/// The root table, which points to the other tables.
#[repr(C)]
#[derive(Debug)]
pub struct HsaApiTable {
    /// The root table's version.
    pub version: ApiTableVersion,
    /// Core HSA functions.
    pub core: *mut CoreApiTable,
    /// AMD's extension functions, in an order that depends on the release: see
    /// [`HsaApiTable::known`].
    pub amd_ext: *mut ApiTableVersion,
}

/// Sets a signal's value with relaxed memory order.
pub type hsa_signal_store_relaxed = hsa_signal_store_screlease;
/// Waits like [`hsa_signal_wait_scacquire`], with relaxed memory order.
pub type hsa_signal_wait_relaxed = hsa_signal_wait_scacquire;
/// Creates a queue whose packets tools can intercept; otherwise like [`hsa_queue_create`].
pub type hsa_amd_queue_intercept_create = hsa_queue_create;
/// Registers the callback for packets of an intercepted queue.
pub type hsa_amd_queue_intercept_register = unsafe extern "C" fn(
    *mut hsa_queue_t,
    hsa_amd_queue_intercept_handler,
    *mut c_void,
) -> hsa_status_t;
/// Registers a callback for a signal: signal, `hsa_signal_condition_t`, value to compare with,
/// callback and its data.
pub type hsa_amd_signal_async_handler = unsafe extern "C" fn(
    hsa_signal_t,
    u32,
    hsa_signal_value_t,
    hsa_amd_signal_handler,
    *mut c_void,
) -> hsa_status_t;
/// Creates a reader of a code object in a file: file descriptor, destination.
pub type hsa_code_object_reader_create_from_file =
    unsafe extern "C" fn(c_int, *mut hsa_code_object_reader_t) -> hsa_status_t;

/// Core HSA functions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each entry is the function of its name")]
pub struct CoreApiTable {
    pub version: ApiTableVersion,
    pub hsa_init_fn: hsa_init,
    pub hsa_shut_down_fn: hsa_shut_down,
    unused2: [Unused; 5],
    pub hsa_queue_create_fn: hsa_queue_create,
    unused8: [Unused; 1],
    pub hsa_queue_destroy_fn: hsa_queue_destroy,
    unused10: [Unused; 25],
    pub hsa_memory_copy_fn: hsa_memory_copy,
    unused36: [Unused; 1],
    pub hsa_signal_create_fn: hsa_signal_create,
    pub hsa_signal_destroy_fn: hsa_signal_destroy,
    unused39: [Unused; 1],
    pub hsa_signal_load_scacquire_fn: hsa_signal_load_scacquire,
    pub hsa_signal_store_relaxed_fn: hsa_signal_store_relaxed,
    pub hsa_signal_store_screlease_fn: hsa_signal_store_screlease,
    pub hsa_signal_wait_relaxed_fn: hsa_signal_wait_relaxed,
    pub hsa_signal_wait_scacquire_fn: hsa_signal_wait_scacquire,
    unused45: [Unused; 39],
    pub hsa_executable_destroy_fn: hsa_executable_destroy,
    unused85: [Unused; 1],
    pub hsa_executable_freeze_fn: hsa_executable_freeze,
    unused87: [Unused; 6],
    pub hsa_executable_symbol_get_info_fn: hsa_executable_symbol_get_info,
    unused94: [Unused; 21],
    pub hsa_code_object_reader_create_from_file_fn: hsa_code_object_reader_create_from_file,
    pub hsa_code_object_reader_create_from_memory_fn: hsa_code_object_reader_create_from_memory,
    pub hsa_code_object_reader_destroy_fn: hsa_code_object_reader_destroy,
    pub hsa_executable_create_alt_fn: hsa_executable_create_alt,
    unused119: [Unused; 1],
    pub hsa_executable_load_agent_code_object_fn: hsa_executable_load_agent_code_object,
    unused121: [Unused; 1],
    pub hsa_executable_get_symbol_by_name_fn: hsa_executable_get_symbol_by_name,
    unused123: [Unused; 2],
}

/// AMD's extension functions, with `BETWEEN` unused entries before the event handler's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct AmdExtTable<const BETWEEN: usize> {
    version: ApiTableVersion,
    unused0: [Unused; 7],
    hsa_amd_signal_async_handler_fn: hsa_amd_signal_async_handler,
    unused8: [Unused; BETWEEN],
    hsa_amd_register_system_event_handler_fn: hsa_amd_register_system_event_handler,
    hsa_amd_queue_intercept_create_fn: hsa_amd_queue_intercept_create,
    hsa_amd_queue_intercept_register_fn: hsa_amd_queue_intercept_register,
}

/// The table of ROCm 5.2 to 5.5.
type AmdExtTable5_2 = AmdExtTable<26>;
/// The table of ROCm 5.6 and later, with two more entries in between.
type AmdExtTable5_6 = AmdExtTable<28>;

impl<const BETWEEN: usize> AmdExtTable<BETWEEN> {
    /// The current functions, and the replaceable entry of `register_system_event_handler`.
    fn parts(&mut self) -> (AmdExtFunctions, &mut hsa_amd_register_system_event_handler) {
        let functions = AmdExtFunctions {
            hsa_amd_signal_async_handler_fn: self.hsa_amd_signal_async_handler_fn,
            hsa_amd_register_system_event_handler_fn: self.hsa_amd_register_system_event_handler_fn,
            hsa_amd_queue_intercept_create_fn: self.hsa_amd_queue_intercept_create_fn,
            hsa_amd_queue_intercept_register_fn: self.hsa_amd_queue_intercept_register_fn,
        };
        (functions, &mut self.hsa_amd_register_system_event_handler_fn)
    }
}

/// Number of entries in the table of ROCm 5.6, which changed the order without changing the version.
const ENTRIES_5_6: usize = 55;

/// AMD's extension functions, independent of their order in the table.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each is the function of its name")]
pub struct AmdExtFunctions {
    pub hsa_amd_signal_async_handler_fn: hsa_amd_signal_async_handler,
    pub hsa_amd_register_system_event_handler_fn: hsa_amd_register_system_event_handler,
    pub hsa_amd_queue_intercept_create_fn: hsa_amd_queue_intercept_create,
    pub hsa_amd_queue_intercept_register_fn: hsa_amd_queue_intercept_register,
}

/// Tables of a known version.
#[derive(Debug)]
pub struct KnownTables<'a> {
    /// Core HSA functions.
    pub core: &'a mut CoreApiTable,
    /// AMD's extension functions, as they are now.
    pub amd_ext: AmdExtFunctions,
    /// The table entry of `hsa_amd_register_system_event_handler`, to replace it.
    pub register_system_event_handler: &'a mut hsa_amd_register_system_event_handler,
}

impl HsaApiTable {
    /// Returns the tables if their version is known and they have all entries: the versions of ROCm
    /// 5.2 to 6.2, checked against their `hsa_api_trace.h`.
    ///
    /// # Safety
    /// The tables must be the runtime's, and no other code may access them during the borrow.
    pub unsafe fn known(&mut self) -> Option<KnownTables<'_>> {
        // SAFETY: every table begins with its version.
        let [core, amd_ext]: [ApiTableVersion; 2] =
            unsafe { [*self.core.cast(), *self.amd_ext.cast()] };
        let has_room = self.version.minor_id as usize >= size_of::<HsaApiTable>()
            && core.minor_id as usize >= size_of::<CoreApiTable>();
        let is_new = match [self.version, core, amd_ext].map(|version| version.major_id) {
            [1, 1, 1] => amd_ext.minor_id as usize >= AmdExtFunctions::bytes(ENTRIES_5_6),
            [2 | 3, 2, 2] => true,
            _ => return None,
        };
        let least = if is_new { size_of::<AmdExtTable5_6>() } else { size_of::<AmdExtTable5_2>() };
        if !has_room || (amd_ext.minor_id as usize) < least {
            return None;
        }
        // SAFETY: version and size identify a table with this order.
        let (amd_ext, register_system_event_handler) = unsafe {
            if is_new {
                (*self.amd_ext.cast::<AmdExtTable5_6>()).parts()
            } else {
                (*self.amd_ext.cast::<AmdExtTable5_2>()).parts()
            }
        };
        // SAFETY: the table is large enough, and all known versions have the same order.
        let core = unsafe { &mut *self.core };
        Some(KnownTables { core, amd_ext, register_system_event_handler })
    }
}

impl AmdExtFunctions {
    /// Size in bytes of a table with `entries` entries.
    const fn bytes(entries: usize) -> usize {
        size_of::<ApiTableVersion>() + entries * size_of::<Unused>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// The indices come from clang 22 with `hsa_api_trace.h` of ROCm 5.2.3, and from the order of
    /// entries in the headers of 5.6.0 to 6.2.4.
    #[test]
    fn entry_offsets_equal_the_headers() {
        macro_rules! check {
            ($table:ty: $($entry:ident $index:literal,)*) => {$(
                let offset = offset_of!($table, $entry);
                assert_eq!(offset, 16 + 8 * $index, stringify!($entry));
            )*};
        }
        check!(CoreApiTable:
            hsa_init_fn 0,
            hsa_shut_down_fn 1,
            hsa_queue_create_fn 7,
            hsa_queue_destroy_fn 9,
            hsa_memory_copy_fn 35,
            hsa_signal_create_fn 37,
            hsa_signal_destroy_fn 38,
            hsa_signal_load_scacquire_fn 40,
            hsa_signal_store_relaxed_fn 41,
            hsa_signal_store_screlease_fn 42,
            hsa_signal_wait_relaxed_fn 43,
            hsa_signal_wait_scacquire_fn 44,
            hsa_executable_destroy_fn 84,
            hsa_executable_freeze_fn 86,
            hsa_executable_symbol_get_info_fn 93,
            hsa_code_object_reader_create_from_file_fn 115,
            hsa_code_object_reader_create_from_memory_fn 116,
            hsa_code_object_reader_destroy_fn 117,
            hsa_executable_create_alt_fn 118,
            hsa_executable_load_agent_code_object_fn 120,
            hsa_executable_get_symbol_by_name_fn 122,
        );
        check!(AmdExtTable5_2:
            hsa_amd_signal_async_handler_fn 7,
            hsa_amd_register_system_event_handler_fn 34,
            hsa_amd_queue_intercept_create_fn 35,
            hsa_amd_queue_intercept_register_fn 36,
        );
        check!(AmdExtTable5_6:
            hsa_amd_signal_async_handler_fn 7,
            hsa_amd_register_system_event_handler_fn 36,
            hsa_amd_queue_intercept_create_fn 37,
            hsa_amd_queue_intercept_register_fn 38,
        );
        assert_eq!(size_of::<CoreApiTable>(), 1016);
        assert_eq!([offset_of!(HsaApiTable, core), offset_of!(HsaApiTable, amd_ext)], [16, 24]);
    }

    /// Builds tables with these major versions and this number of AMD extension functions. Returns
    /// the index of the entry that is used as `hsa_amd_queue_intercept_create`.
    fn index_of_queue_create(majors: [u32; 3], entries: usize) -> Option<usize> {
        let version = |major_id, bytes: usize| {
            u64::from(major_id) | u64::try_from(bytes).expect("a size") << 32
        };
        // The value of an entry is its index plus 1000, because a function pointer must not be null.
        let table = |major, entries: usize| -> Vec<u64> {
            let head = [version(major, AmdExtFunctions::bytes(entries)), 0];
            head.into_iter().chain((0..entries as u64).map(|index| 1000 + index)).collect()
        };
        let (mut core, mut amd_ext) = (table(majors[1], 125), table(majors[2], entries));
        let mut root = HsaApiTable {
            version: ApiTableVersion { major_id: majors[0], minor_id: 56, step_id: 0, reserved: 0 },
            core: core.as_mut_ptr().cast(),
            amd_ext: amd_ext.as_mut_ptr().cast(),
        };
        // SAFETY: the tables have these sizes, and no entry is called.
        let known = unsafe { root.known() };
        known.map(|known| known.amd_ext.hsa_amd_queue_intercept_create_fn as usize - 1000)
    }

    /// Versions and numbers of entries come from the releases' headers.
    #[test]
    fn entry_order_matches_the_release() {
        for (release, majors, entries, expected) in [
            ("5.2.3", [1, 1, 1], 48, Some(35)),
            ("5.5.0", [1, 1, 1], 51, Some(35)),
            ("5.6.0", [1, 1, 1], 55, Some(37)),
            ("6.0.0", [2, 2, 2], 67, Some(37)),
            ("6.1.0", [3, 2, 2], 68, Some(37)),
            ("6.2.4", [3, 2, 2], 70, Some(37)),
            ("with a later version", [4, 3, 3], 90, None),
            ("with too few entries", [1, 1, 1], 30, None),
            ("with too few entries", [3, 2, 2], 38, None),
        ] {
            assert_eq!(index_of_queue_create(majors, entries), expected, "ROCm {release}");
        }
    }
}
