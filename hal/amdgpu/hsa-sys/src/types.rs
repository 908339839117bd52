//! Handles, constants and structures.

use std::ffi::c_void;

/// Declares handles: opaque 64-bit values of the runtime.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            /// The opaque value; 0 for none.
            pub handle: u64,
        }
    )*};
}

handles! {
    /// An agent: a CPU or GPU.
    hsa_agent_t;
    /// A signal.
    hsa_signal_t;
    /// An executable: code objects loaded together.
    hsa_executable_t;
    /// A code object in an executable.
    hsa_loaded_code_object_t;
    /// A reader of a code object.
    hsa_code_object_reader_t;
    /// A symbol of an executable.
    hsa_executable_symbol_t;
    /// An instruction set.
    hsa_isa_t;
    /// A memory pool.
    hsa_amd_memory_pool_t;
}

/// The result of a call.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct hsa_status_t(pub u32);

/// Success.
pub const HSA_STATUS_SUCCESS: hsa_status_t = hsa_status_t(0);
/// Returned by a callback to stop an iteration.
pub const HSA_STATUS_INFO_BREAK: hsa_status_t = hsa_status_t(1);
/// Generic error.
pub const HSA_STATUS_ERROR: hsa_status_t = hsa_status_t(0x1000);
/// Memory or another resource is exhausted.
pub const HSA_STATUS_ERROR_OUT_OF_RESOURCES: hsa_status_t = hsa_status_t(0x1008);
/// A wave raised an exception, such as a trap.
pub const HSA_STATUS_ERROR_EXCEPTION: hsa_status_t = hsa_status_t(0x1016);
/// An access outside an aperture, or a misaligned access.
pub const HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: hsa_status_t = hsa_status_t(41);
/// An illegal instruction.
pub const HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION: hsa_status_t = hsa_status_t(42);
/// An access to unmapped memory.
pub const HSA_STATUS_ERROR_MEMORY_FAULT: hsa_status_t = hsa_status_t(43);

/// A signal's value.
pub type hsa_signal_value_t = i64;

/// `hsa_signal_condition_t`: the signal's value is less than the given value.
pub const HSA_SIGNAL_CONDITION_LT: u32 = 2;
/// `hsa_wait_state_t`: the waiting thread may be descheduled.
pub const HSA_WAIT_STATE_BLOCKED: u32 = 0;

/// `hsa_agent_info_t`: name, such as `gfx90a`; 64 bytes.
pub const HSA_AGENT_INFO_NAME: u32 = 0;
/// `hsa_agent_info_t`: maximum size of a queue, in packets; 32 bits.
pub const HSA_AGENT_INFO_QUEUE_MAX_SIZE: u32 = 14;
/// `hsa_agent_info_t`: device type; 32 bits.
pub const HSA_AGENT_INFO_DEVICE: u32 = 17;
/// `hsa_device_type_t`: GPU.
pub const HSA_DEVICE_TYPE_GPU: u32 = 1;
/// `hsa_device_type_t`: CPU.
pub const HSA_DEVICE_TYPE_CPU: u32 = 0;

/// `hsa_isa_info_t`: length of the name, in bytes; 32 bits.
pub const HSA_ISA_INFO_NAME_LENGTH: u32 = 0;
/// `hsa_isa_info_t`: name.
pub const HSA_ISA_INFO_NAME: u32 = 1;

/// `hsa_amd_memory_pool_info_t`: segment; 32 bits.
pub const HSA_AMD_MEMORY_POOL_INFO_SEGMENT: u32 = 0;
/// `hsa_amd_memory_pool_info_t`: flags of a global pool; 32 bits.
pub const HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS: u32 = 1;
/// `hsa_amd_memory_pool_info_t`: the pool permits allocation; a bool.
pub const HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED: u32 = 5;
/// `hsa_amd_segment_t`: global memory.
pub const HSA_AMD_SEGMENT_GLOBAL: u32 = 0;
/// Global pool flag: for kernel arguments.
pub const HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT: u32 = 1;
/// Global pool flag: coarse-grained; writes become visible when a kernel ends.
pub const HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED: u32 = 4;

