//! Handles, enumerations and structures.

use std::ffi::c_void;

/// Declares handles: 64 bits that mean something to the runtime.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            /// What the runtime knows it by; 0 for none.
            pub handle: u64,
        }
    )*};
}

handles! {
    /// A processor.
    hsa_agent_t;
    /// A signal.
    hsa_signal_t;
    /// Code that is loaded together.
    hsa_executable_t;
    /// A code object in an executable.
    hsa_loaded_code_object_t;
    /// Where a code object is read from.
    hsa_code_object_reader_t;
    /// A symbol of an executable.
    hsa_executable_symbol_t;
    /// An instruction set.
    hsa_isa_t;
    /// Memory to allocate from.
    hsa_amd_memory_pool_t;
}

/// How a call ended.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct hsa_status_t(pub u32);

/// The call was executed.
pub const HSA_STATUS_SUCCESS: hsa_status_t = hsa_status_t(0);
/// A callback asks for no more.
pub const HSA_STATUS_INFO_BREAK: hsa_status_t = hsa_status_t(1);
/// An error without a name.
pub const HSA_STATUS_ERROR: hsa_status_t = hsa_status_t(0x1000);
/// No memory, or nothing else of what is needed.
pub const HSA_STATUS_ERROR_OUT_OF_RESOURCES: hsa_status_t = hsa_status_t(0x1008);
/// A wave has stopped with an exception, such as a trap.
pub const HSA_STATUS_ERROR_EXCEPTION: hsa_status_t = hsa_status_t(0x1016);
/// An access outside of an aperture, or a misaligned one.
pub const HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: hsa_status_t = hsa_status_t(41);
/// Bytes that are no instruction.
pub const HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION: hsa_status_t = hsa_status_t(42);
/// An access to memory that is not there.
pub const HSA_STATUS_ERROR_MEMORY_FAULT: hsa_status_t = hsa_status_t(43);

/// A signal's value.
pub type hsa_signal_value_t = i64;

/// What a signal's value is compared for: it is less.
pub const HSA_SIGNAL_CONDITION_LT: u32 = 2;
/// Waiting gives the processor away.
pub const HSA_WAIT_STATE_BLOCKED: u32 = 0;

/// `hsa_agent_info_t`: the name, `gfx90a`; 64 bytes.
pub const HSA_AGENT_INFO_NAME: u32 = 0;
/// `hsa_agent_info_t`: the most packets of a queue; 32 bits.
pub const HSA_AGENT_INFO_QUEUE_MAX_SIZE: u32 = 14;
/// `hsa_agent_info_t`: the kind of processor; 32 bits.
pub const HSA_AGENT_INFO_DEVICE: u32 = 17;
/// A GPU.
pub const HSA_DEVICE_TYPE_GPU: u32 = 1;
/// A CPU.
pub const HSA_DEVICE_TYPE_CPU: u32 = 0;

/// `hsa_isa_info_t`: bytes of the name; 32 bits.
pub const HSA_ISA_INFO_NAME_LENGTH: u32 = 0;
/// `hsa_isa_info_t`: the name.
pub const HSA_ISA_INFO_NAME: u32 = 1;

/// `hsa_amd_memory_pool_info_t`: the segment; 32 bits.
pub const HSA_AMD_MEMORY_POOL_INFO_SEGMENT: u32 = 0;
/// `hsa_amd_memory_pool_info_t`: what sets a global pool apart; 32 bits.
pub const HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS: u32 = 1;
/// `hsa_amd_memory_pool_info_t`: whether one may allocate from it; a bool.
pub const HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED: u32 = 5;
/// Memory that all can reach.
pub const HSA_AMD_SEGMENT_GLOBAL: u32 = 0;
/// A pool for kernel arguments.
pub const HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT: u32 = 1;
/// A pool whose writes are seen when a kernel ends.
pub const HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED: u32 = 4;

/// Several may submit to a queue.
pub const HSA_QUEUE_TYPE_MULTI: u32 = 0;

/// `hsa_profile_t`: GPUs have the base profile or, with the host's addresses, the full one.
pub const HSA_PROFILE_FULL: u32 = 1;
/// `hsa_default_float_rounding_mode_t`: what the code says.
pub const HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT: u32 = 0;
/// `hsa_executable_symbol_info_t`: the address of a kernel's descriptor; 64 bits.
pub const HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT: u32 = 22;

/// `hsa_amd_event_type_t`: an access to memory that is not there.
pub const HSA_AMD_GPU_MEMORY_FAULT_EVENT: u32 = 0;
/// Why memory was not there: it may only be read.
pub const HSA_AMD_MEMORY_FAULT_READ_ONLY: u32 = 1 << 1;

/// A queue, as applications see it.
#[repr(C)]
#[derive(Debug)]
pub struct hsa_queue_t {
    /// `hsa_queue_type32_t`.
    pub kind: u32,
    /// Bits of what it takes.
    pub features: u32,
    /// Its ring of packets.
    pub base_address: *mut c_void,
    /// To be told of each packet.
    pub doorbell_signal: hsa_signal_t,
    /// Packets of the ring, a power of two.
    pub size: u32,
    /// Nothing.
    pub reserved1: u32,
    /// Its number.
    pub id: u64,
}

/// An event of a GPU.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hsa_amd_event_t {
    /// `hsa_amd_event_type_t`; the rest is there for [`HSA_AMD_GPU_MEMORY_FAULT_EVENT`].
    pub event_type: u32,
    /// What happened.
    pub memory_fault: hsa_amd_gpu_memory_fault_info_t,
}

/// An access to memory that is not there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hsa_amd_gpu_memory_fault_info_t {
    /// The GPU.
    pub agent: hsa_agent_t,
    /// The page.
    pub virtual_address: u64,
    /// Bits of why.
    pub fault_reason_mask: u32,
}

/// Is told of the errors of a queue.
pub type queue_callback =
    unsafe extern "C" fn(status: hsa_status_t, source: *mut hsa_queue_t, data: *mut c_void);
/// Is told of a signal's value; returns whether it wants to be told again.
pub type hsa_amd_signal_handler =
    unsafe extern "C" fn(value: hsa_signal_value_t, argument: *mut c_void) -> bool;
/// Is told of an event.
pub type hsa_amd_system_event_callback_t =
    unsafe extern "C" fn(event: *const hsa_amd_event_t, data: *mut c_void) -> hsa_status_t;
/// Puts packets into the queue that an intercepted one leads to.
pub type hsa_amd_queue_intercept_packet_writer =
    unsafe extern "C" fn(packets: *const c_void, count: u64);
/// Is shown packets on their way into a queue.
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

    /// The numbers are those of clang 22 for the headers of ROCm 5.2.3.
    #[test]
    fn structures_are_those_of_the_headers() {
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
