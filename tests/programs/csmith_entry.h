// Runs a program once per lane: in a wave on the device, one lane after the other on the host.
// `struct globals` holds the global variables of a program with separate variables per lane.

// Memory of a lane for the global variables.
#define GLOBALS_BYTES 65536
_Static_assert(sizeof(struct globals) <= GLOBALS_BYTES, "more memory for the globals");

#if defined(__AMDGCN__) || defined(__NVPTX__)

#ifdef __AMDGCN__
#define KERNEL __attribute__((amdgpu_kernel))
#else
#define KERNEL __attribute__((nvptx_kernel))
#endif

#ifdef GLOBALS_IN_LDS
#define SHARED_BYTES (65536 / WORKGROUP)
__attribute__((address_space(3), loader_uninitialized, aligned(16)))
static unsigned char shared[WORKGROUP][SHARED_BYTES];
#endif

KERNEL void entry(uint64_t *words, unsigned char *memory) {
    uint32_t lane = LANE;
    struct report report = {words + lane * REPORT_WORDS, ~0u, 0};
#ifdef GLOBALS_IN_MEMORY
    run((struct globals *)(memory + lane * GLOBALS_BYTES), &report);
#else
    __attribute__((aligned(16))) unsigned char private_globals[sizeof(struct globals)];
    void *globals = private_globals;
#ifdef GLOBALS_IN_LDS
    if (sizeof private_globals <= SHARED_BYTES)
        globals = (void *)shared[lane % WORKGROUP];
#endif
    run(globals, &report);
#endif
}

#else

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Maximum and minimum number of basic blocks that all lanes together run: endless and trivial
// programs are rejected. Blocks are counted so that the choice does not depend on the speed of the
// host.
#define MAX_BLOCKS 300000
#define MIN_BLOCKS (30 * LANES)
#define UNSUITABLE 3

static uint32_t blocks;

__attribute__((no_sanitize("coverage"))) void __sanitizer_cov_trace_pc(void) {
    if (++blocks > MAX_BLOCKS)
        _Exit(UNSUITABLE);
}

RUNTIME void run_lane(void) {
    static struct globals globals;
    static uint64_t words[REPORT_WORDS];
    memset(words, 0, sizeof words);
    struct report report = {words, ~0u, 0};
    run(&globals, &report);
    fwrite(words, 1, sizeof words, stdout);
}

__attribute__((no_sanitize("coverage"))) int main(void) {
    for (LANE = 0; LANE < LANES; ++LANE)
        run_lane();
    return blocks < MIN_BLOCKS ? UNSUITABLE : 0;
}

#endif
