/* What hardened code does besides executing instructions twice. */

/* Waves in which two results of one instruction have differed. */
uint64_t detected;

uint32_t begin(void)
{
    return 0;
}

void end(uint32_t error)
{
    if (error != 0 && flipwave_first_lane())
        flipwave_count(&detected, 1);
}
