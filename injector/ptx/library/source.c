/* Faults in values as an instruction reads them. */

value_t strike_read(value_t value)
{
    struct wave *state = struck_wave();
    return state ? strike_reached(state, lanes_of_wave(flipwave_active()), value) : value;
}
