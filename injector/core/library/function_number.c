/* Calls the user's function with a floating-point number. Needs format.c. Lanes have values of their own if
 * PER_LANE is 1. */

/* `fault.change` is the random number of the fault. NaN stays unchanged; if the result is not a number, it
 * is the quiet NaN with positive sign. */
static value_t faulty(value_t value, uint32_t lane)
{
    const uint64_t sign = 1ull << (EXPONENT + FRACTION);
    const uint64_t place = sign | (sign - 1);
    const uint64_t largest = infinity(EXPONENT, FRACTION);
    uint64_t bits = (uint64_t)value >> SHIFT & place;
    uint64_t size = bits & (sign - 1);
    uint64_t wide = pack(unpack(size, EXPONENT, FRACTION), false, 11, 52);
    wide = size == largest ? infinity(11, 52) : wide;
    wide |= (uint64_t)((bits & sign) != 0) << 63;
    flipwave_fault facts = {
        .bits = 64,
        .lane = PER_LANE ? lane : 0,
        .random = GIVEN(fault).change,
    };
    double changed = flipwave_fault_number(__builtin_bit_cast(double, wide), facts);
    uint64_t new = __builtin_bit_cast(uint64_t, changed);
    uint64_t new_size = new & ~(1ull << 63);
    uint64_t result = pack(unpack(new_size, 11, 52), false, EXPONENT, FRACTION);
    result = new_size == infinity(11, 52) ? largest : result;
    result |= new >> 63 ? sign : 0;
    result = new_size > infinity(11, 52) ? largest | 1ull << (FRACTION - 1) : result;
    value_t all = ((uint64_t)value & ~(place << SHIFT)) | result << SHIFT;
    return size > largest ? value : all;
}
