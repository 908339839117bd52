//! Arguments of the calls on `/dev/kfd` (`linux/kfd_ioctl.h`). Fields have the header's names,
//! meaning and units. A program may have been built with an older or a newer header: arguments grow
//! at their end, and fields that the program does not have are 0.

#![allow(non_snake_case, reason = "a test finds fields in the header by their names")]

/// A structure of plain numbers that a kernel header defines.
///
/// # Safety
/// Every bit pattern is a valid value, and the type has no padding.
pub unsafe trait Plain: Copy {}

/// Declares structures with their names in the header.
macro_rules! structures {
    ($($(#[$about:meta])* $name:ident = $header:literal { $($field:ident: $type:ty,)* })*) => {
        $(
            $(#[$about])*
            #[doc = concat!("\n\n`struct ", $header, "`.")]
            #[derive(Clone, Copy, Debug)]
            #[repr(C)]
            pub struct $name {
                $(pub $field: $type,)*
            }

            // SAFETY: numbers, and structures of numbers. The sizes add up, so that there is no
            // padding.
            unsafe impl Plain for $name {}
            const _: () = assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())*);
        )*

        /// All fields: structure, name, offset, size in bytes.
        #[cfg(test)]
        pub fn fields() -> Vec<(&'static str, &'static str, usize, usize)> {
            vec![
                $($((
                    $header,
                    stringify!($field),
                    std::mem::offset_of!($name, $field),
                    size_of::<$type>(),
                ),)*)*
            ]
        }
    };
}
pub(super) use structures;

structures! {
    /// Version of the driver interface.
    GetVersion = "kfd_ioctl_get_version_args" {
        major_version: u32,
        minor_version: u32,
    }

    /// Creation of a queue.
    CreateQueue = "kfd_ioctl_create_queue_args" {
        ring_base_address: u64,
        write_pointer_address: u64,
        read_pointer_address: u64,
        doorbell_offset: u64,
        ring_size: u32,
        gpu_id: u32,
        queue_type: u32,
        queue_percentage: u32,
        queue_priority: u32,
        queue_id: u32,
        eop_buffer_address: u64,
        eop_buffer_size: u64,
        ctx_save_restore_address: u64,
        ctx_save_restore_size: u32,
        ctl_stack_size: u32,
    }

    /// Destruction of a queue.
    DestroyQueue = "kfd_ioctl_destroy_queue_args" {
        queue_id: u32,
        pad: u32,
    }

    /// Change of a queue.
    UpdateQueue = "kfd_ioctl_update_queue_args" {
        ring_base_address: u64,
        queue_id: u32,
        ring_size: u32,
        queue_percentage: u32,
        queue_priority: u32,
    }

    /// Compute units that a queue may use.
    SetCuMask = "kfd_ioctl_set_cu_mask_args" {
        queue_id: u32,
        num_cu_mask: u32,
        cu_mask_ptr: u64,
    }

    /// Allocation of global wave sync (GWS) resources for a queue.
    AllocQueueGws = "kfd_ioctl_alloc_queue_gws_args" {
        queue_id: u32,
        num_gws: u32,
        first_gws: u32,
        pad: u32,
    }

    /// Unused memory of a GPU.
    GetAvailableMemory = "kfd_ioctl_get_available_memory_args" {
        available: u64,
        gpu_id: u32,
        pad: u32,
    }

    /// Current values of the clocks.
    GetClockCounters = "kfd_ioctl_get_clock_counters_args" {
        gpu_clock_counter: u64,
        cpu_clock_counter: u64,
        system_clock_counter: u64,
        system_clock_freq: u64,
        gpu_id: u32,
        pad: u32,
    }

    /// Address ranges of a GPU's memory types.
    ProcessDeviceApertures = "kfd_process_device_apertures" {
        lds_base: u64,
        lds_limit: u64,
        scratch_base: u64,
        scratch_limit: u64,
        gpuvm_base: u64,
        gpuvm_limit: u64,
        gpu_id: u32,
        pad: u32,
    }

    /// Apertures of all GPUs.
    GetProcessAperturesNew = "kfd_ioctl_get_process_apertures_new_args" {
        kfd_process_device_apertures_ptr: u64,
        num_of_nodes: u32,
        pad: u32,
    }

    /// Creation of an event.
    CreateEvent = "kfd_ioctl_create_event_args" {
        event_page_offset: u64,
        event_trigger_data: u32,
        event_type: u32,
        auto_reset: u32,
        node_id: u32,
        event_id: u32,
        event_slot_index: u32,
    }

    /// Destruction of an event.
    DestroyEvent = "kfd_ioctl_destroy_event_args" {
        event_id: u32,
        pad: u32,
    }

    /// Signaling of an event.
    SetEvent = "kfd_ioctl_set_event_args" {
        event_id: u32,
        pad: u32,
    }

    /// Reset of an event.
    ResetEvent = "kfd_ioctl_reset_event_args" {
        event_id: u32,
        pad: u32,
    }

    /// An event to wait for. The first words are a union: the data of a memory fault, that of a
    /// hardware exception, or the age of a signal event in the first two words.
    EventData = "kfd_event_data" {
        memory_exception_data: MemoryException,
        kfd_event_data_ext: u64,
        event_id: u32,
        pad: u32,
    }

    /// An access to memory that a GPU may not make.
    MemoryException = "kfd_hsa_memory_exception_data" {
        failure: MemoryFailure,
        va: u64,
        gpu_id: u32,
        ErrorType: u32,
    }

    /// Reason of a memory fault.
    MemoryFailure = "kfd_memory_exception_failure" {
        NotPresent: u32,
        ReadOnly: u32,
        NoExecute: u32,
        imprecise: u32,
    }

    /// A GPU that cannot go on.
    HardwareException = "kfd_hsa_hw_exception_data" {
        reset_type: u32,
        reset_cause: u32,
        memory_lost: u32,
        gpu_id: u32,
    }

    /// Wait for events.
    WaitEvents = "kfd_ioctl_wait_events_args" {
        events_ptr: u64,
        num_events: u32,
        wait_for_all: u32,
        timeout: u32,
        wait_result: u32,
    }

    /// Tiling of graphics memory.
    GetTileConfig = "kfd_ioctl_get_tile_config_args" {
        tile_config_ptr: u64,
        macro_tile_config_ptr: u64,
        num_tile_configs: u32,
        num_macro_tile_configs: u32,
        gpu_id: u32,
        gb_addr_config: u32,
        num_banks: u32,
        num_ranks: u32,
    }

    /// Use of a render node's address space by the process.
    AcquireVm = "kfd_ioctl_acquire_vm_args" {
        drm_fd: u32,
        gpu_id: u32,
    }

    /// Allocation of memory.
    AllocMemory = "kfd_ioctl_alloc_memory_of_gpu_args" {
        va_addr: u64,
        size: u64,
        handle: u64,
        mmap_offset: u64,
        gpu_id: u32,
        flags: u32,
    }

    /// Freeing of memory.
    FreeMemory = "kfd_ioctl_free_memory_of_gpu_args" {
        handle: u64,
    }

    /// Mapping of memory for GPUs, or its unmapping.
    MapMemory = "kfd_ioctl_map_memory_to_gpu_args" {
        handle: u64,
        device_ids_array_ptr: u64,
        n_devices: u32,
        n_success: u32,
    }

    /// Attributes of shared virtual memory. The attributes follow the structure.
    Svm = "kfd_ioctl_svm_args" {
        start_addr: u64,
        size: u64,
        op: u32,
        nattr: u32,
    }

    /// An attribute of shared virtual memory.
    SvmAttribute = "kfd_ioctl_svm_attribute" {
        r#type: u32,
        value: u32,
    }

    /// Export of memory as a dma-buf.
    ExportDmabuf = "kfd_ioctl_export_dmabuf_args" {
        handle: u64,
        flags: u32,
        dmabuf_fd: u32,
    }

    /// Description of a dma-buf.
    GetDmabufInfo = "kfd_ioctl_get_dmabuf_info_args" {
        size: u64,
        metadata_ptr: u64,
        metadata_size: u32,
        gpu_id: u32,
        flags: u32,
        dmabuf_fd: u32,
    }

    /// Import of memory from a dma-buf.
    ImportDmabuf = "kfd_ioctl_import_dmabuf_args" {
        va_addr: u64,
        handle: u64,
        gpu_id: u32,
        dmabuf_fd: u32,
    }

    /// A file descriptor that reports system management events of a GPU.
    SmiEvents = "kfd_ioctl_smi_events_args" {
        gpuid: u32,
        anon_fd: u32,
    }

    /// Export of memory to other processes.
    IpcExport = "kfd_ioctl_ipc_export_handle_args" {
        handle: u64,
        share_handle: [u32; 4],
        gpu_id: u32,
        flags: u32,
    }

    /// Import of memory from another process.
    IpcImport = "kfd_ioctl_ipc_import_handle_args" {
        handle: u64,
        va_addr: u64,
        mmap_offset: u64,
        share_handle: [u32; 4],
        gpu_id: u32,
        flags: u32,
    }

    /// Registration of the runtime with debuggers.
    RuntimeEnable = "kfd_ioctl_runtime_enable_args" {
        r_debug: u64,
        mode_mask: u32,
        capabilities_mask: u32,
    }

    /// Mode of GPUs to retry after page faults (XNACK).
    SetXnackMode = "kfd_ioctl_set_xnack_mode_args" {
        xnack_enabled: i32,
    }
}

impl From<HardwareException> for MemoryFailure {
    /// The words that a union with both contains.
    fn from(exception: HardwareException) -> MemoryFailure {
        let HardwareException { reset_type, reset_cause, memory_lost, gpu_id } = exception;
        MemoryFailure {
            NotPresent: reset_type,
            ReadOnly: reset_cause,
            NoExecute: memory_lost,
            imprecise: gpu_id,
        }
    }
}

/// Calls and their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Call {
    GetVersion = 0x01,
    CreateQueue = 0x02,
    DestroyQueue = 0x03,
    SetMemoryPolicy = 0x04,
    GetClockCounters = 0x05,
    UpdateQueue = 0x07,
    CreateEvent = 0x08,
    DestroyEvent = 0x09,
    SetEvent = 0x0a,
    ResetEvent = 0x0b,
    WaitEvents = 0x0c,
    SetScratchBackingVa = 0x11,
    GetTileConfig = 0x12,
    SetTrapHandler = 0x13,
    GetProcessAperturesNew = 0x14,
    AcquireVm = 0x15,
    AllocMemory = 0x16,
    FreeMemory = 0x17,
    MapMemory = 0x18,
    UnmapMemory = 0x19,
    SetCuMask = 0x1a,
    GetDmabufInfo = 0x1c,
    ImportDmabuf = 0x1d,
    AllocQueueGws = 0x1e,
    SmiEvents = 0x1f,
    Svm = 0x20,
    SetXnackMode = 0x21,
    AvailableMemory = 0x23,
    ExportDmabuf = 0x24,
    RuntimeEnable = 0x25,
    IpcImport = 0x80,
    IpcExport = 0x81,
}

