/* Faults in branch decisions: changes the tested register before the branch so that the branch decides
 * differently, and restores it after the branch on both paths. Runs on a single lane. */

/* Original value of the tested register of each wave. */
uint64_t held[WAVES];

/* Returns the new value of the tested register: SCC, VCC or EXEC. The branch is taken if the register is
 * zero (`takes_zero`) or not zero. */
uint64_t decide(uint64_t tested, bool takes_zero, uint32_t x, uint32_t y, uint32_t z,
                uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return tested;
    struct wave *state = &waves[number];
    bool is_taken = (tested == 0) == takes_zero;
    bool becomes = faulty(is_taken, 0) & 1;
    note(state, 1, is_taken, becomes);
    if (becomes == is_taken)
        return tested;
    state->borrowed = 1;
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

/* Variants for tested registers of one word. */
uint32_t decide_word(uint32_t tested, bool takes_zero, uint32_t x, uint32_t y, uint32_t z,
                     uint32_t wave)
{
    return decide(tested, takes_zero, x, y, z, wave);
}

uint32_t give_back_word(uint32_t tested, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    return give_back(tested, x, y, z, wave);
}
