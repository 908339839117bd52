/* Calls the user's function with a word of BITS bits. Lanes have values of their own if PER_LANE is 1. */

/* `fault.change` is the random number of the fault. */
static value_t faulty(value_t value, uint32_t lane)
{
    flipwave_fault facts = {
        .bits = BITS,
        .lane = PER_LANE ? lane : 0,
        .random = GIVEN(fault).change,
    };
    return flipwave_fault_word(value, facts) & ~0u >> (32 - BITS);
}
