/* Counts executions, once per wave.
 *
 * Macros: COUNTERS, number of counters. */

uint64_t counters[COUNTERS];

/* Increments the counter at a byte offset from `base`, the start of the counters. Runs in a
 * single lane.
 *
 * An atomic increment adds one if the value is below a limit. Because counters never reach the
 * limit, its low half may be the offset, which saves registers and instructions. */
void count(uint64_t *base, uint32_t offset)
{
    uint64_t limit = 0xffffffff00000000ul | offset;
    asm volatile("global_atomic_inc_x2 %0, %1, %2"
                 :
                 : "v"((uint32_t)limit), "v"(limit), "s"(base)
                 : "memory");
}
