// Templates of kernels and device code over types, sizes, function objects, lambdas and packs.
#include "check.h"

template <int unroll, typename T, typename Function>
__global__ void transform(const T *in, T *out, int count, Function function) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * unroll;
#pragma unroll
    for (int i = 0; i < unroll; i++)
        if (first + i < count)
            out[first + i] = function(in[first + i]);
}

template <typename T> struct Polynomial {
    T coefficients[4];
    __device__ __host__ T operator()(T x) const {
        T sum = 0;
        for (int i = 3; i >= 0; i--)
            sum = sum * x + coefficients[i];
        return sum;
    }
};

__device__ __host__ inline int total() { return 0; }
template <typename First, typename... Rest>
__device__ __host__ int total(First first, Rest... rest) {
    return (int)first + total(rest...);
}

template <typename... Values> __global__ void add_all(int *out, Values... values) {
    out[threadIdx.x] = total(values...) + (int)sizeof...(Values) * threadIdx.x;
}

template <unsigned n> struct Fibonacci {
    static const unsigned value = Fibonacci<n - 1>::value + Fibonacci<n - 2>::value;
};
template <> struct Fibonacci<1> { static const unsigned value = 1; };
template <> struct Fibonacci<0> { static const unsigned value = 0; };

template <int unroll, typename T, typename Function>
void check(const char *what, Function function) {
    const int count = 1000;
    std::vector<T> in(count), expected(count);
    Random random(6);
    for (int i = 0; i < count; i++) {
        in[i] = (T)(int)(random.word() % 200) - (T)100;
        expected[i] = function(in[i]);
    }
    T *device_in = to_device(in), *device_out = to_device(in);
    int blocks = (count + 64 * unroll - 1) / (64 * unroll);
    transform<unroll><<<blocks, 64>>>(device_in, device_out, count, function);
    HIP(hipGetLastError());
    expect_equal(what, from_device(device_out, count), expected);
    HIP(hipFree(device_in));
    HIP(hipFree(device_out));
}

int main() {
    // Integers, so that a fused multiply-add does not change the result.
    check<1, int>("polynomial of int", Polynomial<int>{{1, -2, 3, 4}});
    check<3, double>("polynomial of double", Polynomial<double>{{5, 4, -3, 2}});
    check<2, float>("polynomial of float", Polynomial<float>{{1, 2, 3, 1}});
    check<4, long long>("polynomial of long long", Polynomial<long long>{{7, 0, 1, 1000000007}});
    int offset = 42;
    check<2, int>("lambda", [offset] __device__ __host__(int x) { return x * x - offset; });
    check<4, int>("constant", [] __device__ __host__(int x) {
        return x + (int)Fibonacci<20>::value;
    });

    int *out = to_device(std::vector<int>(64));
    add_all<<<1, 64>>>(out, 1, 2.75f, (short)-3, 400000000000LL / 100000000000LL, (char)5, 6.5);
    HIP(hipGetLastError());
    std::vector<int> expected(64);
    for (int i = 0; i < 64; i++)
        expected[i] = 1 + 2 - 3 + 4 + 5 + 6 + 6 * i;
    expect_equal("pack", from_device(out, 64), expected);
    HIP(hipFree(out));
    return passed();
}
