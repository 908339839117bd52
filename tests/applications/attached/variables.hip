// Variables of all kinds, shared by kernels with each other and with the host. A second copy of the
// variables would change the result.

#include <cstdio>
#include <hip/hip_runtime.h>

__device__ unsigned total = 1000;
__constant__ unsigned weights[4] = {1, 10, 100, 1000};
__device__ unsigned seen[256];

// A variable of the application may have the same name as one of a hook.
__device__ unsigned long long counters[4] = {5, 6, 7, 8};

__global__ void add(unsigned step) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    seen[i] += weights[i % 4] * step;
    if (i % 3 == 0)
        atomicAdd(&total, seen[i]);
    if (i < 4)
        counters[i] += i;
}

__global__ void collect(unsigned *out) {
    unsigned i = threadIdx.x;
    unsigned sum = 0;
    for (unsigned at = i; at < 256; at += blockDim.x)
        sum += seen[at];
    out[i] = sum + total + (unsigned)counters[i % 4];
}

int main() {
    unsigned *out, result[100], more[4] = {2, 20, 200, 2000}, read;
    if (hipMalloc(&out, sizeof result) != hipSuccess)
        return 1;
    add<<<4, 64>>>(1);
    hipMemcpyToSymbol(HIP_SYMBOL(weights), more, sizeof more);
    add<<<4, 64>>>(2);
    collect<<<1, 100>>>(out);
    hipMemcpy(result, out, sizeof result, hipMemcpyDeviceToHost);
    hipMemcpyFromSymbol(&read, HIP_SYMBOL(total), sizeof read);
    unsigned long long sum = 0;
    for (unsigned value : result)
        sum = sum * 31 + value;
    printf("%u %llu\n", read, sum);
    fprintf(stderr, "done\n");
    return 3;
}
