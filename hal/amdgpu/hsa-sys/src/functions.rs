//! Functions of the runtime.

use crate::types::*;
use std::ffi::{CStr, c_char, c_int, c_void};

/// Declares functions: a type for each, and [`Functions`] with all of them.
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        /// The type of each function.
        pub mod signatures {
            use super::*;
            $($(#[$doc])* pub type $name = unsafe extern "C" fn($($argument),*) $(-> $result)?;)*
        }

        /// The functions of the runtime.
        #[derive(Clone, Copy, Debug)]
        pub struct Functions {
            $($(#[$doc])* pub $name: signatures::$name,)*
        }

        impl Functions {
            /// Looks for all functions; fails with the first that is not found.
            ///
            /// # Safety
            /// `find` gives functions of these names that are as `hsa.h` and `hsa_ext_amd.h` say.
            pub(crate) unsafe fn find<E>(
                mut find: impl FnMut(&'static CStr) -> Result<*mut c_void, E>,
            ) -> Result<Functions, E> {
                Ok(Functions {$(
                    $name: {
                        const NAME: &str = concat!(stringify!($name), "\0");
                        let name = CStr::from_bytes_with_nul(NAME.as_bytes()).unwrap_or_default();
                        let address = find(name)?;
                        // SAFETY: the address of this function, the caller promises.
                        unsafe { std::mem::transmute::<*mut c_void, signatures::$name>(address) }
                    },
                )*})
            }
        }
    };
}

functions! {
    /// Starts the runtime, or counts one more user.
    fn hsa_init() -> hsa_status_t;
    /// One user less.
    fn hsa_shut_down() -> hsa_status_t;
    /// What a status means.
    fn hsa_status_string(hsa_status_t, *mut *const c_char) -> hsa_status_t;
    /// Shows all processors.
    fn hsa_iterate_agents(
        unsafe extern "C" fn(hsa_agent_t, *mut c_void) -> hsa_status_t,
        *mut c_void,
    ) -> hsa_status_t;
    /// Tells of a processor: `hsa_agent_info_t` and where it goes.
    fn hsa_agent_get_info(hsa_agent_t, u32, *mut c_void) -> hsa_status_t;
    /// Shows the instruction sets of a processor, the best first.
    fn hsa_agent_iterate_isas(
        hsa_agent_t,
        unsafe extern "C" fn(hsa_isa_t, *mut c_void) -> hsa_status_t,
        *mut c_void,
    ) -> hsa_status_t;
    /// Tells of an instruction set: `hsa_isa_info_t` and where it goes.
    fn hsa_isa_get_info_alt(hsa_isa_t, u32, *mut c_void) -> hsa_status_t;
    /// Makes a queue: packets, `hsa_queue_type32_t`, who is told of errors, private and group
    /// bytes.
    fn hsa_queue_create(
        hsa_agent_t,
        u32,
        u32,
        Option<queue_callback>,
        *mut c_void,
        u32,
        u32,
        *mut *mut hsa_queue_t,
    ) -> hsa_status_t;
    /// Gives a queue up.
    fn hsa_queue_destroy(*mut hsa_queue_t) -> hsa_status_t;
    /// Takes places in a queue; gives the number of the first.
    fn hsa_queue_add_write_index_screlease(*const hsa_queue_t, u64) -> u64;
    /// The number of the packet that is taken next.
    fn hsa_queue_load_read_index_scacquire(*const hsa_queue_t) -> u64;
    /// Copies between any two places that the host or a GPU can reach: to, from, bytes.
    fn hsa_memory_copy(*mut c_void, *const c_void, usize) -> hsa_status_t;
    /// Makes a signal: its value, who waits for it.
    fn hsa_signal_create(
        hsa_signal_value_t,
        u32,
        *const hsa_agent_t,
        *mut hsa_signal_t,
    ) -> hsa_status_t;
    /// Gives a signal up.
    fn hsa_signal_destroy(hsa_signal_t) -> hsa_status_t;
    /// A signal's value.
    fn hsa_signal_load_scacquire(hsa_signal_t) -> hsa_signal_value_t;
    /// Gives a signal a value.
    fn hsa_signal_store_screlease(hsa_signal_t, hsa_signal_value_t);
    /// Waits for a signal: `hsa_signal_condition_t`, the value, ticks of the clock at most,
    /// `hsa_wait_state_t`. Gives a value that it had.
    fn hsa_signal_wait_scacquire(
        hsa_signal_t,
        u32,
        hsa_signal_value_t,
        u64,
        u32,
    ) -> hsa_signal_value_t;
    /// Makes an executable: `hsa_profile_t`, `hsa_default_float_rounding_mode_t`, options.
    fn hsa_executable_create_alt(
        u32,
        u32,
        *const c_char,
        *mut hsa_executable_t,
    ) -> hsa_status_t;
    /// Loads code, with options.
    fn hsa_executable_load_agent_code_object(
        hsa_executable_t,
        hsa_agent_t,
        hsa_code_object_reader_t,
        *const c_char,
        *mut hsa_loaded_code_object_t,
    ) -> hsa_status_t;
    /// Makes an executable ready, with options.
    fn hsa_executable_freeze(hsa_executable_t, *const c_char) -> hsa_status_t;
    /// Gives an executable up.
    fn hsa_executable_destroy(hsa_executable_t) -> hsa_status_t;
    /// Looks for a symbol.
    fn hsa_executable_get_symbol_by_name(
        hsa_executable_t,
        *const c_char,
        *const hsa_agent_t,
        *mut hsa_executable_symbol_t,
    ) -> hsa_status_t;
    /// Tells of a symbol: `hsa_executable_symbol_info_t` and where it goes.
    fn hsa_executable_symbol_get_info(
        hsa_executable_symbol_t,
        u32,
        *mut c_void,
    ) -> hsa_status_t;
    /// Reads a code object that stays where it is, of so many bytes.
    fn hsa_code_object_reader_create_from_memory(
        *const c_void,
        usize,
        *mut hsa_code_object_reader_t,
    ) -> hsa_status_t;
    /// Gives a reader up.
    fn hsa_code_object_reader_destroy(hsa_code_object_reader_t) -> hsa_status_t;
    /// Shows the pools of a processor.
    fn hsa_amd_agent_iterate_memory_pools(
        hsa_agent_t,
        unsafe extern "C" fn(hsa_amd_memory_pool_t, *mut c_void) -> hsa_status_t,
        *mut c_void,
    ) -> hsa_status_t;
    /// Tells of a pool: `hsa_amd_memory_pool_info_t` and where it goes.
    fn hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t, u32, *mut c_void) -> hsa_status_t;
    /// Allocates bytes; flags are 0.
    fn hsa_amd_memory_pool_allocate(
        hsa_amd_memory_pool_t,
        usize,
        u32,
        *mut *mut c_void,
    ) -> hsa_status_t;
    /// Gives an allocation back.
    fn hsa_amd_memory_pool_free(*mut c_void) -> hsa_status_t;
    /// Lets processors, so many, reach an allocation; flags are null.
    fn hsa_amd_agents_allow_access(
        u32,
        *const hsa_agent_t,
        *const u32,
        *const c_void,
    ) -> hsa_status_t;
    /// Lets processors, so many, all if none are named, reach memory of the host: where it is, its
    /// bytes, and where they find it.
    fn hsa_amd_memory_lock(
        *mut c_void,
        usize,
        *const hsa_agent_t,
        c_int,
        *mut *mut c_void,
    ) -> hsa_status_t;
    /// Ends that.
    fn hsa_amd_memory_unlock(*mut c_void) -> hsa_status_t;
    /// Copies by an engine for copies: to a place of a processor, from one, bytes; after so many
    /// signals, and a signal that is decremented at the end.
    fn hsa_amd_memory_async_copy(
        *mut c_void,
        hsa_agent_t,
        *const c_void,
        hsa_agent_t,
        usize,
        u32,
        *const hsa_signal_t,
        hsa_signal_t,
    ) -> hsa_status_t;
    /// Registers the one who is told of events.
    fn hsa_amd_register_system_event_handler(
        hsa_amd_system_event_callback_t,
        *mut c_void,
    ) -> hsa_status_t;
}
