// A kernel names an address where nothing is as the signal of its own packet.
#include "../own_packet.h"

int main() {
    rewrite<<<1, 1>>>((long *)0x123450000000);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return passed();
}
