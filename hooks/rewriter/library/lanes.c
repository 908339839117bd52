/* Counts the active lanes of executions.
 *
 * Macros: COUNTERS, number of counters. */

uint64_t counters[COUNTERS];

/* Adds the number of lanes in `exec` to a counter. Runs in a single lane. */
void count_lanes(uint64_t *counter, uint64_t exec)
{
    flipwave_count(counter, __builtin_popcountll(exec));
}
