/* Dot product of four 8-bit numbers `a` with four of the eight 8-bit numbers `b`. Two bits of `index`
 * per number of `a` select its factor: the first two from the low half of `b`, the others from the high. */

int64_t dot_2_4_i8(uint32_t a, uint32_t index, uint64_t b)
{
    int32_t sum = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t four = i < 2 ? (uint32_t)b : (uint32_t)(b >> 32);
        uint32_t position = index >> 2 * i & 3;
        sum += (int8_t)(a >> 8 * i) * (int8_t)(four >> 8 * position);
    }
    return sum;
}
