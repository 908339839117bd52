// y = a x + y, with many elements per work-item.
kernel void saxpy_loop(global float *restrict y, global const float *restrict x, float a, int size) {
    for (int i = get_global_id(0); i < size; i += get_global_size(0))
        y[i] = fma(a, x[i], y[i]);
}
