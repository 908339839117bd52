// The null stream and blocking streams wait for each other without events; and the default stream
// of a thread.
#include "check.h"

// The value is correct only at the end of the kernel.
__global__ void slowly_set(volatile int *out, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int missing = 60; missing >= 0; missing--)
        out[i] = value - missing;
}

__global__ void triple(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * 3;
}

int main() {
    const int count = 2048, threads = 128, blocks = count / threads;
    int *a = to_device(std::vector<int>(count)), *b = to_device(std::vector<int>(count));
    int *c = to_device(std::vector<int>(count));
    hipStream_t one, two;
    HIP(hipStreamCreate(&one));
    HIP(hipStreamCreate(&two));

    slowly_set<<<blocks, threads, 0, one>>>(a, 7);
    triple<<<blocks, threads>>>(a, b);
    triple<<<blocks, threads, 0, two>>>(b, c);
    HIP(hipGetLastError());
    // A copy on the null stream waits as well.
    expect_equal("after the null stream", from_device(c, count), std::vector<int>(count, 63));

    slowly_set<<<blocks, threads, 0, hipStreamPerThread>>>(a, 11);
    triple<<<blocks, threads, 0, hipStreamPerThread>>>(a, b);
    HIP(hipGetLastError());
    HIP(hipStreamSynchronize(hipStreamPerThread));
    expect_equal("of this thread's stream", from_device(b, count), std::vector<int>(count, 33));

    HIP(hipStreamDestroy(one));
    HIP(hipStreamDestroy(two));
    for (int *buffer : {a, b, c})
        HIP(hipFree(buffer));
    return passed();
}
