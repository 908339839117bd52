/* Faults in registers after an instruction, which was executed in the lanes whose guard is true. */

value_t strike_lanes(value_t value, bool guard)
{
    uint64_t executing = flipwave_ballot(flipwave_active(), guard);
    struct wave *state = struck_wave();
    return state ? strike_reached(state, lanes_of_wave(executing), value) : value;
}
