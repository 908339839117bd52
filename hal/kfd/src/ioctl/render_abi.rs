//! Arguments of calls on render nodes (`drm/drm.h`, `drm/amdgpu_drm.h`), as in [`super::abi`].

use super::abi::{Plain, structures};

structures! {
    /// Name and version of the driver. The program provides the buffers of the texts and their
    /// sizes.
    Version = "drm_version" {
        version_major: i32,
        version_minor: i32,
        version_patchlevel: i32,
        pad: u32,
        name_len: u64,
        name: u64,
        date_len: u64,
        date: u64,
        desc_len: u64,
        desc: u64,
    }

    /// Query of information.
    Info = "drm_amdgpu_info" {
        return_pointer: u64,
        return_size: u32,
        query: u32,
        first: u32,
        second: u32,
        third: u32,
        fourth: u32,
    }

    /// Properties of a GPU.
    DeviceInfo = "drm_amdgpu_info_device" {
        device_id: u32,
        chip_rev: u32,
        external_rev: u32,
        pci_rev: u32,
        family: u32,
        num_shader_engines: u32,
        num_shader_arrays_per_engine: u32,
        gpu_counter_freq: u32,
        max_engine_clock: u64,
        max_memory_clock: u64,
        cu_active_number: u32,
        cu_ao_mask: u32,
        cu_bitmap: [u32; 16],
        enabled_rb_pipes_mask: u32,
        num_rb_pipes: u32,
        num_hw_gfx_contexts: u32,
        pad: u32,
        ids_flags: u64,
        virtual_address_offset: u64,
        virtual_address_max: u64,
        virtual_address_alignment: u32,
        pte_fragment_size: u32,
        gart_page_size: u32,
        ce_ram_size: u32,
        vram_type: u32,
        vram_bit_width: u32,
    }

    /// Conversion of a dma-buf to a handle of the node.
    PrimeHandle = "drm_prime_handle" {
        handle: u32,
        flags: u32,
        fd: i32,
    }

    /// Closing of a handle.
    GemClose = "drm_gem_close" {
        handle: u32,
        pad: u32,
    }

    /// A handle; after the call, the offset of its memory in the node's file.
    GemMmap = "drm_amdgpu_gem_mmap" {
        handle_or_offset: u64,
    }

    /// Mapping of memory for the GPU, or its unmapping.
    GemVa = "drm_amdgpu_gem_va" {
        handle: u32,
        _pad: u32,
        operation: u32,
        flags: u32,
        va_address: u64,
        offset_in_bo: u64,
        map_size: u64,
    }

    /// Metadata of a handle's memory: flags and tiling of 8 bytes each, the size of `data` in 4
    /// bytes, and 256 bytes.
    GemMetadata = "drm_amdgpu_gem_metadata" {
        handle: u32,
        op: u32,
        data: [u64; 35],
    }

    /// Operation on a handle; `value` can be the address of a structure.
    GemOp = "drm_amdgpu_gem_op" {
        handle: u32,
        op: u32,
        value: u64,
    }

    /// Properties of a handle's memory.
    GemCreate = "drm_amdgpu_gem_create_in" {
        bo_size: u64,
        alignment: u64,
        domains: u64,
        domain_flags: u64,
    }
}
