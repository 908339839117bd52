/* Faults in lanes that run the hook. */

/* Strikes a value in lanes, all of which must run the hook: others are reported to the host in `borrowed`. */
static value_t strike_reached(struct wave *state, uint64_t lanes, value_t value)
{
    uint64_t reached = flipwave_active();
    state->borrowed |= lanes & ~reached;
    return strike(state, lanes & reached, value);
}
