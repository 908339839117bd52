// Prefix sums of a vector in two kernels: scan_blocks within each workgroup, add_offsets across
// workgroups.

// Prefix sums within the workgroup, in place; stores the workgroup's total in `totals`. `sums` is
// dynamic local memory with one element per work-item.
kernel void scan_blocks(global uint *restrict values, global uint *restrict totals,
                        local uint *sums) {
    uint i = get_local_id(0), size = get_local_size(0);
    sums[i] = values[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint distance = 1; distance < size; distance *= 2) {
        uint before = i >= distance ? sums[i - distance] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[i] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    values[get_global_id(0)] = sums[i];
    if (i == size - 1)
        totals[get_group_id(0)] = sums[i];
}

// Adds the totals of all previous workgroups to each element.
kernel void add_offsets(global uint *restrict values, global const uint *restrict totals) {
    uint offset = 0;
    for (uint group = 0; group < get_group_id(0); ++group)
        offset += totals[group];
    values[get_global_id(0)] += offset;
}
