// Double precision: every rounding matches the host, including numbers that float cannot represent.
#include "check.h"

// Products and sums are rounded separately, except in fma.
#pragma clang fp contract(off)

__device__ __host__ double formula(double x, double y) {
    double quotient = x / y;
    double root = sqrt(fabs(quotient) + 1e-300);
    double sum = fma(x, y, -quotient);
    return fma(root, sum, x - y * 0.1);
}

__global__ void formulas(const double *x, const double *y, double *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = formula(x[i], y[i]);
}

struct Conversions {
    float single;
    int integer;
    long long wide;
    unsigned long long unsigned_wide;
    double from_wide, from_unsigned_wide, floor, rint, remainder;
    int exponent;
};

__device__ __host__ Conversions convert(double x) {
    Conversions c;
    c.single = (float)x;
    c.integer = (int)(x * 1e-3);
    c.wide = (long long)(x * 1e6);
    c.unsigned_wide = (unsigned long long)(fabs(x) * 1e7);
    c.from_wide = (double)(c.wide * 12345);
    c.from_unsigned_wide = (double)(c.unsigned_wide * 54321);
    c.floor = floor(x);
    c.rint = rint(x);
    c.remainder = fmod(x, 7.25);
    frexp(x, &c.exponent);
    return c;
}

__global__ void conversions(const double *x, Conversions *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = convert(x[i]);
}

int main() {
    const int count = 1024, threads = 256;
    Random random(10);
    std::vector<double> x(count), y(count), expected(count);
    for (int i = 0; i < count; i++) {
        x[i] = (random.real(-1, 1) + random.real(-1, 1) * 1e-8) * std::pow(10, i % 12 - 4);
        y[i] = random.real(1, 3) + random.real(0, 1) * 1e-9;
        expected[i] = formula(x[i], y[i]);
    }
    // Infinity and denormals.
    x[0] = 1e308, y[0] = 1e-5, expected[0] = formula(x[0], y[0]);
    x[1] = 5e-324, y[1] = 2, expected[1] = formula(x[1], y[1]);
    double *device_x = to_device(x), *device_y = to_device(y), *device_out = to_device(x);
    formulas<<<count / threads, threads>>>(device_x, device_y, device_out);
    HIP(hipGetLastError());
    expect_equal("formula", from_device(device_out, count), expected);

    x[0] = 1e10;
    HIP(hipMemcpy(device_x, x.data(), count * sizeof(double), hipMemcpyHostToDevice));
    Conversions *device_converted = to_device(std::vector<Conversions>(count));
    conversions<<<count / threads, threads>>>(device_x, device_converted);
    HIP(hipGetLastError());
    std::vector<Conversions> found = from_device(device_converted, count);
    for (int i = 0; i < count; i++) {
        Conversions right = convert(x[i]), is = found[i];
        EXPECT(is.single == right.single && is.integer == right.integer && is.wide == right.wide &&
                   is.unsigned_wide == right.unsigned_wide && is.from_wide == right.from_wide &&
                   is.from_unsigned_wide == right.from_unsigned_wide && is.floor == right.floor &&
                   is.rint == right.rint && is.remainder == right.remainder &&
                   is.exponent == right.exponent,
               "conversions of %.17g are wrong", x[i]);
    }
    for (void *buffer : {(void *)device_x, (void *)device_y, (void *)device_out,
                         (void *)device_converted})
        HIP(hipFree(buffer));
    return passed();
}
