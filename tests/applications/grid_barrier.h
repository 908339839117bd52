// A barrier of all workgroups, in global memory.
#pragma once
#include "check.h"

const int threads = 1024;

// After the barrier, reads the words that the next workgroup wrote before it.
__global__ __launch_bounds__(threads) void neighbours(int *arrived, int *written, int *read) {
    int block = blockIdx.x;
    if (threadIdx.x == 0) {
        written[block] = block * 3 + 1;
        __threadfence();
        atomicAdd(arrived, 1);
        while (__hip_atomic_load(arrived, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) <
               (int)gridDim.x) {
        }
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0)
        read[block] = __hip_atomic_load(&written[(block + 1) % gridDim.x], __ATOMIC_RELAXED,
                                        __HIP_MEMORY_SCOPE_AGENT);
}

// Returns the number of workgroups that the device keeps resident.
inline int resident_blocks() {
    int blocks = 0, units = 0;
    HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, neighbours, threads, 0));
    HIP(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    EXPECT(blocks > 0 && units > 0, "%d workgroups on each of %d units", blocks, units);
    return blocks * units;
}

inline void meet(int blocks) {
    std::vector<int> expected(blocks);
    for (int i = 0; i < blocks; i++)
        expected[i] = (i + 1) % blocks * 3 + 1;
    int *arrived = to_device(std::vector<int>(1));
    int *written = to_device(std::vector<int>(blocks)), *read = to_device(std::vector<int>(blocks));
    neighbours<<<blocks, threads>>>(arrived, written, read);
    HIP(hipGetLastError());
    expect_equal("neighbours", from_device(read, blocks), expected);
    for (int *buffer : {arrived, written, read})
        HIP(hipFree(buffer));
}
