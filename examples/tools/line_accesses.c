/* Counts the loads and stores of each cache line of global memory, with keys that hooks compute.
 * `--set line=64` changes the size of a line. */

#include <flipwave.h>

FLIPWAVE_PARAMETER(line, 128)
FLIPWAVE_PARAMETER(lines, 65536)

struct counts {
    /* Accesses by lanes. */
    uint64_t loads, stores;
};

FLIPWAVE_MAP(counts, struct counts, lines, "address")

void access_line(uint64_t address, bool is_store)
{
    struct counts *row = flipwave_lookup(&counts, address / line * line);
    if (row)
        flipwave_count(is_store ? &row->stores : &row->loads, 1);
}

void flipwave_instrument(const flipwave_inst *inst)
{
    if (inst->space != FLIPWAVE_SPACE_GLOBAL && inst->space != FLIPWAVE_SPACE_FLAT)
        return;
    for (int is_store = inst->is_store; is_store <= (inst->is_store || inst->is_atomic); is_store++) {
        flipwave_insert_call(inst, "access_line", FLIPWAVE_BEFORE);
        flipwave_arg_address();
        flipwave_arg_number(is_store);
    }
}
