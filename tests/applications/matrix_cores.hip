// A matrix product on the matrix cores (gfx908 and gfx90a), in float, half and double. Other devices
// use plain multiplication.
#include "check.h"

typedef float Float4 __attribute__((ext_vector_type(4)));
typedef float Float16 __attribute__((ext_vector_type(16)));
typedef _Float16 Half4 __attribute__((ext_vector_type(4)));
typedef double Double4 __attribute__((ext_vector_type(4)));

#if defined(__gfx908__) || defined(__gfx90a__)
#define HAS_MFMA 1
#endif
#if defined(__gfx90a__)
#define HAS_MFMA_F64 1
#endif

const int depth = 16;

template <typename T, typename Sum>
__device__ void plainly(int side, const T *a, const T *b, Sum *c) {
    for (int i = threadIdx.x; i < side * side; i += blockDim.x) {
        Sum sum = 0;
        for (int k = 0; k < depth; k++)
            sum += (Sum)a[i / side * depth + k] * (Sum)b[k * side + i % side];
        c[i] = sum;
    }
}

// 32 x 32: per step, each lane holds one element of a column of A and of a row of B, and 16 of C.
__global__ void single_32(const float *a, const float *b, float *c) {
#ifdef HAS_MFMA
    int lane = threadIdx.x, place = lane % 32, group = lane / 32;
    Float16 sums = {0};
    for (int k = 0; k < depth; k += 2)
        sums = __builtin_amdgcn_mfma_f32_32x32x2f32(a[place * depth + k + group],
                                                    b[(k + group) * 32 + place], sums, 0, 0, 0);
    for (int i = 0; i < 16; i++)
        c[(i / 4 * 8 + group * 4 + i % 4) * 32 + place] = sums[i];
#else
    plainly(32, a, b, c);
#endif
}

// 16 x 16, four steps of half precision at once.
__global__ void half_16(const _Float16 *a, const _Float16 *b, float *c) {
#ifdef HAS_MFMA
    int place = threadIdx.x % 16, group = threadIdx.x / 16;
    Half4 row, column;
    for (int i = 0; i < 4; i++) {
        row[i] = a[place * depth + group * 4 + i];
        column[i] = b[(group * 4 + i) * 16 + place];
    }
    Float4 sums = {0};
    sums = __builtin_amdgcn_mfma_f32_16x16x16f16(row, column, sums, 0, 0, 0);
    for (int i = 0; i < 4; i++)
        c[(group * 4 + i) * 16 + place] = sums[i];
#else
    plainly(16, a, b, c);
#endif
}

__global__ void double_16(const double *a, const double *b, double *c) {
#ifdef HAS_MFMA_F64
    int place = threadIdx.x % 16, group = threadIdx.x / 16;
    Double4 sums = {0};
    for (int k = 0; k < depth; k += 4)
        sums = __builtin_amdgcn_mfma_f64_16x16x4f64(a[place * depth + k + group],
                                                    b[(k + group) * 16 + place], sums, 0, 0, 0);
    for (int i = 0; i < 4; i++)
        c[(i * 4 + group) * 16 + place] = sums[i];
#else
    plainly(16, a, b, c);
#endif
}

template <typename T, typename Sum>
void check(const char *what, void (*kernel)(const T *, const T *, Sum *), int side) {
    // Small integers are exact in every format and order.
    Random random(15);
    std::vector<T> a(side * depth), b(depth * side);
    for (int i = 0; i < side * depth; i++) {
        a[i] = (T)((int)(random.word() % 21) - 10);
        b[i] = (T)((int)(random.word() % 21) - 10);
    }
    std::vector<Sum> c(side * side);
    for (int i = 0; i < side * side; i++)
        for (int k = 0; k < depth; k++)
            c[i] += (Sum)a[i / side * depth + k] * (Sum)b[k * side + i % side];
    T *device_a = to_device(a), *device_b = to_device(b);
    Sum *device_c = to_device(std::vector<Sum>(side * side));
    kernel<<<1, 64>>>(device_a, device_b, device_c);
    HIP(hipGetLastError());
    expect_equal(what, from_device(device_c, side * side), c);
    HIP(hipFree(device_a));
    HIP(hipFree(device_b));
    HIP(hipFree(device_c));
}

int main() {
    check("32 x 32 float", single_32, 32);
    check("16 x 16 half", half_16, 16);
    check("16 x 16 double", double_16, 16);
    return passed();
}
