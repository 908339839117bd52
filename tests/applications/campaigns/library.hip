// Kernels in a code object larger than the range of a branch, as in large libraries.
#include "../check.h"

const int count = 64;

template <int number> __global__ void scale(const float *in, float *out) {
    // Never executed.
    if (in == nullptr)
        asm volatile(".rept 6000\n s_nop 0\n .endr");
    float value = in[threadIdx.x];
    for (int round = 0; round < 5; round++)
        value = __builtin_fmaf(value, 0.5f, number);
    out[threadIdx.x] = value;
}

const int kernels = 14;

template <int number> void launch(const float *in, float *out) {
    scale<number><<<1, count>>>(in, out + number * count);
    HIP(hipGetLastError());
    if constexpr (number > 0)
        launch<number - 1>(in, out);
}

int main() {
    std::vector<float> values(count);
    for (int i = 0; i < count; i++)
        values[i] = i;
    float *in = to_device(values), *out = to_device(std::vector<float>(kernels * count));
    launch<kernels - 1>(in, out);
    HIP(hipDeviceSynchronize());
    for (float value : from_device(out, kernels * count))
        printf("%.9g\n", value);
    return 0;
}
