// a * b + c of 16-bit posits with one exponent bit: with an emulated instruction, and in
// software.

#include "../hooks/posit16.h"
#include <flipwave.h>

#ifdef __NVPTX__
#define fma_posit16(a, b, c) \
    FLIPWAVE_PROXY(fma_posit16, ushort, "mad.lo.u16 %0, %1, %2, %3;", "h"(a), "h"(b), "h"(c))
#else
#define fma_posit16(a, b, c) \
    FLIPWAVE_PROXY(v_fma_posit16, ushort, "v_mad_u32_u24 %0, %1, %2, %3 clamp", \
                   "v"(a), "v"(b), "v"(c))
#endif

__kernel void emulated(__global const ushort *a, __global const ushort *b,
                       __global const ushort *c, __global ushort *sum)
{
    int i = get_global_id(0);
    sum[i] = fma_posit16(a[i], b[i], c[i]);
}

__kernel void software(__global const ushort *a, __global const ushort *b,
                       __global const ushort *c, __global ushort *sum)
{
    int i = get_global_id(0);
    sum[i] = posit16_fma(a[i], b[i], c[i]);
}
