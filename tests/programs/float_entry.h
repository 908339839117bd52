// Runs each program of a source once per lane.

static void run(const struct inputs *inputs, uint64_t *words) {
    PROGRAMS
}

#ifdef __AMDGCN__

__attribute__((amdgpu_kernel)) void entry(const struct inputs *inputs, uint64_t *words) {
    uint32_t lane = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    run(inputs + lane, words + lane * WORDS);
}

#elif defined(__NVPTX__)

__attribute__((nvptx_kernel)) void entry(const struct inputs *inputs, uint64_t *words) {
    uint32_t lane = __nvvm_read_ptx_sreg_ctaid_x() * 64 + __nvvm_read_ptx_sreg_tid_x();
    run(inputs + lane, words + lane * WORDS);
}

#else

#include <stdio.h>

int main(void) {
    struct inputs inputs;
    uint64_t words[WORDS];
    while (fread(&inputs, sizeof inputs, 1, stdin)) {
        run(&inputs, words);
        fwrite(words, sizeof words, 1, stdout);
    }
}

#endif
