// Memory for device-side malloc, in front of HIP sources that use it. The allocator of AMD's device libraries
// asks the host for more memory. Here, it takes memory from an arena behind its heap, whose address is the
// hidden argument `hidden_heap_v1` (AMDGPUUsage, "Code Object V5 Metadata"; ROCm-Device-Libs, "ockl", dm).
#ifdef __HIP_DEVICE_COMPILE__
extern "C" __attribute__((device, nodebug, noinline, used)) unsigned long
__ockl_devmem_request(unsigned long address, unsigned long bytes)
{
    struct Arena {
        unsigned long start, bytes;
        // Slabs from the start in the low half, pages from the end in the high half.
        unsigned long used;
    };
    const unsigned long slab = 1ul << 21, page = 1ul << 12;
    const unsigned long heap = ((const unsigned long *)__builtin_amdgcn_implicitarg_ptr())[12];
    // Freed memory is not used again. Without a heap, there is no memory.
    if (address != 0 || heap == 0)
        return 0;
    Arena *arena = (Arena *)(heap + FLIPWAVE_HEAP_BYTES);
    const unsigned long pages = (bytes + page - 1) / page;
    if (pages > arena->bytes / page)
        return 0;
    unsigned long used = __hip_atomic_load(&arena->used, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    for (;;) {
        const unsigned long next = bytes == slab ? used + 1 : used + (pages << 32);
        const unsigned long slabs = next & 0xffffffff, all_pages = next >> 32;
        if (slabs * slab + all_pages * page > arena->bytes)
            return 0;
        if (__hip_atomic_compare_exchange_strong(&arena->used, &used, next, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                                 __HIP_MEMORY_SCOPE_AGENT))
            return bytes == slab ? arena->start + (slabs - 1) * slab
                                 : arena->start + arena->bytes - all_pages * page;
    }
}
#endif
