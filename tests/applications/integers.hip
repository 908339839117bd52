// Signed and unsigned integer arithmetic of 8 to 64 bits matches the host: division, remainders,
// high halves of products, shifts by variable amounts, bit fields, saturation, a hash.
#include "check.h"

const int results = 16;

__device__ __host__ uint64_t high_product(uint64_t a, uint64_t b) {
#ifdef __HIP_DEVICE_COMPILE__
    return __umul64hi(a, b);
#else
    return (uint64_t)((unsigned __int128)a * b >> 64);
#endif
}

__device__ __host__ void compute(uint64_t a, uint64_t b, uint64_t *out) {
    uint32_t x = (uint32_t)a, y = (uint32_t)b | 1;
    int64_t signed_a = (int64_t)a, signed_b = (int64_t)(b >> 20 | 1);
    *out++ = a / (b >> 7 | 1);
    *out++ = a % (b >> 33 | 1);
    *out++ = (uint64_t)(signed_a / signed_b);
    *out++ = (uint64_t)(signed_a % -(signed_b | 2));
    *out++ = x / (y >> 9 | 1) + ((uint64_t)(x % y) << 32);
    *out++ = (uint64_t)((int32_t)x / (int32_t)(y >> 16 | 1));
    *out++ = high_product(a, b);
    *out++ = a * b + (uint64_t)x * y;
    *out++ = (uint64_t)((int64_t)(int32_t)x * (int32_t)y);
    *out++ = a << (b & 63) | a >> (64 - (b & 63) & 63);
    *out++ = (uint64_t)(signed_a >> (b & 63));
    *out++ = (x >> 5 & 0x7ff) | (uint64_t)(((int32_t)x << 3) >> 20) << 32;
    *out++ = (uint8_t)(x * y) + ((uint64_t)(int16_t)(x + y) << 32) + (int8_t)(y >> 3);
    int32_t sum = (int32_t)(x >> 1) + (int32_t)(y >> 2);
    *out++ = (uint64_t)(sum > 1000000000 ? 1000000000 : sum < -5 ? -5 : sum);
    *out++ = (uint64_t)(signed_a < (int64_t)b) + 2 * (a < b) + 4 * ((int32_t)x >= (int32_t)y);
    // FNV-1a
    uint64_t hash = 14695981039346656037ull;
    for (int byte = 0; byte < 8; byte++)
        hash = (hash ^ (a >> byte * 8 & 0xff)) * 1099511628211ull;
    *out++ = hash;
}

__global__ void compute_all(const uint64_t *a, const uint64_t *b, uint64_t *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t values[results];
    compute(a[i], b[i], values);
    for (int result = 0; result < results; result++)
        out[i * results + result] = values[result];
}

int main() {
    const int count = 512, threads = 128;
    Random random(17);
    std::vector<uint64_t> a(count), b(count), expected(count * results);
    for (int i = 0; i < count; i++) {
        // Values of every magnitude, including the limits of the range.
        a[i] = ((uint64_t)random.word() << 32 | random.word()) >> i % 64;
        b[i] = ((uint64_t)random.word() << 32 | random.word()) >> i / 8 % 64;
        if (i % 16 == 15)
            a[i] = (uint64_t)1 << 63;
        if (i % 16 == 14)
            b[i] = ~0ull;
        compute(a[i], b[i], &expected[i * results]);
    }
    uint64_t *device_a = to_device(a), *device_b = to_device(b), *out = to_device(expected);
    HIP(hipMemset(out, 0, count * results * sizeof(uint64_t)));
    compute_all<<<count / threads, threads>>>(device_a, device_b, out);
    HIP(hipGetLastError());
    std::vector<uint64_t> found = from_device(out, count * results);
    for (int i = 0; i < count * results; i++)
        EXPECT(found[i] == expected[i], "result %d of %#llx and %#llx is %#llx, not %#llx",
               i % results, (unsigned long long)a[i / results], (unsigned long long)b[i / results],
               (unsigned long long)found[i], (unsigned long long)expected[i]);
    for (uint64_t *buffer : {device_a, device_b, out})
        HIP(hipFree(buffer));
    return passed();
}
