// Proxies of every form. `forms.c` defines the semantics of their instructions.

#include <flipwave.h>

// Macros, because without inlining a function returns its result in a VGPR.
#define uniform_32(x) (uint)__builtin_amdgcn_readfirstlane(x)
#define uniform_64(x) (uniform_32((uint)(x)) | (ulong)uniform_32((uint)((x) >> 32)) << 32)

#define literal(x) FLIPWAVE_PROXY(x_literal, uint, "v_or_b32 %0, 0xfefefefe, %1", "v"(x))
#define three(a, b, c) \
    FLIPWAVE_PROXY(x_three, uint, "v_mad_u32_u24 %0, %1, %2, %3 clamp", "v"(a), "v"(b), "v"(c))
#define scalar(x) FLIPWAVE_SCALAR_PROXY(x_scalar, uint, "s_or_b32 %0, %1, 0xfefefefe", "s"(uniform_32(x)))
#define wide_scalar(x) FLIPWAVE_SCALAR_PROXY(x_wide_scalar, ulong, "s_lshl_b64 %0, %1, 57", "s"(uniform_64(x)))
#define packed(a, b) \
    FLIPWAVE_PROXY(x_packed, ulong, "v_pk_mul_f32 %0, %1, %2 neg_lo:[1,0]", "v"(a), "v"(b))
#define number(x) FLIPWAVE_PROXY(x_number, uint, "v_mul_u32_u24 %0, %1, %2", "n"(21), "v"(x))

__kernel void emulated(__global const uint *in, __global uint *out, ulong base, uint uniform)
{
    int i = get_global_id(0);
    uint x = in[i];
    out[10 * i] = literal(x);
    out[10 * i + 1] = three(x, i, 7);
    out[10 * i + 2] = scalar(uniform);
    ulong swapped = wide_scalar(base);
    out[10 * i + 3] = swapped;
    out[10 * i + 4] = swapped >> 32;
    ulong sum = packed((ulong)x << 32 | i, (ulong)7 << 32 | 9);
    out[10 * i + 5] = sum;
    out[10 * i + 6] = sum >> 32;
    out[10 * i + 7] = number(x);
    uint4 four = (uint4)(x, i, 3, 4);
    FLIPWAVE_UPDATING_PROXY(x_updated, four, "v_mfma_f32_4x4x1f32 %0, %1, %2, %0", "v"(x), "v"(i));
    out[10 * i + 8] = four.x ^ four.y;
    out[10 * i + 9] = four.z ^ four.w;
}
