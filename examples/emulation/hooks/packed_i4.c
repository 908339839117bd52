/* Sums of eight 4-bit numbers in a word, saturating at -8 and 7. */

uint32_t pk_add_sat_i4(uint32_t a, uint32_t b)
{
    uint32_t packed = 0;
    for (int shift = 0; shift < 32; shift += 4) {
        int32_t one = (int32_t)(a << (28 - shift)) >> 28;
        int32_t two = (int32_t)(b << (28 - shift)) >> 28;
        int32_t sum = one + two;
        sum = sum < -8 ? -8 : sum > 7 ? 7 : sum;
        packed |= ((uint32_t)sum & 0xf) << shift;
    }
    return packed;
}
