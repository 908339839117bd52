//! The types of libhsakmt's interface that cross it in memory, as far as the runtime uses them
//! (`hsakmttypes.h` of ROCm 5.2, which packs to 4 bytes). Fields have the header's meaning and
//! units; flags are whole words here.

/// What a call answers, `HSAKMT_STATUS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// Done.
    Success = 0,
    /// No better word.
    Error = 1,
    /// A parameter that is none.
    InvalidParameter = 3,
    /// A handle that is none.
    InvalidHandle = 4,
    /// A node that is not there.
    InvalidNode = 5,
    /// No memory is left.
    NoMemory = 6,
    /// Nothing that this device has.
    NotSupported = 11,
    /// The time is over.
    WaitTimeout = 31,
    /// Memory that was not registered.
    MemoryNotRegistered = 36,
}

/// `HsaVersionInfo`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct VersionInfo {
    pub major: u32,
    pub minor: u32,
}

/// `HsaSystemProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct SystemProperties {
    pub nodes: u32,
    pub platform_oem: u32,
    pub platform_id: u32,
    pub platform_revision: u32,
}

/// `HsaNodeProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct NodeProperties {
    pub cpu_cores: u32,
    /// SIMDs.
    pub compute_cores: u32,
    pub memory_banks: u32,
    pub caches: u32,
    pub io_links: u32,
    pub cpu_core_id: u32,
    pub compute_core_id: u32,
    /// `HSA_CAPABILITY`.
    pub capability: u32,
    pub waves_per_simd: u32,
    pub lds_kib: u32,
    pub gds_kib: u32,
    pub wave_size: u32,
    pub shader_banks: u32,
    pub arrays: u32,
    pub units_per_array: u32,
    pub simds_per_unit: u32,
    pub scratch_slots_per_unit: u32,
    /// `HSA_ENGINE_ID`.
    pub engine: u32,
    pub vendor: u16,
    pub device: u16,
    pub location: u32,
    pub local_memory: u64,
    pub compute_clock_mhz: u32,
    pub cpu_clock_mhz: u32,
    pub render_minor: i32,
    /// UTF-16.
    pub marketing_name: [u16; 64],
    pub name: [u8; 64],
    pub engine_versions: u32,
    pub debug_properties: u64,
    pub hive: u64,
    pub sdma_engines: u32,
    pub sdma_xgmi_engines: u32,
    pub sdma_queues_per_engine: u8,
    pub compute_queues: u8,
    pub gws: u8,
    pub reserved: u8,
    pub domain: u32,
    pub unique_id: u64,
    pub vgpr_bytes_per_unit: u32,
    pub sgpr_bytes_per_unit: u32,
    pub reserved_end: [u8; 12],
}

/// `HSA_SVM_ATTRIBUTE`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct SvmAttribute {
    /// `HSA_SVM_ATTR_TYPE`.
    pub kind: u32,
    pub value: u32,
}

/// `HSA_HEAPTYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum HeapType {
    System = 0,
    FrameBufferPublic = 1,
    Lds = 4,
    Scratch = 5,
}

/// `HsaMemoryProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct MemoryProperties {
    pub heap: HeapType,
    pub bytes: u64,
    pub flags: u32,
    pub width_bits: u32,
    pub clock_mhz: u32,
    pub base: u64,
}

/// `HsaCacheProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct CacheProperties {
    pub processor: u32,
    pub level: u32,
    /// In KiB.
    pub size: u32,
    pub line_bytes: u32,
    pub lines_per_tag: u32,
    pub associativity: u32,
    pub latency_ns: u32,
    /// `HsaCacheType`.
    pub kind: u32,
    pub siblings: [u32; 256],
}

/// `HsaIoLinkProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct IoLinkProperties {
    pub kind: u32,
    pub version_major: u32,
    pub version_minor: u32,
    pub from: u32,
    pub to: u32,
    pub weight: u32,
    pub least_latency: u32,
    pub most_latency: u32,
    pub least_bandwidth: u32,
    pub most_bandwidth: u32,
    pub transfer_bytes: u32,
    pub flags: u32,
}

/// `HsaQueueResource`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct QueueResource {
    pub id: u64,
    pub doorbell: u64,
    pub write_pointer: u64,
    pub read_pointer: u64,
    pub error_reason: u64,
}

/// `HsaMemoryAccessFault`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct MemoryAccessFault {
    pub node: u32,
    pub address: u64,
    /// `HsaAccessAttributeFailure`.
    pub failure: u32,
    pub flags: u32,
}

/// `HsaEventDescriptor`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct EventDescriptor {
    pub kind: u32,
    pub node: u32,
    pub variable: u64,
    pub variable_bytes: u64,
}

/// `HsaEvent`, its data those of a memory fault.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct Event {
    pub id: u32,
    pub kind: u32,
    pub fault: MemoryAccessFault,
    pub hardware: [u64; 2],
    pub hardware_word: u32,
}

/// `HsaClockCounters`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct ClockCounters {
    pub gpu: u64,
    pub cpu: u64,
    pub system: u64,
    pub system_hz: u64,
}

/// `HsaGpuTileConfig`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct TileConfig {
    pub tiles: u64,
    pub macro_tiles: u64,
    pub tile_count: u32,
    pub macro_tile_count: u32,
    pub address_config: u32,
    pub banks: u32,
    pub ranks: u32,
    pub reserved: [u32; 7],
}

/// `HsaPointerInfo`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(4))]
pub struct PointerInfo {
    /// `HSA_POINTER_TYPE`.
    pub kind: u32,
    pub node: u32,
    pub flags: u32,
    pub cpu_address: u64,
    pub gpu_address: u64,
    pub bytes: u64,
    pub registered_nodes: u32,
    pub mapped_nodes: u32,
    pub registered_list: u64,
    pub mapped_list: u64,
    pub user_data: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that the C compiler gives for the header.
    #[test]
    fn types_have_the_size_that_the_runtime_expects() {
        assert_eq!(size_of::<SystemProperties>(), 16);
        assert_eq!(size_of::<NodeProperties>(), 356);
        assert_eq!(size_of::<Event>(), 48);
        assert_eq!(size_of::<EventDescriptor>(), 24);
        assert_eq!(size_of::<PointerInfo>(), 68);
        assert_eq!(size_of::<MemoryProperties>(), 32);
        assert_eq!(size_of::<CacheProperties>(), 32 + 4 * 256);
        assert_eq!(size_of::<IoLinkProperties>(), 48);
        assert_eq!(size_of::<QueueResource>(), 40);
        assert_eq!(size_of::<ClockCounters>(), 32);
        assert_eq!(size_of::<TileConfig>(), 64);
    }
}
