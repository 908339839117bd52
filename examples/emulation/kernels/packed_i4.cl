// Sums of eight 4-bit numbers in a word, saturating at -8 and 7: with an emulated instruction, and
// in software.

#include <flipwave.h>

#ifdef __NVPTX__
#define pk_add_sat_i4(a, b) \
    FLIPWAVE_PROXY(add_sat_i4x8, uint, "lop3.b32 %0, %1, %2, 57, 0xea;", "r"(a), "r"(b))
#else
#define pk_add_sat_i4(a, b) \
    FLIPWAVE_PROXY(v_pk_add_sat_i4, uint, "v_and_or_b32 %0, %1, %2, 57", "v"(a), "v"(b))
#endif

__kernel void emulated(__global const uint *a, __global const uint *b, __global uint *sum, int n)
{
    int i = get_global_id(0);
    if (i < n)
        sum[i] = pk_add_sat_i4(a[i], b[i]);
}

__kernel void software(__global const uint *a, __global const uint *b, __global uint *sum, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    uint packed = 0;
    for (int shift = 0; shift < 32; shift += 4) {
        int one = (int)(a[i] << (28 - shift)) >> 28;
        int two = (int)(b[i] << (28 - shift)) >> 28;
        packed |= ((uint)clamp(one + two, -8, 7) & 0xf) << shift;
    }
    sum[i] = packed;
}
