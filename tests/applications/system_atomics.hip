// Atomics of the device and the host on the same words while the kernel runs.
#include "check.h"

const int threads = 128, blocks = 8, all = threads * blocks;

__global__ void join(unsigned int *counter, unsigned long long *sum, int *greatest) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd_system(counter, 1u);
    atomicAdd_system(sum, (unsigned long long)i << 32);
    atomicMax_system(greatest, i);
}

int main() {
    struct Words {
        unsigned int counter;
        unsigned long long sum;
        int greatest;
    };
    Words *words = nullptr;
    HIP(hipHostMalloc((void **)&words, sizeof(Words), hipHostMallocMapped | hipHostMallocCoherent));
    *words = Words{0, 0, -1};
    Words *seen = nullptr;
    HIP(hipHostGetDevicePointer((void **)&seen, words, 0));

    join<<<blocks, threads>>>(&seen->counter, &seen->sum, &seen->greatest);
    HIP(hipGetLastError());
    for (int i = 0; i < all; i++) {
        __atomic_fetch_add(&words->counter, 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_add(&words->sum, 1, __ATOMIC_SEQ_CST);
    }
    HIP(hipDeviceSynchronize());

    unsigned long long sum = all + ((unsigned long long)all * (all - 1) / 2 << 32);
    EXPECT(words->counter == 2 * all, "counter: %u, not %d", words->counter, 2 * all);
    EXPECT(words->sum == sum, "sum: %llu, not %llu", words->sum, sum);
    EXPECT(words->greatest == all - 1, "greatest: %d, not %d", words->greatest, all - 1);
    HIP(hipHostFree(words));
    return passed();
}
