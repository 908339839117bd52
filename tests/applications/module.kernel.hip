// Code object loaded by module.hip.
#include <hip/hip_runtime.h>

__device__ int factor = 2;

extern "C" __global__ void scale(const int *in, int *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = in[i] * factor;
}

struct Pair {
    char small;
    double large;
};

extern "C" __global__ void sum_of_pairs(Pair pair, double *out) {
    extern __shared__ double sums[];
    sums[threadIdx.x] = pair.small + pair.large * threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum = 0;
        for (int i = 0; i < blockDim.x; i++)
            sum += sums[i];
        out[blockIdx.x] = sum;
    }
}
