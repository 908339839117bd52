// y = a x + y over a vector of any length: a loop in which each work-item strides over the grid.
#include <hip/hip_runtime.h>

extern "C" __global__ void saxpy(float a, const float *__restrict__ x, float *__restrict__ y,
                                 unsigned count) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x)
        y[i] = fmaf(a, x[i], y[i]);
}