/// `hsa_queue_type_t`: several threads may submit packets.
pub const HSA_QUEUE_TYPE_MULTI: u32 = 0;

/// `hsa_profile_t`: full profile, for GPUs that share the host's address space.
pub const HSA_PROFILE_FULL: u32 = 1;
/// `hsa_default_float_rounding_mode_t`: the mode that the code specifies.
pub const HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT: u32 = 0;
/// `hsa_executable_symbol_info_t`: address of a kernel's descriptor; 64 bits.
pub const HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT: u32 = 22;

/// `hsa_amd_event_type_t`: memory fault of a GPU.
pub const HSA_AMD_GPU_MEMORY_FAULT_EVENT: u32 = 0;
/// Reason of a memory fault: a write to a read-only page.
pub const HSA_AMD_MEMORY_FAULT_READ_ONLY: u32 = 1 << 1;

/// A queue: the part visible to applications.
#[repr(C)]
#[derive(Debug)]
pub struct hsa_queue_t {
    /// `hsa_queue_type32_t`.
    pub kind: u32,
    /// Bit mask of supported packet types.
    pub features: u32,
    /// Address of the packet ring.
    pub base_address: *mut c_void,
    /// Doorbell: set to a packet's index to submit it.
    pub doorbell_signal: hsa_signal_t,
    /// Size of the ring in packets, a power of two.
    pub size: u32,
    /// Reserved.
    pub reserved1: u32,
    /// Queue ID.
    pub id: u64,
}

/// A system event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hsa_amd_event_t {
    /// `hsa_amd_event_type_t`.
    pub event_type: u32,
    /// The fault; valid for [`HSA_AMD_GPU_MEMORY_FAULT_EVENT`].
    pub memory_fault: hsa_amd_gpu_memory_fault_info_t,
}

/// A memory fault of a GPU.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hsa_amd_gpu_memory_fault_info_t {
    /// The GPU.
    pub agent: hsa_agent_t,
    /// Address of the page.
    pub virtual_address: u64,
    /// Bit mask of reasons.
    pub fault_reason_mask: u32,
}

/// Callback for errors of a queue.
pub type queue_callback =
    unsafe extern "C" fn(status: hsa_status_t, source: *mut hsa_queue_t, data: *mut c_void);
/// Callback for a signal's value; returns `true` to be called again.
pub type hsa_amd_signal_handler =
    unsafe extern "C" fn(value: hsa_signal_value_t, argument: *mut c_void) -> bool;
/// Callback for a system event.
pub type hsa_amd_system_event_callback_t =
    unsafe extern "C" fn(event: *const hsa_amd_event_t, data: *mut c_void) -> hsa_status_t;
/// Writes packets to the hardware queue of an intercepted queue.
pub type hsa_amd_queue_intercept_packet_writer =
    unsafe extern "C" fn(packets: *const c_void, count: u64);
/// Callback for packets submitted to an intercepted queue.
pub type hsa_amd_queue_intercept_handler = unsafe extern "C" fn(
    packets: *const c_void,
    count: u64,
    index: u64,
    data: *mut c_void,
    writer: hsa_amd_queue_intercept_packet_writer,
);

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    /// The numbers come from clang 22 with the headers of ROCm 5.2.3.
    #[test]
    fn structure_layouts_equal_the_headers() {
        assert_eq!(size_of::<hsa_queue_t>(), 40);
        assert_eq!(offset_of!(hsa_queue_t, base_address), 8);
        assert_eq!(offset_of!(hsa_queue_t, doorbell_signal), 16);
        assert_eq!(offset_of!(hsa_queue_t, size), 24);
        assert_eq!(offset_of!(hsa_queue_t, id), 32);
        assert_eq!(size_of::<hsa_amd_event_t>(), 32);
        let fault = offset_of!(hsa_amd_event_t, memory_fault);
        assert_eq!(fault + offset_of!(hsa_amd_gpu_memory_fault_info_t, agent), 8);
        assert_eq!(fault + offset_of!(hsa_amd_gpu_memory_fault_info_t, virtual_address), 16);
        assert_eq!(fault + offset_of!(hsa_amd_gpu_memory_fault_info_t, fault_reason_mask), 24);
    }
}
