// A kernel that calls the host when a value is not what it should be.
#include <hip/hip_runtime.h>

#include <assert.h>

extern "C" __global__ void checks(const int *values, int *doubled) {
    int value = values[threadIdx.x];
    assert(value != 37);
    doubled[threadIdx.x] = 2 * value;
}
