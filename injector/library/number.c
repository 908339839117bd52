/* A floating-point number multiplied by another: in double precision, and then rounded to its own
 * format, both to nearest even. Integers do it, so that the kernel's MODE has no part in it.
 *
 * Macros: EXPONENT and FRACTION, how many bits of each the format has; SHIFT, where in the value
 * the number begins. */

/* A number of a format: significand / 2^63 * 2^exponent. The significand's highest bit is set, but
 * for zero. */
struct number {
    int exponent;
    uint64_t significand;
};

static uint64_t infinity(int exponent, int fraction)
{
    return ((1ull << exponent) - 1) << fraction;
}

/* A finite number without its sign, of a format with so many bits of each. */
static struct number unpack(uint64_t bits, int exponent, int fraction)
{
    int bias = (1 << (exponent - 1)) - 1;
    int biased = bits >> fraction;
    uint64_t rest = bits & ((1ull << fraction) - 1);
    if (bits == 0)
        return (struct number){0, 0};
    if (biased == 0) {
        int zeros = __builtin_clzll(rest);
        return (struct number){64 - bias - fraction - zeros, rest << zeros};
    }
    return (struct number){biased - bias, (1ull << fraction | rest) << (63 - fraction)};
}

/* The nearest number of a format, without a sign. `has_more`: the number is a little larger, by
 * less than the significand's lowest bit. */
static uint64_t pack(struct number number, bool has_more, int exponent, int fraction)
{
    int biased = number.exponent + (1 << (exponent - 1)) - 1;
    int dropped = 63 - fraction;
    if (number.significand == 0)
        return 0;
    if (biased >= (1 << exponent) - 1)
        return infinity(exponent, fraction);
    if (biased < 1) {
        dropped += 1 - biased;
        biased = 1;
    }
    if (dropped > 64)
        return 0;
    uint64_t kept = dropped == 64 ? 0 : number.significand >> dropped;
    uint64_t rest = dropped == 64 ? number.significand
                                  : number.significand & ((1ull << dropped) - 1);
    uint64_t half = 1ull << (dropped - 1);
    bool is_up = rest > half || (rest == half && (has_more || (kept & 1)));
    return ((uint64_t)(biased - 1) << fraction) + kept + is_up;
}

/* The product of two doubles without signs, of which none is infinite or NaN. */
static uint64_t product(uint64_t a, uint64_t b)
{
    struct number left = unpack(a, 11, 52);
    struct number right = unpack(b, 11, 52);
    unsigned __int128 wide = (unsigned __int128)left.significand * right.significand;
    int exponent = left.exponent + right.exponent + 1;
    if (wide >> 127 == 0) {
        wide <<= 1;
        exponent--;
    }
    struct number result = {exponent, (uint64_t)(wide >> 64)};
    return pack(result, (uint64_t)wide != 0, 11, 52);
}

/* `fault.change` is the factor, a finite double. NaN stays as it is; what becomes no number is the
 * quiet NaN without a sign. */
static value_t faulty(value_t value)
{
    const uint64_t sign = 1ull << (EXPONENT + FRACTION);
    const uint64_t largest = infinity(EXPONENT, FRACTION);
    uint64_t factor = GIVEN(fault).change;
    uint64_t bits = (uint64_t)value >> SHIFT & (sign | (sign - 1));
    uint64_t size = bits & (sign - 1);
    uint64_t factor_size = factor & ~(1ull << 63);
    bool is_negative = ((bits & sign) != 0) != (factor >> 63 != 0);
    uint64_t result;
    if (size > largest)
        return value;
    if (size == largest && factor_size == 0) {
        is_negative = false;
        result = largest | 1ull << (FRACTION - 1);
    } else if (size == largest) {
        result = largest;
    } else {
        uint64_t wide = product(pack(unpack(size, EXPONENT, FRACTION), false, 11, 52), factor_size);
        result = wide == infinity(11, 52) ? largest
                                          : pack(unpack(wide, 11, 52), false, EXPONENT, FRACTION);
    }
    result |= is_negative ? sign : 0;
    uint64_t place = (sign | (sign - 1)) << SHIFT;
    return ((uint64_t)value & ~place) | result << SHIFT;
}
