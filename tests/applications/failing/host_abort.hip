// The host calls abort() after a kernel that succeeded.
#include "../check.h"

__global__ void set(int *out) { out[threadIdx.x] = threadIdx.x; }

int main() {
    int *out = to_device(std::vector<int>(64));
    set<<<1, 64>>>(out);
    HIP(hipGetLastError());
    std::vector<int> expected(64);
    for (int i = 0; i < 64; i++)
        expected[i] = i;
    expect_equal("out", from_device(out, 64), expected);
    abort();
}
