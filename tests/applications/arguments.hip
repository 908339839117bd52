// Kernel arguments of every size and alignment, including structures passed by value, and more
// bytes of arguments than most kernels have.
#include "check.h"

struct Small {
    char a;
    short b;
};

struct alignas(16) Aligned {
    float values[3];
};

struct Large {
    int numbers[250];
    const int *pointer;
    struct {
        double inner;
        char text[20];
    } nested;
};

__global__ void mixed(char a, long long b, short c, double d, bool e, Small f, float g, Aligned h,
                      unsigned char i, int *const *table, float3 j, double *out) {
    out[0] = a;
    out[1] = (double)b;
    out[2] = c;
    out[3] = d;
    out[4] = e;
    out[5] = f.a * 1000 + f.b;
    out[6] = g;
    out[7] = h.values[0] + h.values[1] * 10 + h.values[2] * 100;
    out[8] = i;
    out[9] = table[0][1] + table[1][0];
    out[10] = j.x + j.y * 10 + j.z * 100;
}

__global__ void large(Large value, int *out) {
    int i = threadIdx.x;
    // Indices into arguments are computed.
    out[i] = value.numbers[i * 7 % 250] + value.pointer[i % 3] + (int)value.nested.inner +
             value.nested.text[i % 20];
    value.numbers[i] = 0;
}

int main() {
    std::vector<int> first = {1, 20}, second = {300, 4};
    int *device_first = to_device(first), *device_second = to_device(second);
    int **table = to_device(std::vector<int *>{device_first, device_second});
    double *out = to_device(std::vector<double>(11));
    mixed<<<1, 1>>>('x', -123456789012LL, -77, 0.1, true, Small{5, -6}, 2.5f, Aligned{{1, 2, 3}},
                    200, table, make_float3(4, 5, 6), out);
    HIP(hipGetLastError());
    std::vector<double> read = {'x', -123456789012.0, -77, 0.1, 1,  4994,
                                2.5, 321,             200, 320, 654};
    expect_equal("arguments", from_device(out, 11), read);

    Large value;
    for (int i = 0; i < 250; i++)
        value.numbers[i] = i * i;
    std::vector<int> three = {1000000, 2000000, 3000000};
    value.pointer = to_device(three);
    value.nested.inner = -12.75;
    for (int i = 0; i < 20; i++)
        value.nested.text[i] = 'a' + i;
    int *large_out = to_device(std::vector<int>(250));
    std::vector<int> expected(250);
    // Each launch has its own copy.
    for (int round = 0; round < 3; round++) {
        large<<<1, 250>>>(value, large_out);
        HIP(hipGetLastError());
        for (int i = 0; i < 250; i++)
            expected[i] = value.numbers[i * 7 % 250] + three[i % 3] - 12 + 'a' + i % 20;
        expect_equal("large arguments", from_device(large_out, 250), expected);
        value.numbers[7] += 5;
    }
    for (void *buffer : {(void *)device_first, (void *)device_second, (void *)table, (void *)out,
                         (void *)value.pointer, (void *)large_out})
        HIP(hipFree(buffer));
    return passed();
}
