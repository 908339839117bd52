/* Changes bits of a value. */

/* The low half of `fault.change` is the mask of bits that are kept, the high half the mask of bits
 * that are then inverted. */
static value_t faulty(value_t value, uint32_t lane)
{
    (void)lane;
    uint64_t change = GIVEN(fault).change;
    return (value & (uint32_t)change) ^ (uint32_t)(change >> 32);
}
