// Kernels that need more registers than available, and indirect calls.
#include <hip/hip_runtime.h>

#define VECTORS 48
#define SCALARS 96

// Uses each of `count` values twice, in both orders, so that all are live at the same time.
#define MIX(values, count, mixed)                                                                  \
    _Pragma("unroll") for (int k = 0; k < (count); ++k) mixed = mixed * 31 + values[(count) - 1 - k]; \
    _Pragma("unroll") for (int k = 0; k < (count); ++k) mixed ^= values[k] >> k % 7;

extern "C" __global__ __attribute__((amdgpu_num_vgpr(24))) void
vectors(const unsigned *in, unsigned *out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned values[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        values[k] = in[i * VECTORS + k];
        // The compiler cannot rematerialize an opaque value with another load.
        asm volatile("" : "+v"(values[k]));
    }
    unsigned mixed = 0;
    MIX(values, VECTORS, mixed)
    out[i] = mixed;
}

extern "C" __global__ __attribute__((amdgpu_num_sgpr(48))) void
scalars(const unsigned *in, unsigned *out) {
    unsigned values[SCALARS];
#pragma unroll
    for (int k = 0; k < SCALARS; ++k) {
        values[k] = __builtin_amdgcn_readfirstlane(in[blockIdx.x * SCALARS + k]);
#ifdef __OPTIMIZE__ // Otherwise the values are in vector registers, which the compiler rejects.
        asm volatile("" : "+s"(values[k]));
#endif
    }
    unsigned mixed = threadIdx.x;
    MIX(values, SCALARS, mixed)
    out[blockIdx.x * blockDim.x + threadIdx.x] = mixed;
}

__device__ __attribute__((noinline)) unsigned doubled(unsigned x) { return 2 * x + 1; }
__device__ __attribute__((noinline)) unsigned squared(unsigned x) { return x * x; }
__device__ __attribute__((noinline)) unsigned inverted(unsigned x) { return ~x; }
__device__ __attribute__((noinline)) unsigned twice(unsigned x) { return squared(doubled(x)) ^ x; }

__device__ unsigned (*const steps[4])(unsigned) = {doubled, squared, inverted, twice};

// Lanes of a wave call different functions.
extern "C" __global__ void through_pointers(const unsigned *in, unsigned *out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = in[i];
    for (int k = 0; k < 6; ++k)
        x = steps[(x >> k) % 4](x);
    out[i] = x;
}
