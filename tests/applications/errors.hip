// Invalid calls fail with the right error, and the device keeps working afterwards.
#include "check.h"

__global__ void nothing() {}

__global__ void set(int *out) { out[threadIdx.x] = threadIdx.x + 1; }

int main() {
    hipDeviceProp_t properties;
    HIP(hipGetDeviceProperties(&properties, 0));

    nothing<<<1, properties.maxThreadsPerBlock + 1>>>();
    EXPECT(hipPeekAtLastError() != hipSuccess, "a workgroup that is too large was launched");
    EXPECT(hipGetLastError() != hipSuccess, "peeking forgot the error");
    HIP(hipGetLastError());
    nothing<<<dim3(1, 1, 1), dim3(0, 1, 1)>>>();
    EXPECT(hipGetLastError() != hipSuccess, "a workgroup of no threads was launched");
    nothing<<<1, 1, properties.sharedMemPerBlock + 1>>>();
    EXPECT(hipGetLastError() != hipSuccess, "a workgroup with too much memory was launched");

    void *pointer = nullptr;
    HIP_GIVES(hipErrorOutOfMemory, hipMalloc(&pointer, (size_t)1 << 60));
    EXPECT(hipGetLastError() == hipErrorOutOfMemory, "the error of hipMalloc is not the last one");
    HIP_GIVES(hipErrorInvalidValue, hipMalloc(nullptr, 16));
    HIP(hipMalloc(&pointer, 0));
    EXPECT(pointer == nullptr, "an allocation of nothing has an address");
    HIP(hipFree(nullptr));
    int local = 0;
    HIP_GIVES(hipErrorInvalidValue, hipFree(&local));
    HIP_GIVES(hipErrorInvalidValue, hipMemcpy(nullptr, &local, 4, hipMemcpyHostToDevice));
    HIP_GIVES(hipErrorInvalidDevice, hipSetDevice(1000));
    HIP_GIVES(hipErrorInvalidDevice, hipSetDevice(-1));
    HIP_GIVES(hipErrorInvalidSymbol, hipMemcpyToSymbol((const void *)&local, &local, 4));
    (void)hipGetLastError();
    EXPECT(std::string(hipGetErrorName(hipErrorOutOfMemory)) == "hipErrorOutOfMemory",
           "hipErrorOutOfMemory is called %s", hipGetErrorName(hipErrorOutOfMemory));

    int *out = to_device(std::vector<int>(64));
    set<<<1, 64>>>(out);
    HIP(hipGetLastError());
    std::vector<int> expected(64);
    for (int i = 0; i < 64; i++)
        expected[i] = i + 1;
    expect_equal("after the errors", from_device(out, 64), expected);
    HIP(hipFree(out));
    return passed();
}
