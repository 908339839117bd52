// A kernel that never ends.
#include "../check.h"

__global__ void wait(volatile int *never) {
    while (*never == 0) {
    }
}

int main() {
    // A host that waits by polling occupies a core that the embedded GPU needs.
    HIP(hipSetDeviceFlags(hipDeviceScheduleBlockingSync));
    int *never = to_device(std::vector<int>(1));
    wait<<<1, 64>>>(never);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return passed();
}
