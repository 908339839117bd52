// All devices of the system, of one kind or several: each has its own memory and variables, computes
// its part, and passes results to the next. The arguments are the expected device names.
#include "check.h"

__device__ int here = -1;

__global__ void remember(int device) { here = device; }

__global__ void lanes(int *out) { *out = warpSize; }

__global__ void add(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * 10 + here;
}

int main(int named, char **names) {
    const int count = 1024, threads = 256;
    int devices = 0, current = -1;
    HIP(hipGetDeviceCount(&devices));
    EXPECT(devices >= 1, "%d devices", devices);
    HIP(hipGetDevice(&current));
    EXPECT(current == 0, "the first device is %d", current);
    EXPECT(named == 1 || named == 1 + devices, "%d devices, not %d", devices, named - 1);

    std::vector<int *> in(devices), out(devices);
    std::vector<hipStream_t> streams(devices);
    for (int device = 0; device < devices; device++) {
        HIP(hipSetDevice(device));
        HIP(hipStreamCreate(&streams[device]));
        HIP(hipMalloc((void **)&in[device], count * sizeof(int)));
        HIP(hipMalloc((void **)&out[device], count * sizeof(int)));
        remember<<<1, 1, 0, streams[device]>>>(device);
        HIP(hipGetLastError());
        HIP(hipStreamSynchronize(streams[device]));

        hipDeviceProp_t properties;
        HIP(hipGetDeviceProperties(&properties, device));
        std::string name = properties.gcnArchName;
        name = name.substr(0, name.find(':'));
        EXPECT(named == 1 || name == names[1 + device], "device %d is %s, not %s", device,
               name.c_str(), names[1 + device]);
        lanes<<<1, 1, 0, streams[device]>>>(out[device]);
        int found = from_device(out[device], 1)[0];
        EXPECT(found == properties.warpSize, "device %d has waves of %d lanes, not %d", device, found,
               properties.warpSize);
    }

    std::vector<int> values(count), expected(count);
    for (int i = 0; i < count; i++)
        values[i] = expected[i] = i;
    HIP(hipMemcpy(in[0], values.data(), count * sizeof(int), hipMemcpyHostToDevice));
    for (int device = 0; device < devices; device++) {
        HIP(hipSetDevice(device));
        add<<<count / threads, threads, 0, streams[device]>>>(in[device], out[device]);
        HIP(hipGetLastError());
        HIP(hipStreamSynchronize(streams[device]));
        if (device + 1 < devices)
            HIP(hipMemcpyPeer(in[device + 1], device + 1, out[device], device,
                              count * sizeof(int)));
        for (int &value : expected)
            value = value * 10 + device;
    }
    expect_equal("handed through", from_device(out[devices - 1], count), expected);

    // A device is never its own peer.
    int can_access = -1;
    HIP(hipDeviceCanAccessPeer(&can_access, 0, 0));
    EXPECT(can_access == 0, "a device is its own peer");
    for (int device = 0; device < devices; device++) {
        HIP(hipSetDevice(device));
        hipPointerAttribute_t attributes;
        HIP(hipPointerGetAttributes(&attributes, out[device]));
        EXPECT(attributes.device == device, "memory of device %d is of %d", device,
               attributes.device);
        HIP(hipFree(in[device]));
        HIP(hipFree(out[device]));
        HIP(hipStreamDestroy(streams[device]));
    }
    return passed();
}
