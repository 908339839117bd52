// Half precision: HIP functions on __half and __half2, and _Float16 of the compiler.
#include "check.h"

#if __clang_major__ >= 20 && HIP_VERSION_MAJOR < 6
// Before 6.0, HIP's header uses two functions that clang's headers declare only up to version 19.
typedef _Float16 HalfPair __attribute__((ext_vector_type(2)));
__device__ inline _Float16 __llvm_amdgcn_rcp_f16(_Float16 x) { return __builtin_amdgcn_rcph(x); }
__device__ inline HalfPair __llvm_amdgcn_rcp_2f16(HalfPair x) {
    return HalfPair{__llvm_amdgcn_rcp_f16(x.x), __llvm_amdgcn_rcp_f16(x.y)};
}
#endif

#include <hip/hip_fp16.h>

__global__ void halves(const float *x, const float *y, float *sum, float *product, float *fused,
                       float *root) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half a = __float2half(x[i]), b = __float2half(y[i]);
    sum[i] = __half2float(__hadd(a, b));
    product[i] = __half2float(__hmul(a, b));
    fused[i] = __half2float(__hfma(a, b, a));
    root[i] = __half2float(hsqrt(__habs(a)));
}

// Packed pairs.
__global__ void pairs(const __half2 *x, const __half2 *y, __half2 *out, int *greater) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __hfma2(x[i], y[i], __hadd2(x[i], __float2half2_rn(0.5f)));
    greater[i] = __hgt(__low2half(x[i]), __high2half(x[i]));
}

__global__ void native(const _Float16 *x, _Float16 *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    _Float16 sum = 0;
    for (int step = 0; step < 8; step++)
        sum += x[i] * (_Float16)step;
    out[i] = sum / (_Float16)3;
}

float rounded(float value) { return (float)(_Float16)value; }

int main() {
    const int count = 1024, threads = 256, blocks = count / threads;
    Random random(11);
    std::vector<float> x(count), y(count), sum(count), product(count), fused(count), root(count);
    std::vector<_Float16> small(count), native_expected(count);
    for (int i = 0; i < count; i++) {
        x[i] = rounded(random.real(-4, 4));
        y[i] = rounded(random.real(-100, 100) * (i % 10 == 0 ? 1e-5f : 1));
        // float represents sums and products of halves exactly, or closely enough for correct rounding.
        sum[i] = rounded(x[i] + y[i]);
        product[i] = rounded(x[i] * y[i]);
        fused[i] = (float)(_Float16)((double)x[i] * y[i] + x[i]);
        root[i] = rounded(std::sqrt(std::fabs(x[i])));
        small[i] = (_Float16)(i % 64 - 32);
        native_expected[i] = (_Float16)((float)(28 * (i % 64 - 32)) / 3);
    }
    float *device[6] = {to_device(x), to_device(y), to_device(x),
                        to_device(x), to_device(x), to_device(x)};
    halves<<<blocks, threads>>>(device[0], device[1], device[2], device[3], device[4], device[5]);
    HIP(hipGetLastError());
    expect_equal("sum", from_device(device[2], count), sum);
    expect_equal("product", from_device(device[3], count), product);
    expect_equal("fused", from_device(device[4], count), fused);
    expect_close("root", from_device(device[5], count), root, 0.001);

    std::vector<_Float16> halves_x(count), halves_y(count), expected(count);
    std::vector<int> greater(count / 2);
    for (int i = 0; i < count; i++) {
        halves_x[i] = (_Float16)x[i];
        halves_y[i] = (_Float16)y[i];
        expected[i] = (_Float16)((double)x[i] * y[i] + rounded(x[i] + 0.5f));
        greater[i / 2] = x[i & ~1] > x[i | 1];
    }
    _Float16 *device_x = to_device(halves_x), *device_y = to_device(halves_y);
    _Float16 *device_out = to_device(small);
    int *device_greater = to_device(greater);
    pairs<<<blocks, threads / 2>>>((__half2 *)device_x, (__half2 *)device_y, (__half2 *)device_out,
                                   device_greater);
    HIP(hipGetLastError());
    expect_equal("pairs", from_device(device_out, count), expected);
    expect_equal("comparisons", from_device(device_greater, count / 2), greater);

    HIP(hipMemcpy(device_x, small.data(), count * sizeof(_Float16), hipMemcpyHostToDevice));
    native<<<blocks, threads>>>(device_x, device_out);
    HIP(hipGetLastError());
    expect_close("_Float16", from_device(device_out, count), native_expected, 0.001);
    for (float *buffer : device)
        HIP(hipFree(buffer));
    for (void *buffer : {(void *)device_x, (void *)device_y, (void *)device_out,
                         (void *)device_greater})
        HIP(hipFree(buffer));
    return passed();
}
