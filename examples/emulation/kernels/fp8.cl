// Converts numbers to fp8 and back with the conversions of gfx942. This is plain gfx942 code
// without proxy instructions.

typedef float float2_t __attribute__((ext_vector_type(2)));

__kernel void emulated(__global const float *numbers, __global uint *packed, __global float *back)
{
    int i = get_global_id(0);
    // Two results in the low half, two in the high half.
    uint low = __builtin_amdgcn_cvt_pk_fp8_f32(numbers[4 * i], numbers[4 * i + 1], 0, false);
    uint all = __builtin_amdgcn_cvt_pk_fp8_f32(numbers[4 * i + 2], numbers[4 * i + 3], low, true);
    packed[i] = all;
    float2_t one = __builtin_amdgcn_cvt_pk_f32_fp8(all, false);
    float2_t two = __builtin_amdgcn_cvt_pk_f32_fp8(all, true);
    back[4 * i] = one.x;
    back[4 * i + 1] = one.y;
    back[4 * i + 2] = two.x;
    back[4 * i + 3] = two.y;
}
