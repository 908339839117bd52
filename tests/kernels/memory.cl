// Memory of every kind and width, shared between work-items in different ways.
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

// Histogram of bytes: atomics on local memory first, then on global memory.
kernel void histogram(global const uchar *values, uint count, global uint *bins) {
    local uint local_bins[256];
    for (uint bin = get_local_id(0); bin < 256; bin += get_local_size(0))
        local_bins[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t at = get_global_id(0); at < count; at += get_global_size(0))
        atomic_inc(&local_bins[values[at]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint bin = get_local_id(0); bin < 256; bin += get_local_size(0))
        if (local_bins[bin])
            atomic_add(&bins[bin], local_bins[bin]);
}

// Atomics with results. Each work-item draws a ticket; all of them combine their values in one
// word per operation, so that the final words do not depend on the order.
kernel void atomics(global const uint *values, global uint *tickets, global uint *words,
                    global ulong *wide) {
    size_t i = get_global_id(0);
    uint value = values[i];
    tickets[i] = atomic_inc(&words[0]);
    atomic_sub(&words[1], value);
    atomic_min(&words[2], value);
    atomic_max(&words[3], value);
    atomic_and(&words[4], value | 0xff);
    atomic_or(&words[5], value & 0xff);
    atomic_xor(&words[6], value);
    atomic_min((global int *)&words[7], (int)value);
    // The sum of squares with compare-and-swap: lanes of one wave retry against each other.
    uint seen = words[8], before;
    do {
        before = seen;
        seen = atomic_cmpxchg(&words[8], before, before + value * value);
    } while (seen != before);
    atom_add(&wide[0], (ulong)value << 20);
    atom_max(&wide[1], (ulong)value * value);
    atom_xor(&wide[2], (ulong)value << 32 | value);
    atom_sub(&wide[3], (ulong)value);
}

// Bitonic sort of a workgroup's values, with barriers in nested loops.
kernel void sort(global int *values) {
    local int block[256];
    uint i = get_local_id(0);
    block[i] = values[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint size = 2; size <= 256; size *= 2)
        for (uint distance = size / 2; distance > 0; distance /= 2) {
            uint other = i ^ distance;
            if (other > i && (block[i] > block[other]) == ((i & size) == 0)) {
                int value = block[i];
                block[i] = block[other];
                block[other] = value;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    values[get_global_id(0)] = block[i];
}

// Work-item indices and sizes, in grids whose last workgroups are partial.
kernel void places(global uint *results) {
    size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    size_t at = (z * get_global_size(1) + y) * get_global_size(0) + x;
    global uint *to = results + 4 * at;
    to[0] = get_local_id(0) | get_local_id(1) << 8 | get_local_id(2) << 16;
    to[1] = get_group_id(0) | get_group_id(1) << 8 | get_group_id(2) << 16;
    to[2] = get_local_size(0) | get_local_size(1) << 8 | get_local_size(2) << 16;
    to[3] = get_num_groups(0) | get_num_groups(1) << 8 | get_num_groups(2) << 16 |
            get_work_dim() << 24;
}

// Bytes, half words and vectors, signed and unsigned, at every alignment.
kernel void narrow(global const uchar *bytes, global char *signed_bytes, global ushort *words,
                   global short *signed_words, global uchar4 *vectors, global int *triples) {
    size_t i = get_global_id(0);
    uchar byte = bytes[i];
    signed_bytes[i] = (char)byte >> 1;
    words[i] = (ushort)(byte * 257) + bytes[i + 1];
    signed_words[i] = (short)((char)byte * (char)bytes[i + 2]);
    uchar3 three = vload3(i, bytes);
    uchar4 four = (uchar4)(three.zyx, convert_uchar_sat(three.x + three.y));
    vectors[i] = four - (uchar4)(1, 2, 3, 4);
    int3 wide = convert_int3(as_char3(three)) * (int3)(1, -100, 10000);
    vstore3(wide.yzx, i, triples);
}
