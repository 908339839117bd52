// Product of two square matrices in global memory, with one element per work-item.
kernel void matmul_naive(global float *restrict product, global const float *restrict left,
                         global const float *restrict right, int size) {
    int column = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (int k = 0; k < size; ++k)
        sum = fma(left[row * size + k], right[k * size + column], sum);
    product[row * size + column] = sum;
}
