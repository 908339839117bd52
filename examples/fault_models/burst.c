/* Inverts a burst of adjacent bits at a random position. Each further bit has a probability of one half, up
 * to eight bits. Struck lanes have different bursts. */

/* The 32-bit mixer lowbias32 of C. Wellons' "Prospecting for hash functions" (2018). */
static uint32_t mix(uint32_t word)
{
    word = (word ^ word >> 16) * 0x7feb352d;
    word = (word ^ word >> 15) * 0x846ca68b;
    return word ^ word >> 16;
}

uint32_t flipwave_fault_word(uint32_t value, flipwave_fault fault)
{
    uint32_t drawn = mix((uint32_t)fault.random + fault.lane);
    uint32_t first = drawn % fault.bits;
    uint32_t count = 1;
    for (uint32_t coins = (uint32_t)(fault.random >> 32); coins & 1 && count < 8; coins >>= 1)
        count++;
    return value ^ ((1u << count) - 1) << first;
}
