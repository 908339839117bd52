// Every function of the math library, with one kernel per type, from `x`, `y` and `z` to `results`.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define KERNEL(name, T, suffix, call)                                                             \
    kernel void name##_##suffix(global const T *x, global const T *y, global const T *z,         \
                                global T *results) {                                              \
        size_t i = get_global_id(0);                                                              \
        results[i] = call;                                                                        \
    }

#define UNARY_OF(name, T, suffix)                                                                 \
    T __ocml_##name##_##suffix(T);                                                                \
    KERNEL(name, T, suffix, __ocml_##name##_##suffix(x[i]))
#define BINARY_OF(name, T, suffix)                                                                \
    T __ocml_##name##_##suffix(T, T);                                                             \
    KERNEL(name, T, suffix, __ocml_##name##_##suffix(x[i], y[i]))
#define OTHERS_OF(T, suffix)                                                                      \
    T __ocml_fma_##suffix(T, T, T);                                                               \
    KERNEL(fma, T, suffix, __ocml_fma_##suffix(x[i], y[i], z[i]))                                 \
    T __ocml_ldexp_##suffix(T, int);                                                              \
    KERNEL(ldexp, T, suffix, __ocml_ldexp_##suffix(x[i], (int)y[i]))                              \
    T __ocml_frexp_##suffix(T, private int *);                                                    \
    static T fraction_##suffix(T x) { int e; return __ocml_frexp_##suffix(x, &e); }               \
    static T exponent_##suffix(T x) { int e; __ocml_frexp_##suffix(x, &e); return e; }            \
    KERNEL(frexp, T, suffix, fraction_##suffix(x[i]))                                             \
    KERNEL(frexp_exponent, T, suffix, exponent_##suffix(x[i]))

#define UNARY(name) UNARY_OF(name, float, f32) UNARY_OF(name, double, f64) UNARY_OF(name, half, f16)
#define BINARY(name)                                                                              \
    BINARY_OF(name, float, f32) BINARY_OF(name, double, f64) BINARY_OF(name, half, f16)

UNARY(acos) UNARY(acosh) UNARY(acospi) UNARY(asin) UNARY(asinh) UNARY(asinpi) UNARY(atan)
UNARY(atanh) UNARY(atanpi) UNARY(cbrt) UNARY(cos) UNARY(cosh) UNARY(cospi) UNARY(erf) UNARY(erfc)
UNARY(exp) UNARY(exp2) UNARY(exp10) UNARY(expm1) UNARY(lgamma) UNARY(log) UNARY(log2) UNARY(log10)
UNARY(log1p) UNARY(rsqrt) UNARY(sin) UNARY(sinh) UNARY(sinpi) UNARY(sqrt) UNARY(tan) UNARY(tanh)
UNARY(tanpi) UNARY(tgamma)
BINARY(atan2) BINARY(fmod) BINARY(hypot) BINARY(pow) BINARY(remainder)
OTHERS_OF(float, f32) OTHERS_OF(double, f64) OTHERS_OF(half, f16)
