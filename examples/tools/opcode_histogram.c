/* Counts the executions of each operation by waves, whatever EXEC is, with one counter per basic block. */

#include <flipwave.h>

enum granularity { block, instruction };
FLIPWAVE_PARAMETER(per, block)

struct counts {
    uint64_t executions;
};

FLIPWAVE_HISTOGRAM(counts, struct counts, "operation")

void count(uint64_t *rows, uint32_t offset)
{
    flipwave_increment(rows, offset);
}

void flipwave_instrument(const flipwave_inst *inst)
{
    static uint32_t row;
    if (inst->is_block_entry || per == instruction) {
        row = flipwave_new_row(&counts);
        flipwave_insert_call(inst, "count", FLIPWAVE_BEFORE);
        flipwave_one_lane();
        flipwave_arg_row_offset(&counts, row);
    }
    flipwave_show(&counts, inst, row, inst->opcode);
}
