// Memory pools: memory is allocated and freed in stream order.
#include "check.h"

__global__ void fill(int *values, int count, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] = value + i;
}

static void use(hipStream_t stream, hipMemPool_t pool, int rounds) {
    const int count = 50000;
    std::vector<int> found(count);
    for (int round = 0; round < rounds; round++) {
        int *values;
        if (pool)
            HIP(hipMallocFromPoolAsync((void **)&values, count * sizeof(int), pool, stream));
        else
            HIP(hipMallocAsync((void **)&values, count * sizeof(int), stream));
        fill<<<(count + 255) / 256, 256, 0, stream>>>(values, count, round);
        HIP(hipMemcpyAsync(found.data(), values, count * sizeof(int), hipMemcpyDeviceToHost, stream));
        HIP(hipFreeAsync(values, stream));
        HIP(hipStreamSynchronize(stream));
        for (int i = 0; i < count; i++)
            EXPECT(found[i] == round + i, "round %d: [%d] is %d", round, i, found[i]);
    }
}

int main() {
    int supported = 0;
    HIP(hipDeviceGetAttribute(&supported, hipDeviceAttributeMemoryPoolsSupported, 0));
    // ROCm 5 supports pools only with an environment variable.
    if (HIP_VERSION_MAJOR < 6 && !supported)
        return passed();
    EXPECT(supported, "no pools");
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    use(stream, nullptr, 20);
    hipMemPoolProps properties = {};
    properties.allocType = hipMemAllocationTypePinned;
    properties.location.type = hipMemLocationTypeDevice;
    properties.location.id = 0;
    hipMemPool_t pool;
    HIP(hipMemPoolCreate(&pool, &properties));
    uint64_t keep = 1 << 20;
    HIP(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
    use(stream, pool, 20);
    HIP(hipMemPoolTrimTo(pool, 0));
    HIP(hipMemPoolDestroy(pool));
    HIP(hipStreamDestroy(stream));
    return passed();
}
