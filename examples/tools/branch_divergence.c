/* Counts divergent branches: conditions that hold for some, but not all, active lanes of a wave.
 *
 * The lanes of an AMD wave do not branch individually. A condition is written to EXEC, and the branch after
 * it only skips code that no lane executes. So this tool counts at scalar instructions that write an
 * intersection of masks, or a mask, to EXEC. Instructions that enable lanes again (`s_or`) or switch to the
 * other lanes (`s_xor`) do not split them. `v_cmpx`, which compilers use from gfx10 on, is not counted.
 *
 * In PTX, lanes branch individually: this tool counts at conditional branches, but not at indexed ones (`brx`). */

#include <flipwave.h>

struct branches {
    uint64_t executions;
    /* Executions after which some, but not all, of the lanes before are active. */
    uint64_t divergent;
};

FLIPWAVE_TABLE(branches, struct branches, "function", "pc", "instruction")

/* A lane mask of a scalar instruction. */
#if FLIPWAVE_LANES == 64
typedef uint64_t lanes;
#else
typedef uint32_t lanes;
#endif

/* Counts an instruction that changes EXEC from `before` to `first & second`. If this enables lanes, it is
 * not divergent. */
void branch_and(uint64_t before, lanes first, lanes second, struct branches *row)
{
    uint64_t after = first & second;
    flipwave_count(&row->executions, 1);
    if (after != 0 && after != before && (after & ~before) == 0)
        flipwave_count(&row->divergent, 1);
}

void branch_and_not(uint64_t before, lanes first, lanes second, struct branches *row)
{
    branch_and(before, first, ~second, row);
}

/* Counts a branch that `taken` of the lanes take. */
void branch(uint64_t reaching, uint64_t taken, struct branches *row)
{
    flipwave_count(&row->executions, 1);
    if (taken != 0 && taken != reaching)
        flipwave_count(&row->divergent, 1);
}

/* The n-th source, if it is a mask: a constant, or registers of the size of EXEC. Otherwise -1. */
static int mask_source(const flipwave_inst *inst, int n)
{
    for (uint32_t at = 0; at < inst->operand_count; at++) {
        const flipwave_operand *operand = &inst->operands[at];
        if (operand->is_destination || n-- > 0)
            continue;
        bool is_register = operand->kind == FLIPWAVE_SGPR || operand->kind == FLIPWAVE_SPECIAL;
        bool is_mask = is_register ? operand->words == FLIPWAVE_LANES / 32
                                   : operand->kind == FLIPWAVE_CONSTANT;
        return is_mask ? (int)at : -1;
    }
    return -1;
}

void flipwave_instrument(const flipwave_inst *inst)
{
    if (flipwave_matches(inst->target, "sm_*")) {
        if (!flipwave_matches(inst->opcode, "bra*") || !inst->is_conditional_branch)
            return;
        uint32_t row = flipwave_new_row(&branches);
        flipwave_insert_call(inst, "branch", FLIPWAVE_BEFORE);
        flipwave_one_lane();
        flipwave_arg_reaching_lanes();
        flipwave_arg_exec();
        flipwave_arg_row(&branches, row);
        flipwave_show(&branches, inst, row, FLIPWAVE_LOCATION(inst));
        return;
    }
    if (!inst->writes_exec || inst->is_emulated)
        return;
    bool saves = flipwave_matches(inst->opcode, "s_and_saveexec_*");
    bool saves_not = flipwave_matches(inst->opcode, "s_andn1_saveexec_*")
        || flipwave_matches(inst->opcode, "s_andn1_wrexec_*");
    bool is_and = flipwave_matches(inst->opcode, "s_and_b??");
    bool is_and_not = flipwave_matches(inst->opcode, "s_andn2_b??");
    bool is_move = flipwave_matches(inst->opcode, "s_mov_b??");
    if (!(saves || saves_not || is_and || is_and_not || is_move))
        return;
    int first = mask_source(inst, 0);
    int second = is_move ? first : mask_source(inst, 1);
    if (first < 0 || ((is_and || is_and_not) && second < 0))
        return;
    uint32_t row = flipwave_new_row(&branches);
    flipwave_insert_call(inst, saves_not || is_and_not ? "branch_and_not" : "branch_and", FLIPWAVE_BEFORE);
    flipwave_one_lane();
    flipwave_arg_exec();
    if (saves || saves_not)
        flipwave_arg_exec();
    else
        flipwave_arg_operand(first);
    flipwave_arg_operand(saves || saves_not ? first : second);
    flipwave_arg_row(&branches, row);
    flipwave_show(&branches, inst, row, FLIPWAVE_LOCATION(inst));
}
