/* Counts the cache lines that the lanes of a wave touch with each access to global memory, flat memory or
 * buffers. */

#include <flipwave.h>

struct divergence {
    /* Executions with at least one active lane. */
    uint64_t accesses;
    /* Different lines of 64 and of 128 bytes, summed over all accesses. */
    uint64_t lines_64, lines_128;
};

FLIPWAVE_TABLE(divergence, struct divergence, "function", "pc", "instruction")

/* The number of lines of `size` bytes that the lanes touch. Each access may cross the end of a line. */
static inline uint32_t lines(uint64_t address, uint32_t bytes, uint32_t size)
{
    uint64_t first = address / size, last = (address + bytes - 1) / size;
    uint64_t before = flipwave_exec(), behind = flipwave_ballot(first != last);
    uint32_t count = 0;
    while (before | behind) {
        uint64_t line = before ? flipwave_read_lane_64(first, __builtin_ctzll(before))
                               : flipwave_read_lane_64(last, __builtin_ctzll(behind));
        before &= ~flipwave_ballot(first == line);
        behind &= ~flipwave_ballot(last == line);
        count++;
    }
    return count;
}

void access(uint64_t address, uint32_t bytes, struct divergence *row)
{
    uint32_t lines_64 = lines(address, bytes, 64), lines_128 = lines(address, bytes, 128);
    if (flipwave_first_lane()) {
        flipwave_count(&row->accesses, 1);
        flipwave_count(&row->lines_64, lines_64);
        flipwave_count(&row->lines_128, lines_128);
    }
}

void flipwave_instrument(const flipwave_inst *inst)
{
    bool is_counted = inst->space == FLIPWAVE_SPACE_GLOBAL || inst->space == FLIPWAVE_SPACE_FLAT
        || inst->space == FLIPWAVE_SPACE_BUFFER;
    if (!is_counted || inst->access_bytes == 0 || inst->access_bytes > 64)
        return;
    uint32_t row = flipwave_new_row(&divergence);
    flipwave_insert_call(inst, "access", FLIPWAVE_BEFORE);
    flipwave_arg_address();
    flipwave_arg_number(inst->access_bytes);
    flipwave_arg_row(&divergence, row);
    flipwave_show(&divergence, inst, row, FLIPWAVE_LOCATION(inst));
}
