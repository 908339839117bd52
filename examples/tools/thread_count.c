/* Counts executed instructions by waves and by active lanes, per basic block or per function: NVBit's
 * instruction count at the level of warps and threads.
 *
 * Instructions between two changes of EXEC execute with the same lanes, so one hook counts for all of them.
 * Scalar instructions count for the active lanes of their wave like all others. */

#include <flipwave.h>

enum granularity { block, function };
FLIPWAVE_PARAMETER(per, block)

struct counts {
    uint64_t waves, lanes;
};

FLIPWAVE_TABLE(counts, struct counts, "function", "block")

void count(uint64_t exec, struct counts *row)
{
    flipwave_count(&row->waves, 1);
    flipwave_count(&row->lanes, __builtin_popcountll(exec));
}

void flipwave_instrument(const flipwave_inst *inst)
{
    /* The row of the instructions with the same lanes, and the start of their block. */
    static uint32_t row;
    static uint64_t start;
    static bool changes;
    if (inst->is_block_entry)
        start = inst->pc;
    if (inst->is_block_entry || changes) {
        row = flipwave_new_row(&counts);
        flipwave_insert_call(inst, "count", FLIPWAVE_BEFORE);
        flipwave_one_lane();
        flipwave_arg_exec();
        flipwave_arg_row(&counts, row);
    }
    changes = inst->writes_exec;
    flipwave_show(&counts, inst, row, inst->function, per == block ? flipwave_hexadecimal(start) : "");
}
