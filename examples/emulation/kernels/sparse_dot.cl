// Dot products with 2:4 structured sparsity: with an emulated instruction, and in
// software.

#include <flipwave.h>

#ifdef __NVPTX__
#define dot_2_4_i8(a, index, b) \
    FLIPWAVE_PROXY(dot_2_4_i8, long, "mad.wide.s32 %0, %1, %2, %3;", "r"(a), "r"(index), "l"(b))
#else
#define dot_2_4_i8(a, index, b) \
    FLIPWAVE_PROXY(v_dot_2_4_i8, long, "v_mad_i64_i32 %0, vcc, %1, %2, %3 clamp", \
                   "v"(a), "v"(index), "v"(b))
#endif

__kernel void emulated(__global const uint *a, __global const uint *index,
                       __global const ulong *b, __global long *dot)
{
    int i = get_global_id(0);
    dot[i] = dot_2_4_i8(a[i], index[i], b[i]);
}

__kernel void software(__global const uint *a, __global const uint *index,
                       __global const ulong *b, __global long *dot)
{
    int i = get_global_id(0);
    long sum = 0;
    for (int n = 0; n < 4; n++) {
        int position = (index[i] >> 2 * n & 3) + (n < 2 ? 0 : 4);
        sum += (char)(a[i] >> 8 * n) * (char)(b[i] >> 8 * position);
    }
    dot[i] = sum;
}
