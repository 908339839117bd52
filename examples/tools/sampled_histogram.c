/* Counts the executions of each operation, but instruments only some dispatches: NVBit's opcode histogram
 * with sampling.
 *
 * `--set sampling=adaptive` (default) instruments the dispatches of a kernel with a grid until two of them have
 * the same counts, and then every n-th; if its counts differ, all again until two are the same.
 * `first_per_grid` instruments the first dispatch of each kernel with each grid, as NVBit does; `every_nth` every
 * n-th dispatch of each kernel; `first_n` the first n of them (`--set n=10`). A dispatch that is not
 * instrumented has the counts of the last one of the same kernel that was, scaled by the sizes of their grids,
 * and `is_sampled` is 1. */

#include <flipwave.h>
#include <stdlib.h>
#include <string.h>

enum sampling { adaptive, first_per_grid, every_nth, first_n, all };
FLIPWAVE_PARAMETER(sampling, adaptive)
FLIPWAVE_PARAMETER(n, 10)

struct counts {
    uint64_t executions;
};

FLIPWAVE_HISTOGRAM(counts, struct counts, "operation")

struct row {
    const char *operation;
    uint64_t executions;
    bool is_sampled;
};

FLIPWAVE_ROWS(rows, struct row)

void count(uint64_t *rows, uint32_t offset)
{
    flipwave_increment(rows, offset);
}

void flipwave_instrument(const flipwave_inst *inst)
{
    static uint32_t row;
    if (inst->is_block_entry) {
        row = flipwave_new_row(&counts);
        flipwave_insert_call(inst, "count", FLIPWAVE_BEFORE);
        flipwave_one_lane();
        flipwave_arg_row_offset(&counts, row);
    }
    flipwave_show(&counts, inst, row, inst->opcode);
}

/* What is known about a kernel. */
struct kernel {
    char *name;
    uint32_t grid[3];
    uint64_t size;
    size_t length;
    char **operations;
    uint64_t *executions;
    /* The last two instrumented dispatches had the same counts. */
    bool is_stable;
    /* Dispatches since the last instrumented one. */
    uint32_t skipped;
    struct kernel *next;
};

static struct kernel *kernels;

static uint64_t size_of(const flipwave_dispatch *dispatch)
{
    return (uint64_t)dispatch->grid[0] * dispatch->grid[1] * dispatch->grid[2];
}

/* The last counts of a kernel, with the grid of the dispatch if there are any. */
static struct kernel *find(const flipwave_dispatch *dispatch, bool needs_grid)
{
    struct kernel *other = NULL;
    for (struct kernel *kernel = kernels; kernel; kernel = kernel->next) {
        if (strcmp(kernel->name, dispatch->kernel) != 0)
            continue;
        if (memcmp(kernel->grid, dispatch->grid, sizeof(kernel->grid)) == 0)
            return kernel;
        if (!other)
            other = kernel;
    }
    return needs_grid ? NULL : other;
}

bool flipwave_on_dispatch(const flipwave_dispatch *dispatch)
{
    struct kernel *kernel = find(dispatch, true);
    switch ((enum sampling)sampling) {
    case adaptive: return !kernel || !kernel->is_stable || ++kernel->skipped >= n;
    case first_per_grid: return !kernel;
    case every_nth: return dispatch->launch % n == 0;
    case first_n: return dispatch->launch < n;
    case all: return true;
    }
    return true;
}

/* Returns true if the counts of a kernel are those of the dispatch. */
static bool is_same(const struct kernel *kernel)
{
    if (kernel->length != flipwave_length(&counts))
        return false;
    for (size_t at = 0; at < kernel->length; at++)
        if (kernel->executions[at] != counts.rows[at].executions
            || strcmp(kernel->operations[at], flipwave_key(&counts, at, 0)) != 0)
            return false;
    return true;
}

static void remember(const flipwave_dispatch *dispatch)
{
    struct kernel *kernel = find(dispatch, true);
    if (!kernel) {
        kernel = calloc(1, sizeof(*kernel));
        kernel->name = strdup(dispatch->kernel);
        memcpy(kernel->grid, dispatch->grid, sizeof(kernel->grid));
        kernel->size = size_of(dispatch);
        kernel->next = kernels;
        kernels = kernel;
    } else {
        kernel->is_stable = is_same(kernel);
        kernel->skipped = 0;
        if (kernel->is_stable)
            return;
        for (size_t at = 0; at < kernel->length; at++)
            free(kernel->operations[at]);
        free(kernel->operations);
        free(kernel->executions);
    }
    kernel->length = flipwave_length(&counts);
    kernel->operations = malloc(kernel->length * sizeof(char *) + 1);
    kernel->executions = malloc(kernel->length * sizeof(uint64_t) + 1);
    for (size_t at = 0; at < kernel->length; at++) {
        kernel->operations[at] = strdup(flipwave_key(&counts, at, 0));
        kernel->executions[at] = counts.rows[at].executions;
    }
}

void flipwave_finish(const flipwave_dispatch *dispatch)
{
    if (dispatch->is_instrumented)
        remember(dispatch);
    const struct kernel *kernel = find(dispatch, false);
    if (!kernel)
        return;
    double scale = (double)size_of(dispatch) / kernel->size;
    for (size_t at = 0; at < kernel->length; at++) {
        uint64_t executions = kernel->executions[at] * scale + 0.5;
        flipwave_emit(&rows, {kernel->operations[at], executions, !dispatch->is_instrumented});
    }
}
