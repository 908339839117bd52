// Host memory that the device reads and writes in place: allocated as pinned, and registered.
#include "check.h"

// HIP 6.0 renamed the field.
static hipMemoryType kind(const hipPointerAttribute_t &attributes) {
#if HIP_VERSION_MAJOR < 6
    return attributes.memoryType;
#else
    return attributes.type;
#endif
}

__global__ void scale(const float *in, float *out, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * factor;
}

int main() {
    const int count = 2048, threads = 256;
    float *mapped = nullptr, *mapped_device = nullptr;
    HIP(hipHostMalloc((void **)&mapped, count * sizeof(float), hipHostMallocMapped));
    HIP(hipHostGetDevicePointer((void **)&mapped_device, mapped, 0));
    for (int i = 0; i < count; i++)
        mapped[i] = i * 0.25f;

    // Registered memory need not begin at a page boundary.
    std::vector<float> storage(count + 16);
    float *registered = storage.data() + 8, *registered_device = nullptr;
    HIP(hipHostRegister(registered, count * sizeof(float), hipHostRegisterDefault));
    HIP(hipHostGetDevicePointer((void **)&registered_device, registered, 0));

    scale<<<count / threads, threads>>>(mapped_device, registered_device, 3.0f);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    for (int i = 0; i < count; i++)
        EXPECT(registered[i] == i * 0.75f, "registered[%d] is %g", i, registered[i]);
    for (int i = 0; i < 8; i++)
        EXPECT(storage[i] == 0 && storage[count + 8 + i] == 0, "memory around it was written");

    // Asynchronous copies from and to such memory.
    float *device = nullptr;
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    HIP(hipMalloc((void **)&device, count * sizeof(float)));
    HIP(hipMemcpyAsync(device, registered, count * sizeof(float), hipMemcpyHostToDevice, stream));
    scale<<<count / threads, threads, 0, stream>>>(device, device, -2.0f);
    HIP(hipGetLastError());
    HIP(hipMemcpyAsync(mapped, device, count * sizeof(float), hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    for (int i = 0; i < count; i++)
        EXPECT(mapped[i] == i * -1.5f, "mapped[%d] is %g", i, mapped[i]);

    hipPointerAttribute_t attributes;
    HIP(hipPointerGetAttributes(&attributes, mapped));
    EXPECT(kind(attributes) == hipMemoryTypeHost, "pinned memory is not the host's");
    HIP(hipPointerGetAttributes(&attributes, device));
    EXPECT(kind(attributes) == hipMemoryTypeDevice, "device memory is not the device's");
    EXPECT(attributes.devicePointer == device, "device memory has another address");
    unsigned int flags = 0;
    HIP(hipHostGetFlags(&flags, mapped));
    EXPECT(flags & hipHostMallocMapped, "mapped memory has the flags %#x", flags);

    HIP(hipHostUnregister(registered));
    HIP(hipHostFree(mapped));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
    return passed();
}
