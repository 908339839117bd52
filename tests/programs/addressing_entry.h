// Runs each program of a source once per lane, in a separate kernel each on the device.

#ifdef __AMDGCN__

#define RUN(number)                                                                               \
    __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(LANES, LANES))) void                \
    kernel_##number(GLOBAL const struct inputs *inputs, GLOBAL const uint32_t *table,             \
                    GLOBAL char *memory, GLOBAL uint64_t *words) {                                \
        uint32_t lane = __builtin_amdgcn_workitem_id_x();                                         \
        program_##number(inputs + lane, table, memory + lane * MEMORY_BYTES,                      \
                         words + (lane * PROGRAMS + number) * WORDS);                             \
    }
EACH_PROGRAM(RUN)

#else

#include <stdio.h>

static char memory[MEMORY_BYTES] __attribute__((aligned(16)));
static struct inputs inputs[LANES];
static uint32_t table[TABLE_WORDS];

#define RUN(number) program_##number(inputs + lane, table, memory, words[number]);

int main(void) {
    if (fread(inputs, sizeof inputs, 1, stdin) + fread(table, sizeof table, 1, stdin) != 2)
        return 1;
    for (int lane = 0; lane < LANES; ++lane) {
        uint64_t words[PROGRAMS][WORDS];
        EACH_PROGRAM(RUN)
        fwrite(words, sizeof words, 1, stdout);
    }
}

#endif
