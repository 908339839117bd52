// Compares mathematical functions in single and double precision with those of the host.
#include "check.h"

#define FUNCTIONS(FUNCTION)                                                                        \
    FUNCTION(sin(x * 10))                                                                          \
    FUNCTION(cos(x * 1000))                                                                        \
    FUNCTION(tan(x))                                                                               \
    FUNCTION(asin(x / 4))                                                                          \
    FUNCTION(atan2(x, y))                                                                          \
    FUNCTION(exp(x))                                                                               \
    FUNCTION(exp2(x * 5))                                                                          \
    FUNCTION(expm1(x * (T)0.01))                                                                   \
    FUNCTION(log(y))                                                                               \
    FUNCTION(log10(y * 1000))                                                                      \
    FUNCTION(log1p(y))                                                                             \
    FUNCTION(pow(y, x))                                                                            \
    FUNCTION(sqrt(y))                                                                              \
    FUNCTION(cbrt(x))                                                                              \
    FUNCTION(hypot(x, y))                                                                          \
    FUNCTION(sinh(x))                                                                              \
    FUNCTION(tanh(x))                                                                              \
    FUNCTION(erf(x))                                                                               \
    FUNCTION(tgamma(y + 1))                                                                        \
    FUNCTION(fmod(x * 100, y))                                                                     \
    FUNCTION(floor(x) + ceil(y) + trunc(x * 3) + round(y * 5))                                     \
    FUNCTION(fmin(x, y) + fmax(x, y) * 2)                                                          \
    FUNCTION(copysign(y, x))                                                                       \
    FUNCTION(ldexp(x, 5))

#define ONE(formula) +1
const int functions = FUNCTIONS(ONE);
#define NAME(formula) #formula,
const char *const names[] = {FUNCTIONS(NAME)};

// Names without std::, so that the same text selects the function for T on both sides.
template <typename T> __device__ __host__ void evaluate(T x, T y, T *out) {
#define EVALUATE(formula) *out++ = formula;
    using namespace std;
    FUNCTIONS(EVALUATE)
}

template <typename T> __global__ void evaluate_all(const T *x, const T *y, T *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    evaluate(x[i], y[i], out + i * functions);
}

// Fast versions, as accurate as the hardware instructions.
__global__ void fast(const float *x, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __sinf(x[i]) + __expf(x[i]) * __fdividef(x[i], 3.0f) + rsqrtf(fabsf(x[i]) + 1);
}

template <typename T> void check(const char *type, double tolerance) {
    const int count = 256, threads = 64;
    Random random(14);
    std::vector<T> x(count), y(count);
    for (int i = 0; i < count; i++) {
        x[i] = random.real(-4, 4);
        y[i] = random.real(0.01f, 4);
    }
    T *device_x = to_device(x), *device_y = to_device(y), *device_out = nullptr;
    HIP(hipMalloc((void **)&device_out, count * functions * sizeof(T)));
    evaluate_all<<<count / threads, threads>>>(device_x, device_y, device_out);
    HIP(hipGetLastError());
    std::vector<T> found = from_device(device_out, count * functions);
    for (int i = 0; i < count; i++) {
        T expected[functions];
        evaluate(x[i], y[i], expected);
        for (int function = 0; function < functions; function++) {
            double is = found[i * functions + function], right = expected[function];
            EXPECT(std::fabs(is - right) <= tolerance * std::fmax(1, std::fabs(right)),
                   "%s: %s of x = %.17g, y = %.17g is %.17g, not %.17g", type, names[function],
                   (double)x[i], (double)y[i], is, right);
        }
    }
    HIP(hipFree(device_x));
    HIP(hipFree(device_y));
    HIP(hipFree(device_out));
}

int main() {
    check<float>("float", 2e-6);
    check<double>("double", 1e-14);

    const int count = 256;
    std::vector<float> x(count), expected(count);
    for (int i = 0; i < count; i++) {
        x[i] = i / 64.0f - 2;
        float root = std::sqrt(std::fabs(x[i]) + 1);
        expected[i] = std::sin(x[i]) + std::exp(x[i]) * (x[i] / 3) + 1 / root;
    }
    float *device_x = to_device(x), *device_out = to_device(x);
    fast<<<count / 64, 64>>>(device_x, device_out);
    HIP(hipGetLastError());
    expect_close("fast functions", from_device(device_out, count), expected, 1e-5);
    HIP(hipFree(device_x));
    HIP(hipFree(device_out));
    return passed();
}
