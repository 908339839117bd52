// A kernel that calls the host if a value is wrong.
#include <hip/hip_runtime.h>

#include <assert.h>

extern "C" __global__ void checks(const int *values, int *doubled) {
    int value = values[threadIdx.x];
    assert(value != 37);
    doubled[threadIdx.x] = 2 * value;
}
