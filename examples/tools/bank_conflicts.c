/* Counts LDS bank conflicts.
 *
 * LDS has 32 banks of one dword and serves 128 bytes per cycle: one dword for each of 32 lanes, two for each
 * of 16 lanes, or four for each of 8 lanes. Such a group of lanes takes as many cycles as the maximum number
 * of different dwords in one bank; lanes that access the same dword share it. Each cycle of a group after
 * the first is a conflict. The grouping of lanes in hardware is not documented for all sizes of accesses.
 * A two-address operation counts as two accesses. */

#include <flipwave.h>

struct conflicts {
    /* Accesses with at least one active lane. */
    uint64_t accesses;
    uint64_t conflicts;
};

FLIPWAVE_TABLE(conflicts, struct conflicts, "function", "pc", "instruction")

/* Counts an access of `bytes` bytes at each lane's offset `address` in LDS. */
void lds_access(uint64_t address, int32_t distance, uint32_t bytes, struct conflicts *row)
{
    uint32_t words = (bytes + 3) / 4, conflicts = 0;
    uint32_t size = 32 / words, dword = (uint32_t)(address + distance) / 4;
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
        flipwave_count(&row->accesses, 1);
        flipwave_count(&row->conflicts, conflicts);
    }
}

void flipwave_instrument(const flipwave_inst *inst)
{
    if (inst->space != FLIPWAVE_SPACE_LDS || inst->has_uniform_address)
        return;
    uint32_t row = flipwave_new_row(&conflicts);
    for (uint32_t element = 0; element < inst->elements; element++) {
        flipwave_insert_call(inst, "lds_access", FLIPWAVE_BEFORE);
        flipwave_arg_address();
        flipwave_arg_number(element * inst->distance);
        flipwave_arg_number(inst->access_bytes / inst->elements);
        flipwave_arg_row(&conflicts, row);
    }
    flipwave_show(&conflicts, inst, row, FLIPWAVE_LOCATION(inst));
}
