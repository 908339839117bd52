// Compares device properties of the runtime with the view of kernels; memory, occupancy, attributes.
#include "check.h"

#include <cstring>

__global__ void look(int *warp, long long *clocks) {
    long long before = clock64();
    *warp = warpSize;
    // Work that takes time.
    for (int i = 0; i < 100; i++)
        __builtin_amdgcn_s_sleep(1);
    *clocks = clock64() - before;
}

__global__ __launch_bounds__(256) void bounded(int *out) { out[threadIdx.x] = 1; }

int attribute(hipDeviceAttribute_t which) {
    int value = -1;
    HIP(hipDeviceGetAttribute(&value, which, 0));
    return value;
}

int main() {
    hipDeviceProp_t properties;
    HIP(hipGetDeviceProperties(&properties, 0));
    EXPECT(properties.name[0] || properties.gcnArchName[0], "the device has no name");
    EXPECT(!strncmp(properties.gcnArchName, "gfx", 3), "architecture %s", properties.gcnArchName);
    EXPECT(properties.warpSize == 32 || properties.warpSize == 64, "warps of %d lanes",
           properties.warpSize);
    bool is_gfx9 = !strncmp(properties.gcnArchName, "gfx9", 4);
    EXPECT(!is_gfx9 || properties.warpSize == 64, "warps of %d lanes on %s", properties.warpSize,
           properties.gcnArchName);
    EXPECT(properties.multiProcessorCount > 0, "no compute unit");
    EXPECT(properties.maxThreadsPerBlock == 1024, "workgroups of %d",
           properties.maxThreadsPerBlock);
    size_t shared = strncmp(properties.gcnArchName, "gfx950", 6) ? 64 << 10 : 160 << 10;
    EXPECT(properties.sharedMemPerBlock == shared, "LDS of %zu bytes",
           properties.sharedMemPerBlock);
    EXPECT(properties.maxThreadsDim[0] >= 1024 && properties.maxGridSize[0] > 65535, "limits");
    EXPECT(properties.clockRate > 0, "a clock of %d kHz", properties.clockRate);
    EXPECT(properties.arch.hasGlobalInt32Atomics && properties.arch.hasDoubles, "no atomics");
    EXPECT(attribute(hipDeviceAttributeWarpSize) == properties.warpSize, "two sizes of warps");
    EXPECT(attribute(hipDeviceAttributeMultiprocessorCount) == properties.multiProcessorCount,
           "two numbers of compute units");
    EXPECT(properties.managedMemory && attribute(hipDeviceAttributeManagedMemory) == 1,
           "no managed memory");
    EXPECT(properties.concurrentManagedAccess &&
               attribute(hipDeviceAttributeConcurrentManagedAccess) == 1,
           "no managed memory that host and device access together");
    char bus[32] = "";
    HIP(hipDeviceGetPCIBusId(bus, sizeof(bus), 0));
    int same = -1;
    HIP(hipDeviceGetByPCIBusId(&same, bus));
    EXPECT(same == 0, "bus %s is device %d", bus, same);
    int runtime = 0, driver = 0;
    HIP(hipRuntimeGetVersion(&runtime));
    HIP(hipDriverGetVersion(&driver));
    EXPECT(runtime > 0 && driver > 0, "no versions");

    size_t free_before = 0, free_after = 0, total = 0, bytes = 64 << 20;
    HIP(hipMemGetInfo(&free_before, &total));
    EXPECT(total == properties.totalGlobalMem && free_before <= total, "%zu of %zu bytes are free",
           free_before, total);
    void *buffer = nullptr;
    HIP(hipMalloc(&buffer, bytes));
    HIP(hipMemGetInfo(&free_after, &total));
    EXPECT(free_after + bytes <= free_before, "%zu bytes free before, %zu after", free_before,
           free_after);
    HIP(hipFree(buffer));

    int *warp = to_device(std::vector<int>(1));
    long long *clocks = to_device(std::vector<long long>(1));
    look<<<1, 1>>>(warp, clocks);
    HIP(hipGetLastError());
    EXPECT(from_device(warp, 1)[0] == properties.warpSize, "kernels see other warps");
    EXPECT(from_device(clocks, 1)[0] > 0, "the clock stands still");

    hipFuncAttributes attributes;
    HIP(hipFuncGetAttributes(&attributes, (const void *)bounded));
    EXPECT(attributes.maxThreadsPerBlock == 256, "launch bounds of %d",
           attributes.maxThreadsPerBlock);
    int blocks = 0;
    HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 256, 0));
    EXPECT(blocks >= 1, "%d workgroups fit", blocks);
    int grid = 0, size = 0;
    HIP(hipOccupancyMaxPotentialBlockSize(&grid, &size, bounded, 0, 0));
    EXPECT(grid >= 1 && size >= properties.warpSize && size <= properties.maxThreadsPerBlock,
           "advises %d workgroups of %d", grid, size);
    HIP(hipFree(warp));
    HIP(hipFree(clocks));
    return passed();
}
