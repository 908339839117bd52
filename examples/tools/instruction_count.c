/* Counts the executions of each instruction by waves, whatever EXEC is.
 *
 * All instructions of a basic block execute equally often, so one counter per block is enough. With
 * `--set per=instruction`, each instruction has a counter. */

#include <flipwave.h>

enum granularity { block, instruction };
FLIPWAVE_PARAMETER(per, block)

struct counts {
    uint64_t executions;
};

FLIPWAVE_TABLE(counts, struct counts, "function", "pc", "instruction")

void count(uint64_t *rows, uint32_t offset)
{
    flipwave_increment(rows, offset);
}

void flipwave_instrument(const flipwave_inst *inst)
{
    /* The counter of the current block. */
    static uint32_t row;
    if (inst->is_block_entry || per == instruction) {
        row = flipwave_new_row(&counts);
        flipwave_insert_call(inst, "count", FLIPWAVE_BEFORE);
        flipwave_one_lane();
        flipwave_arg_row_offset(&counts, row);
    }
    flipwave_show(&counts, inst, row, FLIPWAVE_LOCATION(inst));
}
