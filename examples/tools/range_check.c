/* Counts single-precision results that are larger than a limit, infinite or NaN. As the detector of a campaign, it
 * shows how many faults a range check finds.
 *
 * `--set exponent=N` sets the limit to 2^(N + 1). */

#include <flipwave.h>

FLIPWAVE_DETECTOR(range)

FLIPWAVE_PARAMETER(exponent, 20)

void check(uint32_t result)
{
    if ((result >> 23 & 0xff) > 127 + exponent)
        flipwave_detect(&range);
}

void flipwave_instrument(const flipwave_inst *inst)
{
    if (inst->class != FLIPWAVE_VALU || inst->data_type != FLIPWAVE_F32)
        return;
    const flipwave_operand *result = &inst->operands[0];
    if (inst->operand_count == 0 || !result->is_destination || result->kind != FLIPWAVE_VGPR
        || result->words != 1)
        return;
    flipwave_insert_call(inst, "check", FLIPWAVE_AFTER);
    flipwave_arg_operand(0);
}
