/* Measures the run time of waves, in cycles of `__builtin_readcyclecounter`. */

struct times {
    /* Number of started waves. */
    uint64_t waves;
    /* Sum of the cycles between start and end, valid when all waves have ended. */
    uint64_t cycles;
} times;

/* Runs in a single lane at the start of a kernel. */
void begin(void)
{
    flipwave_count(&times.waves, 1);
    flipwave_count(&times.cycles, -__builtin_readcyclecounter());
}

/* Runs in a single lane at the end of a kernel. */
void end(void)
{
    flipwave_count(&times.cycles, __builtin_readcyclecounter());
}
