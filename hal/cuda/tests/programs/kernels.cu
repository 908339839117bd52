// Kernels of the tests, compiled to PTX.
#include "device.h"

extern "C" __device__ int vprintf(const char *format, const void *arguments);
extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, unsigned long);
extern "C" __device__ void *malloc(unsigned long);
extern "C" __device__ void free(void *);

extern "C" {

__device__ int counter = 5;
__constant__ int table[4] = {1, 2, 3, 4};

__global__ void saxpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx_x * blockDim_x + threadIdx_x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

__global__ void count(int *out)
{
    __nvvm_atom_add_gen_i(&counter, table[threadIdx_x & 3]);
    out[threadIdx_x] = table[threadIdx_x & 3];
}

__global__ void store(int *to, int value)
{
    *to = value;
}

__global__ void wait_for(volatile int *flag, int *seen)
{
    while (*flag == 0)
        ;
    *seen = *flag;
}

__global__ void say(int base)
{
    struct { int thread; double half; const char *text; long wide; } arguments = {
        (int)threadIdx_x + base, threadIdx_x / 2.0, "text", 1l << 40};
    vprintf("thread %d: %.1f %s %ld%%\n", &arguments);
}

__global__ void check(int most)
{
    if ((int)threadIdx_x > most)
        __assertfail("x <= most", "kernels.cu", 7, "check", 1);
}

__global__ void stop(int *)
{
    __builtin_trap();
}

__global__ void misaligned(char *to)
{
    *(volatile int *)(to + 1) = 1;
}

// All workgroups wait for each other.
__global__ void meet(volatile int *arrived, int *out)
{
    if (threadIdx_x == 0)
        __nvvm_atom_add_gen_i((int *)arrived, 1);
    while (*arrived < (int)gridDim_x)
        ;
    out[blockIdx_x * blockDim_x + threadIdx_x] = *arrived;
}

__global__ void dynamic(int *out)
{
    extern __shared__ int shared[];
    shared[threadIdx_x] = threadIdx_x;
    __syncthreads();
    out[threadIdx_x] = shared[blockDim_x - 1 - threadIdx_x];
}

__global__ void heap(long *out)
{
    long *memory = (long *)malloc(sizeof(long));
    *memory = threadIdx_x;
    out[threadIdx_x] = *memory;
    free(memory);
}

}
