/* Multiplies a floating-point number by a factor: in double precision, then rounded to the number's
 * format, both to nearest even. Needs format.c. */

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
static value_t faulty(value_t value, uint32_t lane)
{
    (void)lane;
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
