// Complex 32-point FFTs, one in each 32 lanes of a wave: with an emulated instruction, and in
// software.

#include <flipwave.h>

#ifdef __NVPTX__
#define fft32(x) FLIPWAVE_PROXY(fft32_f32, float2, "shl.b64 %0, %1, 63;", "l"(as_ulong(x)))
#else
#define fft32(x) FLIPWAVE_PROXY(v_fft32_f32, float2, "v_lshlrev_b64 %0, 63, %1", "v"(x))
#endif

__kernel void emulated(__global const float2 *x, __global float2 *transformed)
{
    int i = get_global_id(0);
    transformed[i] = fft32(x[i]);
}

// exp(-2 pi i n / 32).
__constant float2 twiddles[16] = {
    (float2)(1.0f, 0.0f),
    (float2)(0.980785280f, -0.195090322f),
    (float2)(0.923879533f, -0.382683432f),
    (float2)(0.831469612f, -0.555570233f),
    (float2)(0.707106781f, -0.707106781f),
    (float2)(0.555570233f, -0.831469612f),
    (float2)(0.382683432f, -0.923879533f),
    (float2)(0.195090322f, -0.980785280f),
    (float2)(0.0f, -1.0f),
    (float2)(-0.195090322f, -0.980785280f),
    (float2)(-0.382683432f, -0.923879533f),
    (float2)(-0.555570233f, -0.831469612f),
    (float2)(-0.707106781f, -0.707106781f),
    (float2)(-0.831469612f, -0.555570233f),
    (float2)(-0.923879533f, -0.382683432f),
    (float2)(-0.980785280f, -0.195090322f),
};

// The same steps as in hooks/fft32.c, with values exchanged through LDS.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void software(__global const float2 *in, __global float2 *transformed)
{
    __local float2 values[64];
    uint lane = get_local_id(0);
    int i = get_global_id(0);
    float2 x = in[i];
    for (uint bit = 16; bit > 0; bit /= 2) {
        values[lane] = x;
        barrier(CLK_LOCAL_MEM_FENCE);
        float2 other = values[lane ^ bit];
        barrier(CLK_LOCAL_MEM_FENCE);
        bool upper = (lane & bit) != 0;
        float2 sum = other + (upper ? -x : x);
        float2 w = twiddles[upper ? lane % bit * (16 / bit) : 0];
        x.x = fma(sum.x, w.x, -(sum.y * w.y));
        x.y = fma(sum.x, w.y, sum.y * w.x);
    }
    uint reversed = 0;
    for (uint bit = 0; bit < 5; bit++)
        reversed |= (lane >> bit & 1) << (4 - bit);
    values[lane] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    transformed[i] = values[reversed | (lane & 32)];
}
