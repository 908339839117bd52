/* Decisions of branches struck: what the branch tests is made to give the other answer, and given
 * back after it, wherever control goes. Meant to run on a single lane. */

/* What the branch of each wave tested. */
uint64_t held[WAVES];

/* What the branch tests, SCC, VCC or EXEC; it is taken where that is zero, or is not. */
uint64_t decide(uint64_t tested, bool takes_zero, uint32_t x, uint32_t y, uint32_t z,
                uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return tested;
    struct wave *own = &waves[number];
    bool is_taken = (tested == 0) == takes_zero;
    bool becomes = faulty(is_taken) & 1;
    note(own, 1, is_taken, becomes);
    if (becomes == is_taken)
        return tested;
    own->borrowed = 1;
    held[number] = tested;
    return tested == 0;
}

uint64_t give_back(uint64_t tested, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || waves[number].borrowed == 0)
        return tested;
    waves[number].borrowed = 0;
    return held[number];
}

/* The same of what has one word. */
uint32_t decide_word(uint32_t tested, bool takes_zero, uint32_t x, uint32_t y, uint32_t z,
                     uint32_t wave)
{
    return decide(tested, takes_zero, x, y, z, wave);
}

uint32_t give_back_word(uint32_t tested, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    return give_back(tested, x, y, z, wave);
}
