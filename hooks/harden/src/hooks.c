/* What hardened code does besides executing instructions twice. */

/* Waves in which two results of one instruction have differed. */
uint64_t detected;

void end(uint32_t error)
{
    if (flipwave_ballot(error != 0) != 0 && flipwave_first_lane())
        flipwave_count(&detected, 1);
}
