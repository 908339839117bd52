/* A 32-point FFT in each 32 lanes of a wave: lane n of them holds the input x[n] and the output X[n].
 *
 * Decimation in frequency: in five steps, each lane exchanges values with the lane that differs in
 * one bit of the lane number, from the highest bit down. A final exchange undoes the bit reversal. */

struct complex {
    float re, im;
};

/* exp(-2 pi i n / 32). */
static const struct complex twiddles[16] = {
    {1.0f, 0.0f},
    {0.980785280f, -0.195090322f},
    {0.923879533f, -0.382683432f},
    {0.831469612f, -0.555570233f},
    {0.707106781f, -0.707106781f},
    {0.555570233f, -0.831469612f},
    {0.382683432f, -0.923879533f},
    {0.195090322f, -0.980785280f},
    {0.0f, -1.0f},
    {-0.195090322f, -0.980785280f},
    {-0.382683432f, -0.923879533f},
    {-0.555570233f, -0.831469612f},
    {-0.707106781f, -0.707106781f},
    {-0.831469612f, -0.555570233f},
    {-0.923879533f, -0.382683432f},
    {-0.980785280f, -0.195090322f},
};

static inline float from_lane(float value, uint32_t lane)
{
    return __builtin_bit_cast(float, flipwave_shuffle(__builtin_bit_cast(uint32_t, value), lane));
}

struct complex fft32(struct complex src)
{
    uint32_t lane = flipwave_lane();
    struct complex x = src;
#pragma unroll
    for (uint32_t bit = 16; bit > 0; bit /= 2) {
        struct complex other = {from_lane(x.re, lane ^ bit), from_lane(x.im, lane ^ bit)};
        bool upper = lane & bit;
        struct complex sum = {other.re + (upper ? -x.re : x.re), other.im + (upper ? -x.im : x.im)};
        struct complex w = twiddles[upper ? lane % bit * (16 / bit) : 0];
        /* Explicit fma calls make the result independent of the compiler's contraction of operations. */
        x.re = __builtin_fmaf(sum.re, w.re, -(sum.im * w.im));
        x.im = __builtin_fmaf(sum.re, w.im, sum.im * w.re);
    }
    uint32_t reversed = __builtin_bitreverse32(lane) >> 27 | (lane & 32);
    return (struct complex){from_lane(x.re, reversed), from_lane(x.im, reversed)};
}
