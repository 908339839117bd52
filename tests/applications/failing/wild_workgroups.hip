// Late workgroups of a grid write to unmapped addresses, each to a different one.
#include "../check.h"

__global__ void write(unsigned int *out, unsigned int rounds, unsigned int first) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, value = i;
    for (unsigned int round = 0; round < rounds; round++)
        value = (value ^ value >> 15) * 0x2c1b3c6du + round;
    if (blockIdx.x >= first)
        out = (unsigned int *)(0x123450000000 + blockIdx.x * 0x10000ull);
    out[threadIdx.x] = value;
}

int main() {
    unsigned int *out;
    HIP(hipMalloc((void **)&out, 1024));
    write<<<2000, 256>>>(out, 40, 0x321);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return passed();
}
