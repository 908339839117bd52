// Workgroups that communicate within one launch: after a fence, the last one to finish adds up the
// results of all others; and a lock.
#include "check.h"

const int threads = 128, blocks = 16, count = threads * blocks;

__device__ unsigned int finished = 0;
__device__ int lock = 0;

__global__ void sum(const int *in, volatile int *partial, long long *total) {
    __shared__ int group_sum;
    __shared__ bool is_last;
    if (threadIdx.x == 0)
        group_sum = 0;
    __syncthreads();
    atomicAdd(&group_sum, in[blockIdx.x * threads + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = group_sum;
        __threadfence();
        is_last = atomicAdd(&finished, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        __threadfence();
        long long all = 0;
        for (int block = 0; block < gridDim.x; block++)
            all += partial[block];
        *total = all;
        // Resets the counter for the next launch.
        finished = 0;
    }
}

// One thread of each workgroup changes two related numbers while it holds the lock.
__global__ void locked(volatile int *pair, int *broken) {
    if (threadIdx.x != 0)
        return;
    for (int step = 0; step < 5; step++) {
        while (atomicCAS(&lock, 0, 1) != 0)
            __builtin_amdgcn_s_sleep(1);
        __threadfence();
        if (pair[0] * 3 != pair[1])
            *broken = 1;
        pair[0] = pair[0] + 1;
        pair[1] = pair[1] + 3;
        __threadfence();
        atomicExch(&lock, 0);
    }
}

int main() {
    Random random(16);
    std::vector<int> in(count);
    long long expected = 0;
    for (int &value : in) {
        value = (int)(random.word() % 100000) - 50000;
        expected += value;
    }
    int *device_in = to_device(in), *partial = to_device(std::vector<int>(blocks));
    long long *total = to_device(std::vector<long long>(1));
    for (int round = 0; round < 3; round++) {
        HIP(hipMemset(total, 0, sizeof(long long)));
        sum<<<blocks, threads>>>(device_in, partial, total);
        HIP(hipGetLastError());
        long long found = from_device(total, 1)[0];
        EXPECT(found == expected, "round %d: the sum is %lld, not %lld", round, found, expected);
    }
    int *pair = to_device(std::vector<int>{10, 30, 0});
    locked<<<blocks, 64>>>(pair, pair + 2);
    HIP(hipGetLastError());
    expect_equal("locked numbers", from_device(pair, 3),
                 std::vector<int>{10 + 5 * blocks, 30 + 15 * blocks, 0});
    for (void *buffer : {(void *)device_in, (void *)partial, (void *)total, (void *)pair})
        HIP(hipFree(buffer));
    return passed();
}
