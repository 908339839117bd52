// Kernels whose waves share memory without a data race.

#define I get_local_id(0)
#define G get_global_id(0)
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define LOAD(p, order, scope) __opencl_atomic_load(p, order, scope)
#define STORE(p, value, order, scope) __opencl_atomic_store(p, value, order, scope)
#define ADD(p, order, scope) __opencl_atomic_fetch_add(p, 1, order, scope)

kernel void tile(global uint *data, global uint *out) {
    local uint tile[256];
    tile[I] = data[G];
    BARRIER;
    out[G] = tile[(I + 64) % 256];
}

kernel void two_tiles(global uint *data, global uint *out) {
    local volatile uint tiles[2][256];
    uint sum = 0;
    tiles[0][I] = data[G];
    for (uint round = 0; round < 6; ++round) {
        BARRIER;
        sum = sum * 3 + tiles[round & 1][255 - I];
        tiles[(round + 1) & 1][I] = sum;
    }
    out[G] = sum;
}

kernel void reduction(global uint *data, global uint *out) {
    local volatile uint sums[256];
    sums[I] = data[G];
    for (uint step = 128; step > 0; step /= 2) {
        BARRIER;
        if (I < step)
            sums[I] += sums[I + step];
    }
    BARRIER;
    out[G] = sums[0];
}

kernel void histogram(global uint *data, global uint *out) {
    local atomic_uint bins[16];
    if (I < 16)
        STORE(&bins[I], 0, memory_order_relaxed, memory_scope_work_group);
    BARRIER;
    ADD(&bins[data[G] % 16], memory_order_relaxed, memory_scope_work_group);
    BARRIER;
    out[G] = LOAD(&bins[I % 16], memory_order_relaxed, memory_scope_work_group);
}

kernel void last_workgroup(global uint *data, global uint *out) {
    local uint is_last;
    global atomic_uint *done = (global atomic_uint *)&out[1023];
    data[G] = G * 3;
    BARRIER;
    if (I == 0)
        is_last = ADD(done, memory_order_acq_rel, memory_scope_device) == 3;
    BARRIER;
    if (is_last)
        for (uint k = 0; k < 3; ++k)
            out[I + 256 * k] = data[I + 256 * k];
}

kernel void same_value(global uint *data, global uint *out) {
    if (data[G] < 5000)
        out[0] = 1;
}

kernel void waits_for_workgroup(global uint *data, global uint *out) {
    global atomic_uint *flag = (global atomic_uint *)&out[1023];
    uint group = get_group_id(0);
    if (I == 0)
        while (LOAD(flag, memory_order_acquire, memory_scope_device) != group)
            ;
    BARRIER;
    if (group > 0)
        out[I] = data[I + 256 * (group - 1)] + 1;
    data[G] = G;
    BARRIER;
    if (I == 0)
        STORE(flag, group + 1, memory_order_release, memory_scope_device);
}

kernel void bytes(global uint *data, global uint *out) {
    local volatile uchar bytes[256];
    bytes[(I % 4) * 64 + I / 4] = data[G];
    BARRIER;
    out[G] = bytes[I];
}

kernel void waits_for_wave(global uint *data, global uint *out) {
    local atomic_uint flag;
    local volatile uint word;
    if (I == 0)
        STORE(&flag, 0, memory_order_relaxed, memory_scope_work_group);
    BARRIER;
    if (I == 0) {
        word = 7;
        STORE(&flag, 1, memory_order_release, memory_scope_work_group);
    }
    if (I >= 64) {
        while (LOAD(&flag, memory_order_acquire, memory_scope_work_group) == 0)
            ;
        out[G] = word + data[G];
    }
}

kernel void in_place(global uint *data, global uint *out) {
    data[G] = data[G] * 3 + 1;
    out[G] = data[G];
}
