// A kernel with instructions that cannot have hooks, because GPR-index mode may be on there.
#include "../check.h"

__global__ void refused(int *values) {
    __shared__ int shared[64];
    int lane = threadIdx.x;
    shared[lane] = values[lane];
    __syncthreads();
    int zero = 0;
    asm volatile("s_setreg_b32 hwreg(HW_REG_MODE, 27, 1), %0" : : "s"(zero) : "memory");
    int neighbour = shared[lane ^ 1];
    if (neighbour & 1)
        values[lane] = neighbour * 3;
}

int main() {
    constexpr int COUNT = 64;
    int values[COUNT], *device = nullptr;
    for (int i = 0; i < COUNT; ++i)
        values[i] = i;
    HIP(hipMalloc(&device, sizeof values));
    HIP(hipMemcpy(device, values, sizeof values, hipMemcpyHostToDevice));
    refused<<<1, COUNT>>>(device);
    HIP(hipMemcpy(values, device, sizeof values, hipMemcpyDeviceToHost));
    HIP(hipFree(device));
    for (int i = 0; i < COUNT; ++i) {
        int neighbour = i ^ 1;
        EXPECT(values[i] == (neighbour & 1 ? neighbour * 3 : i), "element %d is %d", i, values[i]);
    }
    return passed();
}
