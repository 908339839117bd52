// Many launches, one after the other, in several streams: kernels with LDS, scratch and barriers,
// mixed with the kernels that HIP uses to fill memory.

#include <cstdio>
#include <hip/hip_runtime.h>

__global__ void rotate(unsigned *values, unsigned by) {
    extern __shared__ unsigned shared[];
    unsigned i = threadIdx.x, base = blockIdx.x * blockDim.x;
    shared[i] = values[base + i];
    __syncthreads();
    values[base + i] = shared[(i + by) % blockDim.x] + by;
}

__global__ void sort(unsigned *values, unsigned seed) {
    unsigned sorted[16];
    for (unsigned i = 0; i < 16; ++i)
        sorted[i] = values[(threadIdx.x * 16 + i * seed) % 512];
    for (unsigned i = 0; i < 16; ++i)
        for (unsigned at = 0; at + 1 < 16; ++at)
            if (sorted[at] > sorted[at + 1]) {
                unsigned high = sorted[at];
                sorted[at] = sorted[at + 1];
                sorted[at + 1] = high;
            }
    atomicAdd(&values[512 + threadIdx.x], sorted[seed % 16] * 3 + sorted[15]);
}

int main() {
    // A host that waits by polling occupies a core that the embedded GPU needs.
    hipSetDeviceFlags(hipDeviceScheduleBlockingSync);
    unsigned *values, result[544];
    hipMalloc(&values, sizeof result);
    hipMemset(values, 7, sizeof result);
    hipStream_t streams[3];
    for (auto &stream : streams)
        hipStreamCreate(&stream);
    for (unsigned round = 0; round < 40; ++round) {
        hipStream_t stream = streams[round % 3];
        rotate<<<4, 128, 512, stream>>>(values, round * 5 + 1);
        sort<<<1, 32, 0, stream>>>(values, round + 1);
        hipStreamSynchronize(stream);
    }
    for (unsigned round = 0; round < 300; ++round)
        rotate<<<4, 128, 512>>>(values, round);
    hipMemcpy(result, values, sizeof result, hipMemcpyDeviceToHost);
    for (auto &stream : streams)
        hipStreamDestroy(stream);
    unsigned long long sum = 0;
    for (unsigned value : result)
        sum = sum * 31 + value;
    printf("%llu\n", sum);
}
