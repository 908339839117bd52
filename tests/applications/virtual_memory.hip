// Memory at addresses that the program reserves and maps for the GPU itself. Some memory is still
// mapped when the program ends.
#include "check.h"

__global__ void add(int *values, int count, int more) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] += more + i;
}

int main() {
#if HIP_VERSION_MAJOR < 6
    // HIP 5 declares these functions without implementing them.
    return passed();
#else
    int supported = 0;
    HIP(hipDeviceGetAttribute(&supported, hipDeviceAttributeVirtualMemoryManagementSupported, 0));
    EXPECT(supported, "no virtual memory management");
    hipMemAllocationProp property = {};
    property.type = hipMemAllocationTypePinned;
    property.location.type = hipMemLocationTypeDevice;
    property.location.id = 0;
    size_t part = 0;
    HIP(hipMemGetAllocationGranularity(&part, &property, hipMemAllocationGranularityMinimum));
    hipMemGenericAllocationHandle_t handles[2];
    for (auto &handle : handles)
        HIP(hipMemCreate(&handle, part, &property, 0));
    void *place = nullptr;
    HIP(hipMemAddressReserve(&place, 2 * part, 0, nullptr, 0));
    hipMemAccessDesc access = {};
    access.location = property.location;
    access.flags = hipMemAccessFlagsProtReadWrite;
    // The second half first: one range for the kernel consists of two allocations.
    for (int half : {1, 0}) {
        void *address = (char *)place + half * part;
        HIP(hipMemMap(address, part, 0, handles[half], 0));
        HIP(hipMemSetAccess(address, part, &access, 1));
    }
    int count = 2 * part / sizeof(int);
    int *values = (int *)place;
    HIP(hipMemset(values, 0, 2 * part));
    add<<<(count + 255) / 256, 256>>>(values, count, 5);
    std::vector<int> found = from_device(values, count);
    for (int i = 0; i < count; i++)
        EXPECT(found[i] == 5 + i, "[%d] is %d", i, found[i]);
    // Maps the same memory at the address of the other half.
    HIP(hipMemUnmap(values, part));
    HIP(hipMemUnmap((char *)place + part, part));
    HIP(hipMemMap(place, part, 0, handles[1], 0));
    HIP(hipMemSetAccess(place, part, &access, 1));
    found = from_device(values, 1);
    EXPECT(found[0] == 5 + count / 2, "moved: %d", found[0]);
    return passed();
#endif
}
