/* Bits of a value changed. */

/* `fault.change` has the bits that are kept in its low half; those inverted then in its high half. */
static value_t faulty(value_t value)
{
    uint64_t change = GIVEN(fault).change;
    return (value & (uint32_t)change) ^ (uint32_t)(change >> 32);
}
