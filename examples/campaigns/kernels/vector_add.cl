// Sum of two vectors, one element per work-item.
kernel void vector_add(global const float *restrict a, global const float *restrict b,
                       global float *restrict sum, uint count) {
    size_t i = get_global_id(0);
    if (i < count)
        sum[i] = a[i] + b[i];
}
