// A kernel names memory of the host, which was never mapped for the GPU, as the signal of its own
// packet: who decrements that signal would write there.
#include "../check.h"

#include <unistd.h>

static long canary[16] __attribute__((aligned(64)));

__global__ void rewrite(long *signal) {
    size_t packet = (size_t)__builtin_amdgcn_dispatch_ptr();
    // The compiler takes packets for constant.
    asm volatile("" : "+v"(packet));
    ((long *volatile *)packet)[7] = signal;
}

int main() {
    for (int i = 0; i < 16; i++)
        canary[i] = i == 2 ? 0 : 1000 + i;
    rewrite<<<1, 1>>>(canary);
    HIP(hipGetLastError());
    // Nobody decrements what the runtime waits for.
    for (int i = 0; i < 2000; i++)
        usleep(1000);
    for (int i = 0; i < 16; i++)
        if (canary[i] != (i == 2 ? 0 : 1000 + i))
            return puts("escaped"), 1;
    return passed();
}
