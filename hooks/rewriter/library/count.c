/* How often waves come by, once per wave.
 *
 * Macros: COUNTERS, how many counters there are. */

uint64_t counters[COUNTERS];

/* Adds one to the counter at `offset` bytes of `base`, the beginning of the counters. Meant to run
 * on a single lane.
 *
 * An atomic increment adds one as long as the memory is below a limit; with a limit that counters
 * never reach, its low half may be the offset, which saves registers and instructions. */
void count(uint64_t *base, uint32_t offset)
{
    uint64_t limit = 0xffffffff00000000ul | offset;
    asm volatile("global_atomic_inc_x2 %0, %1, %2"
                 :
                 : "v"((uint32_t)limit), "v"(limit), "s"(base)
                 : "memory");
}
