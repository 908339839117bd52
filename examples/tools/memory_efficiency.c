/* Computes the memory efficiency of each access to global memory: the bytes that lanes ask for, divided by
 * the bytes of the cache lines that they touch (Lynx). `--set line=64` changes the size of a line. */

#include <flipwave.h>

FLIPWAVE_PARAMETER(line, 128)

struct accesses {
    /* Accesses by waves, accesses by lanes, and touched lines. */
    uint64_t waves, lanes, lines;
};

FLIPWAVE_TABLE(accesses, struct accesses, "function", "pc", "instruction", "bytes")

struct row {
    const char *function, *pc, *instruction;
    uint64_t accesses, requested_bytes, transferred_bytes;
    double efficiency;
};

FLIPWAVE_ROWS(rows, struct row)

void access_memory(uint64_t address, uint32_t bytes, struct accesses *row)
{
    uint64_t begin = address / line, end = (address + bytes - 1) / line;
    uint64_t before = flipwave_exec(), behind = flipwave_ballot(begin != end);
    uint32_t lanes = __builtin_popcountll(before), lines = 0;
    while (before | behind) {
        uint64_t touched = before ? flipwave_read_lane_64(begin, __builtin_ctzll(before))
                                  : flipwave_read_lane_64(end, __builtin_ctzll(behind));
        before &= ~flipwave_ballot(begin == touched);
        behind &= ~flipwave_ballot(end == touched);
        lines++;
    }
    if (flipwave_first_lane()) {
        flipwave_count(&row->waves, 1);
        flipwave_count(&row->lanes, lanes);
        flipwave_count(&row->lines, lines);
    }
}

void flipwave_instrument(const flipwave_inst *inst)
{
    bool is_counted = inst->space == FLIPWAVE_SPACE_GLOBAL || inst->space == FLIPWAVE_SPACE_FLAT;
    if (!is_counted || inst->access_bytes == 0)
        return;
    uint32_t row = flipwave_new_row(&accesses);
    flipwave_insert_call(inst, "access_memory", FLIPWAVE_BEFORE);
    flipwave_arg_address();
    flipwave_arg_number(inst->access_bytes);
    flipwave_arg_row(&accesses, row);
    flipwave_show(&accesses, inst, row, FLIPWAVE_LOCATION(inst), flipwave_decimal(inst->access_bytes));
}

void flipwave_finish(const flipwave_dispatch *dispatch)
{
    for (size_t at = 0; at < flipwave_length(&accesses); at++) {
        const struct accesses *counts = &accesses.rows[at];
        uint64_t bytes = flipwave_number(flipwave_key(&accesses, at, 3));
        uint64_t requested = counts->lanes * bytes, transferred = counts->lines * line;
        flipwave_emit(&rows, {
            flipwave_key(&accesses, at, 0), flipwave_key(&accesses, at, 1), flipwave_key(&accesses, at, 2),
            counts->waves, requested, transferred,
            transferred ? (double)requested / transferred : 0,
        });
    }
}
