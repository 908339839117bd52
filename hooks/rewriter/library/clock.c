/* How long waves run, in cycles of the clock that `__builtin_readcyclecounter` reads. */

struct times {
    /* Waves that have begun. */
    uint64_t waves;
    /* Cycles between their beginnings and their ends, summed once all have ended. */
    uint64_t cycles;
} times;

/* Meant to run on a single lane, where a kernel begins. */
void begin(void)
{
    flipwave_count(&times.waves, 1);
    flipwave_count(&times.cycles, -__builtin_readcyclecounter());
}

/* Meant to run on a single lane, where a kernel ends. */
void end(void)
{
    flipwave_count(&times.cycles, __builtin_readcyclecounter());
}
