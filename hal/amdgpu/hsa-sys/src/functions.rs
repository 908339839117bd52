//! Functions of the runtime.

use crate::types::*;
use std::ffi::{CStr, c_char, c_int, c_void};

/// Declares a type for each function, and the struct [`Functions`] with all of them.
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
            /// Looks up all functions. Returns the first error of `find`.
            ///
            /// # Safety
            /// `find` must return the function of the given name, with the signature declared in
            /// `hsa.h` or `hsa_ext_amd.h`.
            pub(crate) unsafe fn find<E>(
                mut find: impl FnMut(&'static CStr) -> Result<*mut c_void, E>,
            ) -> Result<Functions, E> {
                Ok(Functions {$(
                    $name: {
                        const NAME: &str = concat!(stringify!($name), "\0");
                        let name = CStr::from_bytes_with_nul(NAME.as_bytes()).unwrap_or_default();
                        let address = find(name)?;
                        // SAFETY: the caller guarantees that this is the function's address.
                        unsafe { std::mem::transmute::<*mut c_void, signatures::$name>(address) }
                    },
                )*})
            }
        }
    };
}

functions! {
    /// Increments the runtime's reference count, and initializes the runtime on the first call.
    fn hsa_init() -> hsa_status_t;
    /// Decrements the runtime's reference count, and shuts the runtime down at 0.
    fn hsa_shut_down() -> hsa_status_t;
    /// Returns the description of a status.
    fn hsa_status_string(hsa_status_t, *mut *const c_char) -> hsa_status_t;
    /// Calls a function for every agent.
    fn hsa_iterate_agents(
        unsafe extern "C" fn(hsa_agent_t, *mut c_void) -> hsa_status_t,
        *mut c_void,
    ) -> hsa_status_t;
    /// Queries an attribute of an agent: `hsa_agent_info_t`, destination.
    fn hsa_agent_get_info(hsa_agent_t, u32, *mut c_void) -> hsa_status_t;
    /// Calls a function for every instruction set of an agent, in order of decreasing performance.
    fn hsa_agent_iterate_isas(
        hsa_agent_t,
        unsafe extern "C" fn(hsa_isa_t, *mut c_void) -> hsa_status_t,
        *mut c_void,
    ) -> hsa_status_t;
    /// Queries an attribute of an instruction set: `hsa_isa_info_t`, destination.
    fn hsa_isa_get_info_alt(hsa_isa_t, u32, *mut c_void) -> hsa_status_t;
    /// Creates a queue: agent, size in packets, `hsa_queue_type32_t`, error callback with its data,
    /// private and group segment sizes in bytes, destination.
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
    /// Destroys a queue.
    fn hsa_queue_destroy(*mut hsa_queue_t) -> hsa_status_t;
    /// Adds to a queue's write index, which reserves packets. Returns the old index.
    fn hsa_queue_add_write_index_screlease(*const hsa_queue_t, u64) -> u64;
    /// Returns a queue's read index: the index of the next packet to execute.
    fn hsa_queue_load_read_index_scacquire(*const hsa_queue_t) -> u64;
    /// Copies memory accessible to the host or a GPU: destination, source, size in bytes.
    fn hsa_memory_copy(*mut c_void, *const c_void, usize) -> hsa_status_t;
    /// Creates a signal: initial value, number of consumers, consumers, destination.
    fn hsa_signal_create(
        hsa_signal_value_t,
        u32,
        *const hsa_agent_t,
        *mut hsa_signal_t,
    ) -> hsa_status_t;
    /// Destroys a signal.
    fn hsa_signal_destroy(hsa_signal_t) -> hsa_status_t;
    /// Returns a signal's value.
    fn hsa_signal_load_scacquire(hsa_signal_t) -> hsa_signal_value_t;
    /// Sets a signal's value.
    fn hsa_signal_store_screlease(hsa_signal_t, hsa_signal_value_t);
    /// Waits until a signal's value meets a condition: signal, `hsa_signal_condition_t`, value to
    /// compare with, timeout in clock ticks, `hsa_wait_state_t`. Returns the last value observed.
    fn hsa_signal_wait_scacquire(
        hsa_signal_t,
        u32,
        hsa_signal_value_t,
        u64,
        u32,
    ) -> hsa_signal_value_t;
    /// Creates an executable: `hsa_profile_t`, `hsa_default_float_rounding_mode_t`, options,
    /// destination.
    fn hsa_executable_create_alt(
        u32,
        u32,
        *const c_char,
        *mut hsa_executable_t,
    ) -> hsa_status_t;
    /// Loads a code object into an executable: executable, agent, reader, options, destination.
    fn hsa_executable_load_agent_code_object(
        hsa_executable_t,
        hsa_agent_t,
        hsa_code_object_reader_t,
        *const c_char,
        *mut hsa_loaded_code_object_t,
    ) -> hsa_status_t;
    /// Freezes an executable: executable, options. Afterwards its kernels can be dispatched.
    fn hsa_executable_freeze(hsa_executable_t, *const c_char) -> hsa_status_t;
    /// Destroys an executable.
    fn hsa_executable_destroy(hsa_executable_t) -> hsa_status_t;
    /// Looks up a symbol: executable, name, agent, destination.
    fn hsa_executable_get_symbol_by_name(
        hsa_executable_t,
        *const c_char,
        *const hsa_agent_t,
        *mut hsa_executable_symbol_t,
    ) -> hsa_status_t;
    /// Queries an attribute of a symbol: `hsa_executable_symbol_info_t`, destination.
    fn hsa_executable_symbol_get_info(
        hsa_executable_symbol_t,
        u32,
        *mut c_void,
    ) -> hsa_status_t;
    /// Creates a reader of a code object in memory: address, size in bytes, destination. The memory
    /// must outlive the reader.
    fn hsa_code_object_reader_create_from_memory(
        *const c_void,
        usize,
        *mut hsa_code_object_reader_t,
    ) -> hsa_status_t;
    /// Destroys a reader.
    fn hsa_code_object_reader_destroy(hsa_code_object_reader_t) -> hsa_status_t;
    /// Calls a function for every memory pool of an agent.
    fn hsa_amd_agent_iterate_memory_pools(
        hsa_agent_t,
        unsafe extern "C" fn(hsa_amd_memory_pool_t, *mut c_void) -> hsa_status_t,
        *mut c_void,
    ) -> hsa_status_t;
    /// Queries an attribute of a memory pool: `hsa_amd_memory_pool_info_t`, destination.
    fn hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t, u32, *mut c_void) -> hsa_status_t;
    /// Allocates memory: pool, size in bytes, flags (0), destination.
    fn hsa_amd_memory_pool_allocate(
        hsa_amd_memory_pool_t,
        usize,
        u32,
        *mut *mut c_void,
    ) -> hsa_status_t;
    /// Frees an allocation.
    fn hsa_amd_memory_pool_free(*mut c_void) -> hsa_status_t;
    /// Makes an allocation accessible to agents: number of agents, agents, flags (null), address.
    fn hsa_amd_agents_allow_access(
        u32,
        *const hsa_agent_t,
        *const u32,
        *const c_void,
    ) -> hsa_status_t;
    /// Pins host memory and makes it accessible to agents: address, size in bytes, agents (null for
    /// all), number of agents, destination of the agents' address.
    fn hsa_amd_memory_lock(
        *mut c_void,
        usize,
        *const hsa_agent_t,
        c_int,
        *mut *mut c_void,
    ) -> hsa_status_t;
    /// Unpins host memory.
    fn hsa_amd_memory_unlock(*mut c_void) -> hsa_status_t;
    /// Copies memory with a copy engine: destination and its agent, source and its agent, size in
    /// bytes, number of signals to wait for, those signals, completion signal (decremented).
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
    /// Registers a callback for system events.
    fn hsa_amd_register_system_event_handler(
        hsa_amd_system_event_callback_t,
        *mut c_void,
    ) -> hsa_status_t;
}
