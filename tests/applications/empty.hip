// Starts the runtime and does nothing else.
#include "check.h"

int main() {
    int devices = 0;
    HIP(hipInit(0));
    HIP(hipGetDeviceCount(&devices));
    EXPECT(devices >= 1, "no device");
    return passed();
}
