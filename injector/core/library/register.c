/* Registers struck after an instruction. */

/* A register that each lane has of its own. Meant to run in all lanes. */
value_t strike_lanes(value_t value, uint64_t exec, uint32_t x, uint32_t y, uint32_t z,
                     uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    return strike(&waves[number], lanes_struck(exec), value);
}

/* The same after an instruction that changes EXEC, in front of which `see_exec` has run. */
value_t strike_lanes_seen(value_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    return strike(&waves[number], lanes_struck(waves[number].exec), value);
}

/* Meant to run on a single lane. */
void see_exec(uint64_t exec, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (is_struck_wave(x, y, z, wave, &number))
        waves[number].exec = exec;
}

/* A register that lanes share. Meant to run on a single lane. */
value_t strike_wave(value_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    return strike(&waves[number], 1, value);
}
