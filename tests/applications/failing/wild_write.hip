// A kernel writes to an unmapped address.
#include "../check.h"

__global__ void write(int *anywhere) { *anywhere = 1; }

int main() {
    write<<<1, 1>>>((int *)0x123450000000);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return passed();
}
