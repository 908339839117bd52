// One lane of a kernel calls abort().
#include "../check.h"

__global__ void give_up(int *out) {
    if (threadIdx.x == 37)
        abort();
    out[threadIdx.x] = threadIdx.x;
}

int main() {
    int *out = to_device(std::vector<int>(64));
    give_up<<<1, 64>>>(out);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return passed();
}
