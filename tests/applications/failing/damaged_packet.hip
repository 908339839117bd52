// A kernel sets the completion signal of its dispatch packet to an unmapped address.
#include "../dispatch_packet.h"

int main() {
    rewrite<<<1, 1>>>((long *)0x123450000000);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return passed();
}
