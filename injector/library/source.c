/* Registers struck as an instruction reads them: changed before, given back behind. */

/* What they held, by wave and lane. */
uint32_t held[WAVES][FLIPWAVE_LANES];

/* A register that each lane has of its own. Meant to run in all lanes. */
uint32_t lend_lanes(uint32_t value, uint64_t exec, uint32_t x, uint32_t y, uint32_t z,
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

/* The same register behind the instruction: as it was, but where the instruction wrote it, if it
 * does that where it runs. Meant to run in all lanes. */
uint32_t give_back_lanes(uint32_t value, bool is_written, uint32_t x, uint32_t y, uint32_t z,
                         uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number))
        return value;
    struct wave *own = &waves[number];
    uint64_t lanes = own->borrowed & ~(is_written ? own->exec : 0);
    own->borrowed = 0;
    return lanes >> flipwave_lane() & 1 ? held[number][flipwave_lane()] : value;
}

/* A register that lanes share. Meant to run on a single lane. */
uint32_t lend_wave(uint32_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    struct wave *own = &waves[number];
    own->borrowed = 1;
    held[number][0] = value;
    return strike(own, 1, value);
}

/* The same register behind the instruction. Meant to run on a single lane. */
uint32_t give_back_wave(uint32_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || waves[number].borrowed == 0)
        return value;
    waves[number].borrowed = 0;
    return held[number][0];
}
