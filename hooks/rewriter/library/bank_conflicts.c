/* Counts bank conflicts of LDS accesses.
 *
 * LDS has 32 banks of one dword and serves 128 bytes per cycle: one dword for each of 32 lanes,
 * two for each of 16 lanes, or four for each of 8 lanes. Such a group of lanes takes as many
 * cycles as the maximum number of distinct dwords in one bank; lanes that access the same dword
 * share it. Each cycle of a group after the first is a conflict.
 *
 * Macros: COUNTERS, number of counted instructions. */

struct conflicts {
    /* Number of executions with at least one active lane. */
    uint64_t accesses;
    /* Sum of conflicts. */
    uint64_t conflicts;
} counters[COUNTERS];

/* Counts an access of `bytes` bytes at each lane's offset `address` in LDS. Runs in the active
 * lanes of the instruction. */
void lds_access(uint64_t address, uint32_t bytes, struct conflicts *counter)
{
    uint32_t words = (bytes + 3) / 4, conflicts = 0;
    uint32_t size = 32 / words, dword = (uint32_t)address / 4;
    for (uint32_t group = 0; group < FLIPWAVE_LANES; group += size) {
        uint64_t members = (size < 64 ? (1ul << size) - 1 : ~0ul) << group & flipwave_exec();
        uint32_t cycles = 0;
        for (uint32_t bank = 0; bank < 32; bank++) {
            /* Index of the lane's dword in this bank, if it accesses one. */
            uint32_t word = (bank - dword) % 32;
            uint64_t waiting = members & flipwave_ballot(word < words);
            uint32_t dwords = 0;
            while (waiting) {
                uint32_t first = flipwave_read_lane(dword + word, __builtin_ctzll(waiting));
                waiting &= ~flipwave_ballot(dword + word == first);
                dwords++;
            }
            cycles = dwords > cycles ? dwords : cycles;
        }
        conflicts += cycles ? cycles - 1 : 0;
    }
    if (flipwave_first_lane()) {
        flipwave_count(&counter->accesses, 1);
        flipwave_count(&counter->conflicts, conflicts);
    }
}

/* Counts the second access of a two-address operation, at a distance of `distance` bytes. */
void second_lds_access(uint64_t address, int32_t distance, uint32_t bytes,
                       struct conflicts *counter)
{
    lds_access(address + distance, bytes, counter);
}
