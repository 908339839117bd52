/* a * b + c of 16-bit posits with one exponent bit, rounded once: to nearest, ties to the even
 * encoding, never to zero and never to NaR.
 *
 * Every posit is a multiple of the smallest one, 2^-28, and at most 2^28. So a posit fits into 64
 * bits as a multiple of 2^-28, and the exact sum into 128 bits as a multiple of 2^-56.
 *
 * Compiles as C for hooks and as OpenCL C for kernels. */

#pragma once

#define NAR 0x8000u
#define MAXPOS 0x7fffu
#define MINPOS 1u

/* The posit's value times 2^28. `posit` must not be NaR. */
static inline long decode(unsigned posit)
{
    if ((posit & 0xffff) == 0)
        return 0;
    bool negative = posit & 0x8000;
    /* The magnitude, shifted so that the regime starts at the highest bit. */
    unsigned bits = (negative ? -posit : posit) << 17;
    bool large = bits >> 31;
    int run = __builtin_clz(large ? ~bits : bits);
    int regime = large ? run - 1 : -run;
    /* The bits after the run and the bit that ends it. */
    unsigned tail = bits << run << 1;
    int scale = regime * 2 + (int)(tail >> 31);
    /* 1.f with twelve bits of f; a shift to the right drops only zeros. */
    long significand = 0x1000 | (tail << 1 >> 20);
    long value = scale >= -16 ? significand << (scale + 16) : significand >> (-16 - scale);
    return negative ? -value : value;
}

/* The posit nearest to `magnitude` times 2^-56. `magnitude` is positive. */
static inline unsigned encode(unsigned __int128 magnitude)
{
    unsigned long high = (unsigned long)(magnitude >> 64);
    int zeros = high ? __builtin_clzl(high) : 64 + __builtin_clzl((unsigned long)magnitude);
    int scale = 127 - 56 - zeros;
    if (scale >= 28)
        return MAXPOS;
    if (scale < -28)
        return MINPOS;
    /* The bits after the leading one; the last bit is sticky. */
    magnitude = magnitude << zeros << 1;
    unsigned long fraction = (unsigned long)(magnitude >> 64) | ((unsigned long)magnitude != 0);
    int regime = scale >> 1;
    unsigned long tail = (unsigned long)(scale & 1) << 63 | fraction >> 1 | (fraction & 1);
    /* The regime: ones and a zero, or zeros and a one. */
    int length = regime >= 0 ? regime + 2 : 1 - regime;
    unsigned long start = regime >= 0 ? ~0ul << (63 - regime) : 1ul << (63 + regime);
    unsigned long lost = tail << (64 - length);
    unsigned long bits = start | tail >> length | (lost != 0);
    /* Without the sign, 15 bits are kept. */
    unsigned posit = bits >> 49;
    unsigned long rest = bits << 15;
    unsigned long middle = 1ul << 63;
    return posit + (rest > middle || (rest == middle && (posit & 1)));
}

static inline unsigned posit16_fma(unsigned a, unsigned b, unsigned c)
{
    if ((a & 0xffff) == NAR || (b & 0xffff) == NAR || (c & 0xffff) == NAR)
        return NAR;
    __int128 sum = (__int128)decode(a) * decode(b) + ((__int128)decode(c) << 28);
    if (sum == 0)
        return 0;
    return sum < 0 ? -encode(-sum) & 0xffff : encode(sum);
}
