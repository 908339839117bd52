/* A mix of everything that faults can strike: loops with data-dependent trip counts, divergence, LDS
 * between barriers, atomics, 64-bit and floating-point numbers, comparisons and carries, M0, and
 * AccVGPRs on targets that have them. */

#define SIZE 128

static uint lane_id(void)
{
    return __builtin_amdgcn_workitem_id_x();
}

/* Index of the work-item in the grid, for workgroups of SIZE work-items and two workgroups in x. */
static uint global_index(void)
{
    uint workgroup =
        __builtin_amdgcn_workgroup_id_x() + 2 * __builtin_amdgcn_workgroup_id_y();
    return workgroup * SIZE + lane_id();
}

kernel __attribute__((reqd_work_group_size(SIZE, 1, 1))) void
mix(global const uint *in, global uint *out, global uint *counters)
{
    local uint shared[SIZE];
    const uint item = global_index();
    uint value = in[item];
    float sum = (float)(value & 255);
    double wide = value;
    ulong product = value;
    for (uint i = 0; i < (value & 7) + 1; i++) {
        product = product * 0x9e3779b97f4a7c15ul + i;
        sum = fma(sum, 1.25f, (float)i);
        if ((product >> 32 ^ i) & 1)
            wide = wide * 0.5 + 3.0;
        else
            value += (uint)product >> 5;
    }
    shared[lane_id()] = value;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    value ^= shared[(lane_id() * 5 + 3) % SIZE];
    value += __builtin_amdgcn_ds_bpermute((lane_id() ^ 1) * 4, value);
    value += __builtin_amdgcn_readfirstlane(value) >> 3;
    uint scalar;
    __asm__ volatile("s_mov_b32 m0, %1\n\ts_add_u32 %0, m0, 5"
                     : "=s"(scalar) : "s"(__builtin_amdgcn_workgroup_id_x() + 7) : "scc");
    value += scalar;
#ifdef ACC_VGPRS
    uint moved;
    __asm__ volatile("v_accvgpr_write_b32 %0, %1" : "=a"(moved) : "v"(value));
    __asm__ volatile("s_nop 3\n\tv_accvgpr_read_b32 %0, %1" : "=v"(value) : "a"(moved));
#endif
    if (value % 3 == 0)
        __opencl_atomic_fetch_add((global atomic_uint *)counters + (value & 15), value,
                                  __ATOMIC_RELAXED, memory_scope_device);
    out[item] = value ^ (uint)product ^ (uint)(product >> 32);
    out[item + 4 * SIZE] = as_uint(sum) + (uint)wide;
}

/* Reads the results of `mix` with scalar loads and branches. */
kernel __attribute__((reqd_work_group_size(SIZE, 1, 1))) void
fold(global const uint *in, global uint *out, global uint *counters)
{
    const uint workgroup =
        __builtin_amdgcn_workgroup_id_x() + 2 * __builtin_amdgcn_workgroup_id_y();
    uint sum = 0;
    for (uint i = 0; i < 12; i++) {
        const uint word = in[workgroup * SIZE + i];
        if (word & 1)
            sum += word;
        else
            sum ^= word << 1;
    }
    const uint item = global_index();
    if (lane_id() % 3 != 1)
        out[item] = sum + in[item];
    else
        out[item] = in[item + 4 * SIZE] - counters[item & 15];
}
