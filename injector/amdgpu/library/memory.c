/* Faults in words of memory after an instruction. Runs on a single lane. */

/* Strikes a word of device memory. */
void strike_memory(uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return;
    __attribute__((address_space(1))) uint32_t *word =
        (__attribute__((address_space(1))) uint32_t *)GIVEN(fault).place;
    uint32_t before =
        __scoped_atomic_load_n(word, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    uint32_t after = strike(&waves[number], 1, before);
    __scoped_atomic_store_n(word, after, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

/* Strikes a word of the workgroup's LDS. */
void strike_lds(uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    uint32_t number;
    if (!is_struck_wave(x, y, z, wave, &number) || !is_struck_execution(&waves[number]))
        return;
    uint32_t before = flipwave_read_lds((uint32_t)GIVEN(fault).place);
    flipwave_write_lds((uint32_t)GIVEN(fault).place, strike(&waves[number], 1, before));
}
