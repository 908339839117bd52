// Sum and maximum of a vector. Each workgroup reduces its part in a tree through local memory;
// atomics combine the workgroups. The sum is in fixed point with 20 fractional bits, because the
// result of integer addition does not depend on the order in which workgroups finish.
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define WORKGROUP 256
#define ONE 1048576.0f

__attribute__((reqd_work_group_size(WORKGROUP, 1, 1)))
kernel void reduce(global const float *restrict values, uint count, global long *sum,
                   global int *maximum) {
    local long sums[WORKGROUP];
    local int maxima[WORKGROUP];
    uint i = get_local_id(0);

    long partial_sum = 0;
    int partial_maximum = INT_MIN;
    for (size_t at = get_global_id(0); at < count; at += get_global_size(0)) {
        long fixed_point = convert_long_rte(values[at] * ONE);
        partial_sum += fixed_point;
        partial_maximum = max(partial_maximum, (int)(fixed_point >> 20));
    }
    sums[i] = partial_sum;
    maxima[i] = partial_maximum;
    barrier(CLK_LOCAL_MEM_FENCE);

    for (uint half_size = WORKGROUP / 2; half_size > 0; half_size /= 2) {
        if (i < half_size) {
            sums[i] += sums[i + half_size];
            maxima[i] = max(maxima[i], maxima[i + half_size]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i == 0) {
        atom_add(sum, sums[0]);
        atomic_max(maximum, maxima[0]);
    }
}
