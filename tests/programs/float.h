// Building blocks of the programs of `float.rs`. IEEE 754 defines everything in it except NaNs:
// their signs and payloads differ between processors. Results therefore show every NaN as the same
// value, and no operation here turns the sign of a NaN into a number.
#include <stdint.h>

typedef _Float16 half;

struct inputs {
    half h[4];
    float f[4];
    double d[4];
    int32_t i[2];
    int64_t l[2];
};

#define EACH_TYPE(OF) OF(half, f16, int16_t) OF(float, f, int32_t) OF(double, , int64_t)

// C does not define the sign of the minimum of two zeros; adding zero makes it positive.
#define OPERATIONS(T, suffix, bits)                                                               \
    static T sqrt_##T(T a) { return __builtin_sqrt##suffix(a); }                                  \
    static T fabs_##T(T a) { return __builtin_fabs##suffix(a); }                                  \
    static T floor_##T(T a) { return __builtin_floor##suffix(a); }                                \
    static T ceil_##T(T a) { return __builtin_ceil##suffix(a); }                                  \
    static T trunc_##T(T a) { return __builtin_trunc##suffix(a); }                                \
    static T rint_##T(T a) { return __builtin_rint##suffix(a); }                                  \
    static T min_##T(T a, T b) { return __builtin_fmin##suffix(a, b) + (T)0; }                    \
    static T max_##T(T a, T b) { return __builtin_fmax##suffix(a, b) + (T)0; }                    \
    static T copysign_##T(T a, T b) { return __builtin_copysign##suffix(a, b != b ? (T)1 : b); }  \
    static uint64_t bits_##T(T a) {                                                               \
        bits word;                                                                                \
        __builtin_memcpy(&word, &a, sizeof word);                                                 \
        return a != a ? (uint64_t)0x7ff8 << 48 : (uint64_t)word;                                  \
    }
EACH_TYPE(OPERATIONS)

static float fma_float(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static double fma_double(double a, double b, double c) { return __builtin_fma(a, b, c); }
#if defined(__AMDGCN__) || defined(__NVPTX__)
static half fma_half(half a, half b, half c) { return __builtin_fmaf16(a, b, c); }
#else
// The sum needs 64 bits wherever it does not overflow half precision: it is exact.
_Static_assert(__LDBL_MANT_DIG__ >= 64, "an exact sum");
static half fma_half(half a, half b, half c) {
    return (half)((long double)a * (long double)b + (long double)c);
}
#endif

// Conversions to integers saturate, and NaN becomes zero. `limit` is the maximum plus one.
#define TO_INTEGER(T, I, least, greatest, limit)                                                  \
    static I T##_to_##I(T a) {                                                                    \
        double wide = a;                                                                          \
        return a != a ? 0 : wide >= limit ? greatest : wide <= (double)least ? least : (I)a;      \
    }
#define TO_INTEGERS(T, suffix, bits)                                                              \
    TO_INTEGER(T, int32_t, INT32_MIN, INT32_MAX, 0x1p31)                                          \
    TO_INTEGER(T, uint32_t, 0, UINT32_MAX, 0x1p32)                                                \
    TO_INTEGER(T, int64_t, INT64_MIN, INT64_MAX, 0x1p63)                                          \
    TO_INTEGER(T, uint64_t, 0, UINT64_MAX, 0x1p64)
EACH_TYPE(TO_INTEGERS)

static uint64_t bits_int32_t(int32_t a) { return (uint64_t)a; }
static uint64_t bits_int64_t(int64_t a) { return (uint64_t)a; }