impl Call {
    /// Each call with its name in the header, without `AMDKFD_IOC_`.
    pub const ALL: [(Call, &'static str); 32] = [
        (Call::GetVersion, "GET_VERSION"),
        (Call::CreateQueue, "CREATE_QUEUE"),
        (Call::DestroyQueue, "DESTROY_QUEUE"),
        (Call::SetMemoryPolicy, "SET_MEMORY_POLICY"),
        (Call::GetClockCounters, "GET_CLOCK_COUNTERS"),
        (Call::UpdateQueue, "UPDATE_QUEUE"),
        (Call::CreateEvent, "CREATE_EVENT"),
        (Call::DestroyEvent, "DESTROY_EVENT"),
        (Call::SetEvent, "SET_EVENT"),
        (Call::ResetEvent, "RESET_EVENT"),
        (Call::WaitEvents, "WAIT_EVENTS"),
        (Call::SetScratchBackingVa, "SET_SCRATCH_BACKING_VA"),
        (Call::GetTileConfig, "GET_TILE_CONFIG"),
        (Call::SetTrapHandler, "SET_TRAP_HANDLER"),
        (Call::GetProcessAperturesNew, "GET_PROCESS_APERTURES_NEW"),
        (Call::AcquireVm, "ACQUIRE_VM"),
        (Call::AllocMemory, "ALLOC_MEMORY_OF_GPU"),
        (Call::FreeMemory, "FREE_MEMORY_OF_GPU"),
        (Call::MapMemory, "MAP_MEMORY_TO_GPU"),
        (Call::UnmapMemory, "UNMAP_MEMORY_FROM_GPU"),
        (Call::SetCuMask, "SET_CU_MASK"),
        (Call::GetDmabufInfo, "GET_DMABUF_INFO"),
        (Call::ImportDmabuf, "IMPORT_DMABUF"),
        (Call::AllocQueueGws, "ALLOC_QUEUE_GWS"),
        (Call::SmiEvents, "SMI_EVENTS"),
        (Call::Svm, "SVM"),
        (Call::SetXnackMode, "SET_XNACK_MODE"),
        (Call::AvailableMemory, "AVAILABLE_MEMORY"),
        (Call::ExportDmabuf, "EXPORT_DMABUF"),
        (Call::RuntimeEnable, "RUNTIME_ENABLE"),
        (Call::IpcImport, "IPC_IMPORT_HANDLE"),
        (Call::IpcExport, "IPC_EXPORT_HANDLE"),
    ];

    /// The call with a number.
    pub fn from_number(number: u8) -> Option<Call> {
        Call::ALL.iter().map(|(call, _)| *call).find(|call| *call as u8 == number)
    }
}
