/* How many cache lines the lanes of a wave access at once.
 *
 * Macros: COUNTERS, how many instructions are counted; LINE, bytes of a cache line. */

struct divergence {
    /* How often waves came by with a lane on. */
    uint64_t accesses;
    /* Different cache lines, summed over these. */
    uint64_t lines;
} counters[COUNTERS];

/* Counts an access of `bytes` bytes at each lane's `address`; it may reach over the end of a line
 * into the next. Meant to run on the instruction's lanes. */
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
