// Exchange between lanes of a wave, and floating-point atomics.
#include <hip/hip_runtime.h>

extern "C" __global__ void exchange(const int *values, int *sums, int *shuffled,
                                    unsigned long long *ballots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 64;
    int value = values[i];

    int sum = value;
    for (int distance = 32; distance > 0; distance /= 2)
        sum += __shfl_down(sum, distance);
    sums[i] = sum;

    shuffled[i] = __shfl_xor(value, 5) - 3 * __shfl(value, (lane * 7 + 3) % 64) + __shfl_up(value, 1);

    // Inactive lanes do not vote.
    unsigned long long ballot = __ballot(value > 0);
    if (value & 1)
        ballot ^= __ballot(value & 2);
    ballots[i] = ballot;
}

// All values are small integers, so that sums are exact in any order.
extern "C" __global__ void float_sums(const float *values, float *sums) {
    __shared__ float local_sums[4];
    if (threadIdx.x < 4)
        local_sums[threadIdx.x] = 0.0f;
    __syncthreads();
    atomicAdd(&local_sums[threadIdx.x % 4], values[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x < 4)
        atomicAdd(&sums[threadIdx.x], local_sums[threadIdx.x]);
}
