/* A product of 32 x 32 elements in one wave per workgroup; lanes add up their elements. */
typedef float Sums __attribute__((ext_vector_type(16)));

kernel void product(global float *out, global const float *in)
{
    uint lane = get_local_id(0);
    global const float *group_values = in + 64 * get_group_id(0);
    Sums d = {};
    for (int i = 0; i < 4; ++i)
        d = __builtin_amdgcn_mfma_f32_32x32x2f32(group_values[lane] + i, group_values[63 - lane], d, 0, 0, 0);
    global float *to = out + 256 * get_group_id(0) + 4 * lane;
    for (int i = 0; i < 4; ++i)
        to[i] = d[i] + d[4 + i] + d[8 + i] + d[12 + i];
}
