/* Decodes and encodes floating-point numbers. Uses integer operations so that the kernel's MODE has no effect.
 *
 * Macros: EXPONENT and FRACTION are the numbers of exponent and fraction bits of the format; SHIFT is the
 * position of the number in the value. */

/* A number: significand / 2^63 * 2^exponent. The highest bit of the significand is set, except for zero.
 * The code below avoids branches, because divergent branches need scalar registers. */
struct number {
    int exponent;
    uint64_t significand;
};

static uint64_t infinity(int exponent, int fraction)
{
    return ((1ull << exponent) - 1) << fraction;
}

/* Decodes a finite number without sign, with this many exponent and fraction bits. */
static struct number unpack(uint64_t bits, int exponent, int fraction)
{
    int bias = (1 << (exponent - 1)) - 1;
    int biased = bits >> fraction;
    uint64_t significand = bits & ((1ull << fraction) - 1);
    significand |= (uint64_t)(biased != 0) << fraction;
    /* Zero has no highest bit; any shift is correct. */
    int zeros = __builtin_clzll(significand | 1);
    biased = biased == 0 ? 1 : biased;
    return (struct number){biased - bias + 63 - fraction - zeros, significand << zeros};
}

/* Rounds to the nearest number of a format, without sign. `has_more` states that the exact number is
 * larger by less than the lowest bit of the significand. */
static uint64_t pack(struct number number, bool has_more, int exponent, int fraction)
{
    const uint64_t all = number.significand;
    int biased = number.exponent + (1 << (exponent - 1)) - 1;
    bool is_infinite = biased >= (1 << exponent) - 1;
    int dropped = 63 - fraction + (biased < 1 ? 1 - biased : 0);
    biased = biased < 1 ? 1 : biased;
    uint64_t kept = dropped < 64 ? all >> (dropped & 63) : 0;
    uint64_t rest = dropped < 64 ? all & ((1ull << (dropped & 63)) - 1) : all;
    uint64_t half = 1ull << ((dropped - 1) & 63);
    bool is_up = (dropped <= 64) & ((rest > half) | ((rest == half) & (has_more | (kept & 1))));
    uint64_t near = ((uint64_t)(biased - 1) << fraction) + kept + is_up;
    near = is_infinite ? infinity(exponent, fraction) : near;
    return all == 0 ? 0 : near;
}
