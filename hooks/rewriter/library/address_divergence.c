/* Counts the cache lines that the lanes of a wave access with one instruction.
 *
 * Macros: COUNTERS, number of counted instructions; LINE, size of a cache line in bytes. */

struct divergence {
    /* Number of executions with at least one active lane. */
    uint64_t accesses;
    /* Sum of distinct cache lines. */
    uint64_t lines;
} counters[COUNTERS];

/* Counts an access of `bytes` bytes at each lane's `address`, which may cross the end of a line.
 * Runs in the active lanes of the instruction. */
void access(uint64_t address, uint32_t bytes, struct divergence *counter)
{
    uint64_t first = address / LINE, last = (address + bytes - 1) / LINE;
    uint64_t before = flipwave_exec(), behind = flipwave_ballot(first != last);
    uint32_t lines = 0;
    while (before | behind) {
        uint64_t line = before ? flipwave_read_lane_64(first, __builtin_ctzll(before))
                               : flipwave_read_lane_64(last, __builtin_ctzll(behind));
        before &= ~flipwave_ballot(first == line);
        behind &= ~flipwave_ballot(last == line);
        lines++;
    }
    if (flipwave_first_lane()) {
        flipwave_count(&counter->accesses, 1);
        flipwave_count(&counter->lines, lines);
    }
}
