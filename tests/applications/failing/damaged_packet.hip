// A kernel names an address where nothing is as the signal of its own packet.
#include "../check.h"

__global__ void rewrite(long *signal) {
    size_t packet = (size_t)__builtin_amdgcn_dispatch_ptr();
    // The compiler takes packets for constant.
    asm volatile("" : "+v"(packet));
    ((long *volatile *)packet)[7] = signal;
}

int main() {
    rewrite<<<1, 1>>>((long *)0x123450000000);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return passed();
}
