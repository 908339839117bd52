// Kernels dominated by memory accesses of different kinds.

// Private memory at indices that depend on data.
kernel void scratch(global uint *out, int steps) {
    uint scratch[256];
    uint state = get_global_id(0) * 2654435761u;
    for (int i = 0; i < 256; ++i)
        scratch[i] = state ^ i;
    for (int i = 0; i < steps; ++i) {
        uint at = state >> 24;
        state = scratch[at] * 1664525u + state;
        scratch[at] = state;
    }
    out[get_global_id(0)] = state;
}

kernel void gather(global uint *out, global const uint *table, global const uint *index, int size) {
    uint sum = 0;
    for (int i = get_global_id(0); i < size; i += get_global_size(0))
        sum += table[index[i]];
    out[get_global_id(0)] = sum;
}

// Each word is written once: multiplication by an odd number is a permutation.
kernel void scatter(global uint *out, int size) {
    for (int i = get_global_id(0); i < size; i += get_global_size(0))
        out[i * 2654435761u & (size - 1)] = i;
}

kernel void histogram_global(global uint *bins, global const uchar *values, int size) {
    for (int i = get_global_id(0); i < size; i += get_global_size(0))
        atomic_inc(&bins[values[i]]);
}

kernel void histogram_local(global uint *bins, global const uchar *values, int size) {
    local uint local_bins[256];
    local_bins[get_local_id(0)] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < size; i += get_global_size(0))
        atomic_inc(&local_bins[values[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&bins[get_local_id(0)], local_bins[get_local_id(0)]);
}

kernel void bytes(global uchar *out, global const uchar *left, global const uchar *right, int size) {
    for (int i = get_global_id(0); i < size; i += get_global_size(0))
        out[i] = left[i] + 3 * right[size - 1 - i];
}

// One column after the other.
kernel void strided(global uint *out, global const uint *in, int size) {
    int columns = get_global_size(0);
    for (int i = 0; i < size; ++i)
        out[get_global_id(0) * size + i] = in[get_global_id(0) * size + i] + columns;
}

// Tiles are transposed in LDS.
kernel void transpose(global uint *out, global const uint *in, int size) {
    local uint tile[16][17];
    int x = get_local_id(0), y = get_local_id(1), column = get_group_id(0) * 16;
    for (int row = 0; row < size; row += 16) {
        tile[y][x] = in[(row + y) * size + column + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        out[(column + y) * size + row + x] = tile[x][y];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
