/* How many lanes come by.
 *
 * Macros: COUNTERS, how many counters there are. */

uint64_t counters[COUNTERS];

/* Adds the number of lanes in `exec` to a counter. Meant to run on a single lane. */
void count_lanes(uint64_t *counter, uint64_t exec)
{
    flipwave_count(counter, __builtin_popcountll(exec));
}
