/* Faults in registers as an instruction reads them: changed before and restored after the instruction. */

/* Original values, by wave and lane. */
value_t held[WAVES][FLIPWAVE_LANES];

/* Strikes a per-lane register before the instruction. Runs in all lanes. */
value_t lend_lanes(value_t value, uint64_t exec, uint32_t x, uint32_t y, uint32_t z,
                   uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    struct wave *state = &waves[number];
    state->exec = exec;
    state->borrowed = lanes_struck(exec);
    held[number][flipwave_lane()] = value;
    return strike(state, state->borrowed, value);
}

/* Restores the per-lane register after the instruction, except for the bits that the instruction wrote in
 * its active lanes. Runs in all lanes. */
value_t give_back_lanes(value_t value, value_t written, uint32_t x, uint32_t y, uint32_t z,
                        uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number))
        return value;
    struct wave *state = &waves[number];
    uint64_t lanes = state->borrowed;
    state->borrowed = 0;
    if (!(lanes >> flipwave_lane() & 1))
        return value;
    value_t kept = state->exec >> flipwave_lane() & 1 ? written : 0;
    return (held[number][flipwave_lane()] & ~kept) | (value & kept);
}

/* Strikes a scalar register before the instruction. Runs on a single lane. */
value_t lend_wave(value_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    struct wave *state = &waves[number];
    state->borrowed = 1;
    held[number][0] = value;
    return strike(state, 1, value);
}

/* Restores the scalar register after the instruction. Runs on a single lane. */
value_t give_back_wave(value_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || waves[number].borrowed == 0)
        return value;
    waves[number].borrowed = 0;
    return held[number][0];
}
