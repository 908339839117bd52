/* Multiplies a floating-point number by a factor: in double precision, then rounded to the number's
 * format, both to nearest even. Uses integer operations so that the kernel's MODE has no effect.
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

/* The product of two finite doubles without signs. */
static uint64_t product(uint64_t a, uint64_t b)
{
    struct number left = unpack(a, 11, 52);
    struct number right = unpack(b, 11, 52);
    unsigned __int128 wide = (unsigned __int128)left.significand * right.significand;
    uint64_t high = wide >> 64, low = wide;
    int is_short = !(high >> 63);
    high = is_short ? high << 1 | low >> 63 : high;
    low <<= is_short;
    struct number result = {left.exponent + right.exponent + 1 - is_short, high};
    return pack(result, low != 0, 11, 52);
}

/* `fault.change` is the factor, a finite double. NaN stays unchanged; if the result is not a number, it
 * is the quiet NaN with positive sign. */
static value_t faulty(value_t value)
{
    const uint64_t sign = 1ull << (EXPONENT + FRACTION);
    const uint64_t place = sign | (sign - 1);
    const uint64_t largest = infinity(EXPONENT, FRACTION);
    const uint64_t factor = GIVEN(fault).change;
    const uint64_t factor_size = factor & ~(1ull << 63);
    uint64_t bits = (uint64_t)value >> SHIFT & place;
    uint64_t size = bits & (sign - 1);
    bool is_negative = ((bits & sign) != 0) ^ (factor >> 63 != 0);
    uint64_t wide = product(pack(unpack(size, EXPONENT, FRACTION), false, 11, 52), factor_size);
    uint64_t result = pack(unpack(wide, 11, 52), false, EXPONENT, FRACTION);
    result = wide == infinity(11, 52) ? largest : result;
    result |= is_negative ? sign : 0;
    uint64_t of_infinity = factor_size == 0 ? largest | 1ull << (FRACTION - 1)
                                            : largest | (is_negative ? sign : 0);
    result = size == largest ? of_infinity : result;
    value_t changed = ((uint64_t)value & ~(place << SHIFT)) | result << SHIFT;
    return size > largest ? value : changed;
}
