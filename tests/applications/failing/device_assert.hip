// An assertion of a kernel fails in one lane and reports its location.
#include "../check.h"

#include <cassert>

__global__ void check(const int *values) {
    int value = values[threadIdx.x];
    assert(value != 37 && "a value that must not be");
}

int main() {
    std::vector<int> values(64);
    for (int i = 0; i < 64; i++)
        values[i] = i;
    check<<<1, 64>>>(to_device(values));
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return passed();
}
