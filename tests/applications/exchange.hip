// Two devices whose kernels run at the same time: each waits for numbers that the other one writes, in
// pinned host memory and in the memory of both devices, as kernels of collective communication do.
#include "check.h"

// Passes `rounds` numbers back and forth: adds one to each number that arrives in `inbox` and writes it to
// `outbox`. The device that is `first` starts.
__global__ void exchange(int *inbox, int *outbox, int rounds, bool first, int *last) {
    int value = 0;
    if (first)
        __hip_atomic_store(outbox, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
    for (int round = 0; round < rounds; round++) {
        int arrived;
        do
            arrived = __hip_atomic_load(inbox, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
        while (arrived == value);
        value = arrived;
        if (round + 1 < rounds || !first)
            __hip_atomic_store(outbox, value + 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
    }
    *last = value;
}

// Exchanges through two mailboxes, and checks the number that arrives last at each device.
static void run(int *mailboxes[2], const char *kind) {
    const int rounds = 20;
    hipStream_t streams[2];
    int *last[2];
    for (int device = 0; device < 2; device++) {
        HIP(hipSetDevice(device));
        HIP(hipStreamCreate(&streams[device]));
        HIP(hipMalloc((void **)&last[device], sizeof(int)));
        HIP(hipMemset(mailboxes[device], 0, sizeof(int)));
        HIP(hipDeviceSynchronize());
    }
    for (int device = 0; device < 2; device++) {
        HIP(hipSetDevice(device));
        exchange<<<1, 1, 0, streams[device]>>>(mailboxes[device], mailboxes[1 - device], rounds,
                                               device == 0, last[device]);
        HIP(hipGetLastError());
    }
    for (int device = 0; device < 2; device++) {
        HIP(hipSetDevice(device));
        HIP(hipStreamSynchronize(streams[device]));
        int found = from_device(last[device], 1)[0], expected = 2 * rounds - (device == 1);
        EXPECT(found == expected, "%s: %d arrived at device %d, not %d", kind, found, device, expected);
    }
}

int main() {
    int devices = 0;
    HIP(hipGetDeviceCount(&devices));
    if (devices < 2) {
        printf("one device exchanges with nobody\n");
        return passed();
    }
    int *pinned[2], *own[2];
    for (int device = 0; device < 2; device++) {
        int has_access = 0;
        HIP(hipDeviceCanAccessPeer(&has_access, device, 1 - device));
        EXPECT(has_access, "device %d cannot access memory of device %d", device, 1 - device);
        HIP(hipSetDevice(device));
        HIP(hipDeviceEnablePeerAccess(1 - device, 0));
        HIP(hipHostMalloc((void **)&pinned[device], sizeof(int),
                          hipHostMallocCoherent | hipHostMallocPortable));
        HIP(hipMalloc((void **)&own[device], sizeof(int)));
    }
    run(pinned, "pinned memory");
    run(own, "memory of the devices");
    printf("two devices exchanged\n");
    return passed();
}
