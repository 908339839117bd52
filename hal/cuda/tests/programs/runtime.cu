// A program on the runtime API, with kernels and variables in the same file.
#include "runtime.h"

__constant__ float factors[4];
__device__ int total = 3;

template <typename T> __global__ void scale(T *data, int n)
{
    int i = blockIdx_x * blockDim_x + threadIdx_x;
    if (i < n)
        data[i] = data[i] * factors[i % 4];
}

__global__ void sum(const int *data)
{
    __nvvm_atom_add_gen_i(&total, data[threadIdx_x]);
}

__global__ void reverse(int *data)
{
    extern __shared__ int shared[];
    shared[threadIdx_x] = data[threadIdx_x];
    __syncthreads();
    data[threadIdx_x] = shared[blockDim_x - 1 - threadIdx_x];
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

__global__ void wild(int *to)
{
    *to = 1;
}

__global__ void say(int base)
{
    int value = base + threadIdx_x;
    vprintf("value %d\n", &value);
}

int main(int count, char **)
{
    int found, version;
    CALL(cudaGetDeviceCount(&found));
    CHECK(found == 1);
    CALL(cudaRuntimeGetVersion(&version));
    CHECK(version >= 12000);
    CALL(cudaDeviceGetAttribute(&found, 76, 0));
    enum { N = 1000 };
    static float data[N], expected[N];
    float host_factors[4] = {1.0f, 2.0f, 0.5f, -3.0f};
    for (int i = 0; i < N; i++) {
        data[i] = 0.125f * i;
        expected[i] = data[i] * host_factors[i % 4];
    }
    CALL(cudaMemcpyToSymbol(factors, host_factors, sizeof factors, 0, cudaMemcpyHostToDevice));
    float *device;
    CALL(cudaMalloc((void **)&device, sizeof data));
    CALL(cudaMemcpy(device, data, sizeof data, cudaMemcpyHostToDevice));
    cudaEvent_t begin, end;
    CALL(cudaEventCreate(&begin));
    CALL(cudaEventCreate(&end));
    CALL(cudaEventRecord(begin, 0));
    scale<float><<<(N + 63) / 64, 64>>>(device, N);
    CALL(cudaEventRecord(end, 0));
    CALL(cudaGetLastError());
    CALL(cudaMemcpy(data, device, sizeof data, cudaMemcpyDefault));
    for (int i = 0; i < N; i++)
        CHECK(data[i] == expected[i]);
    float milliseconds;
    CALL(cudaEventElapsedTime(&milliseconds, begin, end));
    CHECK(milliseconds > 0);

    int *managed;
    CALL(cudaMallocManaged((void **)&managed, 64 * sizeof(int), 1));
    for (int i = 0; i < 64; i++)
        managed[i] = i;
    cudaStream_t stream;
    CALL(cudaStreamCreate(&stream));
    sum<<<1, 64, 0, stream>>>(managed);
    reverse<<<1, 64, 64 * sizeof(int), stream>>>(managed);
    CALL(cudaStreamSynchronize(stream));
    CHECK(managed[0] == 63 && managed[63] == 0);
    CALL(cudaMemcpyFromSymbol(&found, &total, sizeof found, 0, cudaMemcpyDeviceToHost));
    CHECK(found == 3 + 63 * 32);

    // Workgroups that wait for each other.
    int *arrived = managed, *counts = managed + 1;
    *arrived = 0;
    void *arguments_of_meet[] = {&arrived, &counts};
    CALL(cudaLaunchCooperativeKernel((const void *)meet, 7, 9, arguments_of_meet, 0, stream));
    CALL(cudaStreamSynchronize(stream));
    for (int i = 0; i < 63; i++)
        CHECK(counts[i] == 7);
    EXPECT(720, cudaLaunchCooperativeKernel((const void *)meet, 513, 9, arguments_of_meet, 0, stream));
    EXPECT(720, cudaGetLastError());

    int rows[3][2] = {{1, 2}, {3, 4}, {5, 6}}, back[3][2];
    void *pitched;
    size_t pitch;
    CALL(cudaMallocPitch(&pitched, &pitch, 8, 3));
    CALL(cudaMemcpy2D(pitched, pitch, rows, 8, 8, 3, cudaMemcpyHostToDevice));
    CALL(cudaMemcpy2D(back, 8, pitched, pitch, 8, 3, cudaMemcpyDeviceToHost));
    CHECK(back[2][1] == 6);

    say<<<1, 2>>>(40);
    CALL(cudaDeviceSynchronize());

    // Errors of calls are kept until they are read; errors of kernels stay.
    EXPECT(2, cudaMalloc((void **)&device, 1ul << 50));
    EXPECT(2, cudaPeekAtLastError());
    EXPECT(2, cudaGetLastError());
    CALL(cudaGetLastError());
    reverse<<<1, 2048>>>(managed);
    EXPECT(9, cudaGetLastError());
    if (count > 1) {
        wild<<<1, 1>>>((int *)64);
        EXPECT(700, cudaDeviceSynchronize());
        EXPECT(700, cudaGetLastError());
        EXPECT(700, cudaMalloc((void **)&device, 4));
        CHECK(!strcmp(cudaGetErrorName(700), "cudaErrorIllegalAddress"));
    }
    puts("runtime: ok");
    return 0;
}
