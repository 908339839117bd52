// A kernel that changes its dispatch packet.
#pragma once
#include "check.h"

// Sets the completion signal of the kernel's dispatch packet.
__global__ void rewrite(long *signal) {
    size_t packet = (size_t)__builtin_amdgcn_dispatch_ptr();
    // The compiler treats packets as constant.
    asm volatile("" : "+v"(packet));
    ((long *volatile *)packet)[7] = signal;
}
