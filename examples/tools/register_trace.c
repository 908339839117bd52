/* Records the values that instructions write to vector registers: NVBit's trace of register values.
 *
 * `--set operation=v_*_f32` selects operations, `--set kernel=...` functions, and `--set first=N` the first N
 * workgroups of the first dimension. A record has one register of one lane. */

#include <flipwave.h>

FLIPWAVE_TEXT_PARAMETER(operation, "v_*")
FLIPWAVE_TEXT_PARAMETER(kernel, "*")
FLIPWAVE_PARAMETER(first, 0x7fffffff)

struct value {
    flipwave_site site;
    uint32_t workgroup_x, wave;
    flipwave_lane_number lane;
    uint32_t number;
    uint32_t value;
};

FLIPWAVE_STREAM(values, struct value, "function", "pc", "instruction")

void see(uint32_t value, uint32_t number, flipwave_site site, uint32_t x, uint32_t wave)
{
    if (x >= first)
        return;
    struct value record = {site, x, wave, flipwave_lane(), number, value};
    flipwave_append(&values, record);
}

void flipwave_instrument(const flipwave_inst *inst)
{
    if (!flipwave_matches(inst->opcode, operation) || !flipwave_matches(inst->function, kernel))
        return;
    flipwave_site site = -1;
    for (uint32_t at = 0; at < inst->operand_count; at++) {
        const flipwave_operand *operand = &inst->operands[at];
        if (!operand->is_destination || operand->kind != FLIPWAVE_VGPR)
            continue;
        if (site == -1u)
            site = flipwave_new_site(&values, inst, FLIPWAVE_LOCATION(inst));
        for (uint32_t number = operand->first; number < operand->first + operand->words; number++) {
            flipwave_insert_call(inst, "see", FLIPWAVE_AFTER);
            flipwave_arg_vgpr(number, 1);
            flipwave_arg_number(number);
            flipwave_arg_number(site);
            flipwave_arg_workgroup(0);
            flipwave_arg_wave();
        }
    }
}
