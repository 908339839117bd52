// y = a x + y, launched in both notations, with grids whose size does not divide the work.
#include "check.h"

__global__ void saxpy(int count, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        y[i] = fmaf(a, x[i], y[i]);
}

// With fewer threads than elements.
__global__ void saxpy_in_strides(int count, float a, const float *x, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        y[i] = fmaf(a, x[i], y[i]);
}

int main() {
    const int count = 5000;
    Random random(1);
    std::vector<float> x(count), y(count);
    for (int i = 0; i < count; i++) {
        x[i] = random.real(-8, 8);
        y[i] = random.real(-8, 8);
    }
    float *device_x = to_device(x), *device_y = to_device(y);

    const int threads = 192, blocks = (count + threads - 1) / threads;
    saxpy<<<blocks, threads>>>(count, 1.5f, device_x, device_y);
    HIP(hipGetLastError());
    hipLaunchKernelGGL(saxpy, dim3(blocks), dim3(threads), 0, 0, count, -0.25f, device_x, device_y);
    HIP(hipGetLastError());
    saxpy_in_strides<<<3, 100, 0, nullptr>>>(count, 3.0f, device_x, device_y);
    HIP(hipGetLastError());
    // Launches by address, like launches that the compiler generates.
    float a = 0.125f;
    int all = count;
    void *arguments[] = {&all, &a, &device_x, &device_y};
    HIP(hipLaunchKernel((const void *)saxpy, dim3(blocks), dim3(threads), arguments, 0, nullptr));
    HIP(hipDeviceSynchronize());

    std::vector<float> expected = y;
    for (float factor : {1.5f, -0.25f, 3.0f, 0.125f})
        for (int i = 0; i < count; i++)
            expected[i] = std::fmaf(factor, x[i], expected[i]);
    expect_equal("y", from_device(device_y, count), expected);
    expect_equal("x", from_device(device_x, count), x);
    HIP(hipFree(device_x));
    HIP(hipFree(device_y));
    return passed();
}
