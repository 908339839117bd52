/* Registers struck as an instruction reads them: changed before, given back after. */

/* What they held, by wave and lane. */
value_t held[WAVES][FLIPWAVE_LANES];

/* A register that each lane has of its own. Meant to run in all lanes. */
value_t lend_lanes(value_t value, uint64_t exec, uint32_t x, uint32_t y, uint32_t z,
                   uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    struct wave *own = &waves[number];
    own->exec = exec;
    own->borrowed = lanes_struck(exec);
    held[number][flipwave_lane()] = value;
    return strike(own, own->borrowed, value);
}

/* The same register after the instruction: as it was, but for the bits that the instruction wrote,
 * in the lanes that it ran on. Meant to run in all lanes. */
value_t give_back_lanes(value_t value, value_t written, uint32_t x, uint32_t y, uint32_t z,
                        uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number))
        return value;
    struct wave *own = &waves[number];
    uint64_t lanes = own->borrowed;
    own->borrowed = 0;
    if (!(lanes >> flipwave_lane() & 1))
        return value;
    value_t kept = own->exec >> flipwave_lane() & 1 ? written : 0;
    return (held[number][flipwave_lane()] & ~kept) | (value & kept);
}

/* A register that lanes share. Meant to run on a single lane. */
value_t lend_wave(value_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    struct wave *own = &waves[number];
    own->borrowed = 1;
    held[number][0] = value;
    return strike(own, 1, value);
}

/* The same register after the instruction. Meant to run on a single lane. */
value_t give_back_wave(value_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || waves[number].borrowed == 0)
        return value;
    waves[number].borrowed = 0;
    return held[number][0];
}
