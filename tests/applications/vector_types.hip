// HIP's vector types from four bytes to four doubles: loads and stores of whole vectors, arithmetic.
#include "check.h"

struct All {
    uchar4 bytes;
    short2 shorts;
    int3 ints;
    uint4 words;
    float2 pair;
    float4 quad;
    longlong2 wide;
    double4 doubles;
};

__global__ void compute(const All *in, All *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    All all = in[i];
    all.bytes += make_uchar4(1, 2, 3, 4);
    all.shorts = all.shorts * make_short2(-1, 3);
    all.ints = make_int3(all.ints.z, all.ints.x, all.ints.y);
    all.words ^= make_uint4(1, 10, 100, 1000);
    all.pair = make_float2(all.pair.y * 0.5f, all.pair.x + 1);
    all.quad = all.quad * 2.0f + all.quad;
    all.wide = all.wide - make_longlong2(1LL << 40, 3);
    all.doubles = all.doubles / make_double4(1, 2, 4, 8);
    out[i] = all;
}

// Components in order, as numbers.
std::vector<double> numbers(const All &all) {
    return {(double)all.bytes.x, (double)all.bytes.y, (double)all.bytes.z, (double)all.bytes.w,
            (double)all.shorts.x, (double)all.shorts.y, (double)all.ints.x, (double)all.ints.y,
            (double)all.ints.z, (double)all.words.x, (double)all.words.y, (double)all.words.z,
            (double)all.words.w, all.pair.x, all.pair.y, all.quad.x, all.quad.y, all.quad.z,
            all.quad.w, (double)all.wide.x, (double)all.wide.y, all.doubles.x, all.doubles.y,
            all.doubles.z, all.doubles.w};
}

int main() {
    const int count = 256;
    std::vector<All> in(count);
    for (int i = 0; i < count; i++) {
        All &all = in[i];
        unsigned char byte = (unsigned char)i;
        all.bytes = make_uchar4(byte, byte / 2, 255 - byte, 7);
        all.shorts = make_short2((short)(i * 100), (short)-i);
        all.ints = make_int3(i, -i, i * i);
        all.words = make_uint4(i, i * 3, i * 1000, 4000000000u);
        all.pair = make_float2(i * 0.5f, -i);
        all.quad = make_float4(i, i + 0.25f, i + 0.5f, i + 0.75f);
        all.wide = make_longlong2((long long)i << 33, -i);
        all.doubles = make_double4(i, i * 3, i * 5, i * 7);
    }
    All *device_in = to_device(in), *device_out = to_device(in);
    compute<<<count / 64, 64>>>(device_in, device_out);
    HIP(hipGetLastError());
    std::vector<All> found = from_device(device_out, count);
    for (int i = 0; i < count; i++) {
        const All &all = in[i];
        All right;
        right.bytes = all.bytes;
        right.bytes.x += 1, right.bytes.y += 2, right.bytes.z += 3, right.bytes.w += 4;
        right.shorts = make_short2((short)-all.shorts.x, (short)(all.shorts.y * 3));
        right.ints = make_int3(all.ints.z, all.ints.x, all.ints.y);
        right.words = make_uint4(all.words.x ^ 1, all.words.y ^ 10, all.words.z ^ 100,
                                 all.words.w ^ 1000);
        right.pair = make_float2(all.pair.y * 0.5f, all.pair.x + 1);
        right.quad = make_float4(all.quad.x * 3, all.quad.y * 3, all.quad.z * 3, all.quad.w * 3);
        right.wide = make_longlong2(all.wide.x - (1LL << 40), all.wide.y - 3);
        right.doubles = make_double4(all.doubles.x, all.doubles.y / 2, all.doubles.z / 4,
                                     all.doubles.w / 8);
        expect_equal("components", numbers(found[i]), numbers(right));
    }
    HIP(hipFree(device_in));
    HIP(hipFree(device_out));
    return passed();
}
