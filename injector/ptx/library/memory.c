/* Faults in words of memory after an instruction. */

/* Strikes a word of device memory. */
void strike_memory(void)
{
    struct wave *state = struck_wave();
    if (!state)
        return;
    volatile uint32_t *word = (volatile uint32_t *)(uintptr_t)GIVEN(fault).place;
    uint32_t before = flipwave_uniform_64(*word);
    uint32_t after = strike(state, 1ull << leader(), before);
    if (flipwave_lane() == leader())
        *word = after;
}

/* Strikes a word of the workgroup's shared memory. */
void strike_lds(void)
{
    struct wave *state = struck_wave();
    if (!state)
        return;
    volatile FLIPWAVE_SHARED uint32_t *word =
        (volatile FLIPWAVE_SHARED uint32_t *)(uint32_t)GIVEN(fault).place;
    uint32_t before = flipwave_uniform_64(*word);
    uint32_t after = strike(state, 1ull << leader(), before);
    if (flipwave_lane() == leader())
        *word = after;
}

/* Strikes a word of the local memory of lanes. */
void strike_scratch(bool guard)
{
    uint64_t executing = flipwave_ballot(flipwave_active(), guard);
    struct wave *state = struck_wave();
    if (!state)
        return;
    volatile FLIPWAVE_LOCAL uint32_t *word =
        (volatile FLIPWAVE_LOCAL uint32_t *)(uint32_t)GIVEN(fault).place;
    *word = strike_reached(state, lanes_of_wave(executing), *word);
}
