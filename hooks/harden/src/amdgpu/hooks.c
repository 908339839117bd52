/* The hook of hardened code at the end of a wave. */

/* The number of waves in which a result differed from that of its copy. */
uint64_t detected;

void end(uint32_t error)
{
    if (flipwave_ballot(error != 0) != 0 && flipwave_first_lane())
        flipwave_count(&detected, 1);
}
