// Work that waits for other work.

// The first wave of the workgroup waits for the last one.
__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void waits_for_wave(global uint *out) {
    local volatile uint ready;
    uint i = get_local_id(0);
    if (i == 0)
        ready = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i == 255)
        ready = 7;
    if (i < 64)
        while (ready == 0)
            ;
    out[i] = ready;
}

// Every workgroup waits for the next one; the last one does not wait.
kernel void waits_for_workgroup(volatile global uint *done, global uint *out) {
    uint group = get_group_id(0), last = get_num_groups(0) - 1;
    if (get_local_id(0) == 0) {
        while (group != last && atomic_or(&done[group + 1], 0) == 0)
            ;
        out[group] = group == last ? 1 : out[group + 1] + 1;
        atomic_or(&done[group], 1);
    }
}

// Never ends.
kernel void waits_for_ever(volatile global uint *out) {
    while (atomic_or(out, 0) == 0)
        ;
}

// The result of each wave depends on the execution order of the waves and on its clock.
__attribute__((reqd_work_group_size(128, 1, 1)))
kernel void sees_order(volatile global uint *next, global uint *places, global ulong *clocks) {
    uint wave = get_local_id(0) / 64;
    if (get_local_id(0) % 64 == 0) {
        for (uint i = 0; i < 500; ++i)
            places[wave * 500 + i] = atomic_inc(next);
        clocks[wave] = __builtin_amdgcn_s_memtime();
    }
}
