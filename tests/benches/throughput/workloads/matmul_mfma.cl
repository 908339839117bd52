// Product of two square matrices with matrix instructions: a wave computes a tile of 32 x 32.
// Lane l holds column l % 32; v_mfma_f32_32x32x2f32 takes row l % 32 of the left factor and
// column l % 32 of the right one at k = l / 32.
typedef float float16_t __attribute__((ext_vector_type(16)));

__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void matmul_mfma(global float *restrict product, global const float *restrict left,
                        global const float *restrict right, int size) {
    int lane = get_local_id(0);
    int row = get_group_id(0) * 32, column = get_group_id(1) * 32 + lane % 32;
    float16_t sums = 0;
    for (int k = lane / 32; k < size; k += 2)
        sums = __builtin_amdgcn_mfma_f32_32x32x2f32(left[(row + lane % 32) * size + k],
                                                    right[k * size + column], sums, 0, 0, 0);
    for (int i = 0; i < 16; ++i)
        product[(row + 8 * (i / 4) + 4 * (lane / 32) + i % 4) * size + column] = sums[i];
}
