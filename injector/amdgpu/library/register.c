/* Faults in registers after an instruction. */

/* Strikes a per-lane register. Runs in all lanes. */
value_t strike_lanes(value_t value, uint64_t exec, uint32_t x, uint32_t y, uint32_t z,
                     uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    return strike(&waves[number], lanes_struck(exec), value);
}

/* Strikes a per-lane register after an instruction that changes EXEC; `see_exec` must run before the
 * instruction. Runs in all lanes. */
value_t strike_lanes_seen(value_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    return strike(&waves[number], lanes_struck(waves[number].exec), value);
}

/* Records EXEC before an instruction. Runs on a single lane. */
void see_exec(uint64_t exec, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (is_struck_wave(x, y, z, wave, &number))
        waves[number].exec = exec;
}

/* Strikes a scalar register. Runs on a single lane. */
value_t strike_wave(value_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return value;
    return strike(&waves[number], 1, value);
}
