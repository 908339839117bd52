// Calls functions through a table of pointers. With two versions of the code, the pointers of one
// version point into the other.

#include <cstdio>
#include <hip/hip_runtime.h>

using Step = unsigned (*)(unsigned);

__device__ __noinline__ unsigned twice(unsigned value) { return value * 2; }
__device__ __noinline__ unsigned plus(unsigned value) { return value + 17; }
__device__ __noinline__ unsigned collatz(unsigned value) {
    unsigned steps = 0;
    for (; value > 1; ++steps)
        value = value % 2 ? value * 3 + 1 : value / 2;
    return steps;
}

__device__ Step table[3] = {twice, plus, collatz};

__global__ void walk(unsigned *values, unsigned first) {
    unsigned i = threadIdx.x;
    for (unsigned at = 0; at < 4; ++at)
        values[i] = table[(first + at) % 3](values[i]);
}

int main() {
    unsigned *values, result[64];
    for (unsigned i = 0; i < 64; ++i)
        result[i] = i + 1;
    hipMalloc(&values, sizeof result);
    hipMemcpy(values, result, sizeof result, hipMemcpyHostToDevice);
    walk<<<1, 64>>>(values, 0);
    walk<<<1, 64>>>(values, 2);
    hipMemcpy(result, values, sizeof result, hipMemcpyDeviceToHost);
    unsigned long long sum = 0;
    for (unsigned value : result)
        sum = sum * 31 + value;
    printf("%llu\n", sum);
}
