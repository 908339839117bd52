// A small computation. The argument selects the reaction of the program to a wrong result. Without
// a fault the output does not depend on the argument.
#include "../check.h"

#include <unistd.h>

const int count = 64;
// The compiler must not remove stores to it.
void *volatile kept;

__global__ void fill(const float *in, float *out, int rounds) {
    float value = in[threadIdx.x];
    // The compiler must keep the loop and its scalar counter.
    for (int round = 0; round < rounds; round++)
        value = __builtin_fmaf(value, 0.5f, 1.0f);
    out[threadIdx.x] = value;
}

int main(int arguments, char **argument) {
    std::string reaction = arguments > 1 ? argument[1] : "print";
    std::vector<float> values(count), expected(count);
    for (int i = 0; i < count; i++) {
        values[i] = i;
        expected[i] = values[i];
        for (int round = 0; round < 5; round++)
            expected[i] = std::fma(expected[i], 0.5f, 1.0f);
    }
    float *in = to_device(values), *out = to_device(std::vector<float>(count));
    fill<<<1, count>>>(in, out, 5);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    std::vector<float> result = from_device(out, count);
    bool is_wrong = result != expected;
    if (is_wrong && reaction == "exit")
        exit(3);
    if (is_wrong && reaction == "abort")
        abort();
    if (is_wrong && reaction == "hang")
        sleep(1000);
    if (is_wrong && reaction == "flood")
        for (;;)
            puts("a line that never ends to be written");
    if (is_wrong && reaction == "hoard")
        for (size_t size = 64 << 20;; size += size)
            kept = memset(malloc(size), 1, size);
    if (is_wrong && reaction == "misuse")
        HIP(hipMemcpy(out, values.data(), 1ull << 50, hipMemcpyHostToDevice));
    if (is_wrong && reaction == "file")
        puts("wrong, and reported in a file only");
    FILE *file = fopen("result.txt", "w");
    for (float value : result)
        fprintf(reaction == "file" ? file : stdout, "%.9g\n", value);
    fclose(file);
    return 0;
}
