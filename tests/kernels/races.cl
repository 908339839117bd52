// Kernels with one data race each. The two racing lines end with the name of the kernel.

#define I get_local_id(0)
#define G get_global_id(0)
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

kernel void no_barrier(global uint *data, global uint *out) {
    local uint tile[256];
    tile[I] = data[G]; // no_barrier
    out[G] = tile[(I + 64) % 256]; // no_barrier
}

kernel void refill(global uint *data, global uint *out) {
    local volatile uint tile[256];
    tile[I] = data[G];
    BARRIER;
    uint sum = 0;
    for (uint k = 0; k < 8; ++k)
        sum += tile[(I + 31 * k) % 256]; // refill
    tile[I] = sum; // refill
    BARRIER;
    out[G] = tile[255 - I];
}

kernel void two_writers(global uint *data, global uint *out) {
    local volatile uint word;
    word = data[G]; // two_writers
    BARRIER;
    out[G] = word;
}

kernel void reduction(global uint *data, global uint *out) {
    local volatile uint sums[256];
    sums[I] = data[G];
    BARRIER;
    for (uint step = 128; step > 0; step /= 2)
        if (I < step)
            sums[I] += sums[I + step]; // reduction
    BARRIER;
    out[G] = sums[0];
}

kernel void bytes(global uint *data, global uint *out) {
    local volatile uchar bytes[256];
    bytes[I] = data[G]; // bytes
    out[G] = bytes[255 - I]; // bytes
}

kernel void late_barrier(global uint *data, global uint *out) {
    local volatile uint tile[256];
    BARRIER;
    tile[I] = data[G]; // late_barrier
    uint word = tile[I ^ 128]; // late_barrier
    BARRIER;
    out[G] = word;
}

kernel void in_memory(global uint *data, global uint *out) {
    data[G] = G * 3; // in_memory
    out[G] = data[G ^ 64]; // in_memory
}

kernel void between_workgroups(global uint *data, global uint *out) {
    data[G] = G * 5; // between_workgroups
    out[G] = data[(G + 256) % 1024]; // between_workgroups
}

kernel void one_result(global uint *data, global uint *out) {
    out[0] = data[G] + G; // one_result
}

kernel void user_barrier(global uint *data, global uint *out) {
    data[G] = G * 7; // user_barrier
    BARRIER;
    out[G] = data[1023 - G]; // user_barrier
}
