/* Reads two clocks at the start and at the end of each wave: the shader clock, which counts cycles
 * (`s_memtime`; on gfx11 its lower 20 bits), and the clock with a constant rate, which counts ticks. */

#include <flipwave.h>
#include <stdlib.h>

struct reading {
    uint64_t cycles, ticks;
    uint32_t x, y, z, wave;
    uint32_t is_end;
};

FLIPWAVE_STREAM(readings, struct reading)

struct clock {
    uint32_t workgroup_x, workgroup_y, workgroup_z, wave;
    uint64_t cycles, ticks, begin_cycles, end_cycles, begin_ticks, end_ticks;
};

FLIPWAVE_ROWS(clocks, struct clock)

void read_clocks(uint32_t is_end, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    struct reading reading = {
        __builtin_readcyclecounter(), __builtin_readsteadycounter(), x, y, z, wave, is_end};
    flipwave_append(&readings, reading);
}

void flipwave_instrument(const flipwave_inst *inst)
{
    if (!inst->is_kernel_entry && !inst->is_end)
        return;
    for (uint32_t is_end = !inst->is_kernel_entry; is_end <= inst->is_end; is_end++) {
        flipwave_insert_call(inst, "read_clocks", FLIPWAVE_BEFORE);
        flipwave_one_lane();
        flipwave_arg_number(is_end);
        for (uint32_t dimension = 0; dimension < 3; dimension++)
            flipwave_arg_workgroup(dimension);
        flipwave_arg_wave();
    }
}

/* Sorts by workgroup and wave, then the start before the end. */
static int compare(const void *first, const void *second)
{
    const struct reading *a = first, *b = second;
    uint32_t left[] = {a->x, a->y, a->z, a->wave, a->is_end};
    uint32_t right[] = {b->x, b->y, b->z, b->wave, b->is_end};
    for (int at = 0; at < 5; at++)
        if (left[at] != right[at])
            return left[at] < right[at] ? -1 : 1;
    return 0;
}

void flipwave_finish(const flipwave_dispatch *dispatch)
{
    size_t length = flipwave_length(&readings);
    struct reading *all = readings.records;
    qsort(all, length, sizeof(*all), compare);
    for (size_t at = 0; at + 1 < length; at++) {
        const struct reading *begin = &all[at], *end = &all[at + 1];
        /* A wave that does not reach its end has no row. */
        if (begin->is_end || !end->is_end || begin->wave != end->wave)
            continue;
        flipwave_emit(&clocks, {begin->x, begin->y, begin->z, begin->wave,
                                end->cycles - begin->cycles, end->ticks - begin->ticks,
                                begin->cycles, end->cycles, begin->ticks, end->ticks});
    }
}
