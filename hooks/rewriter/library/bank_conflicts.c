/* Bank conflicts of LDS accesses.
 *
 * LDS has 32 banks of a dword each, and gives 128 bytes at once: to 32 lanes a dword each, to 16
 * lanes two, to 8 lanes four. Such a group of lanes takes as many turns as there are different
 * dwords in the bank that has the most; lanes that ask for the same dword share it. All turns of
 * a group but the first are conflicts.
 *
 * Macros: COUNTERS, how many instructions are counted. */

struct conflicts {
    /* How often waves came by with a lane on. */
    uint64_t accesses;
    /* Conflicts, summed over these. */
    uint64_t conflicts;
} counters[COUNTERS];

/* Counts an access of `bytes` bytes at each lane's offset `address` in LDS. Meant to run on the
 * instruction's lanes. */
void lds_access(uint64_t address, uint32_t bytes, struct conflicts *counter)
{
    uint32_t words = (bytes + 3) / 4, conflicts = 0;
    uint32_t size = 32 / words, dword = (uint32_t)address / 4;
    for (uint32_t group = 0; group < FLIPWAVE_LANES; group += size) {
        uint64_t members = (size < 64 ? (1ul << size) - 1 : ~0ul) << group & flipwave_exec();
        uint32_t turns = 0;
        for (uint32_t bank = 0; bank < 32; bank++) {
            /* The dword of each lane in this bank, where it has one. */
            uint32_t word = (bank - dword) % 32;
            uint64_t waiting = members & flipwave_ballot(word < words);
            uint32_t asked = 0;
            while (waiting) {
                uint32_t first = flipwave_read_lane(dword + word, __builtin_ctzll(waiting));
                waiting &= ~flipwave_ballot(dword + word == first);
                asked++;
            }
            turns = asked > turns ? asked : turns;
        }
        conflicts += turns ? turns - 1 : 0;
    }
    if (flipwave_first_lane()) {
        flipwave_count(&counter->accesses, 1);
        flipwave_count(&counter->conflicts, conflicts);
    }
}

/* The same of an access `distance` bytes from there: the second of a two-address operation. */
void second_lds_access(uint64_t address, int32_t distance, uint32_t bytes,
                       struct conflicts *counter)
{
    lds_access(address + distance, bytes, counter);
}
