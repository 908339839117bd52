/* Bits of a value changed. */

/* `fault.change` has the bits that are kept in its low half, in its high half those that are then
 * inverted. */
static value_t faulty(value_t value)
{
    uint64_t change = GIVEN(fault).change;
    return (value & (uint32_t)change) ^ (uint32_t)(change >> 32);
}
