// A pipeline of kernels: each workgroup reduces its values in shared memory, and the results are
// reduced again until one value is left.
#include "check.h"

const int threads = 256;

template <typename T> __global__ void reduce(const T *in, T *out, int count) {
    __shared__ T partial[threads];
    T sum = 0;
    for (int i = blockIdx.x * threads * 2 + threadIdx.x, last = 0; last < 2; i += threads, last++)
        if (i < count)
            sum += in[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = partial[0];
}

template <typename T> T reduced(const std::vector<T> &values) {
    T *in = to_device(values), *out = to_device(values);
    int count = (int)values.size();
    while (count > 1) {
        int blocks = (count + 2 * threads - 1) / (2 * threads);
        reduce<<<blocks, threads>>>(in, out, count);
        HIP(hipGetLastError());
        std::swap(in, out);
        count = blocks;
    }
    T sum = from_device(in, 1)[0];
    HIP(hipFree(in));
    HIP(hipFree(out));
    return sum;
}

int main() {
    Random random(7);
    for (int count : {1, 2, 511, 513, 20000}) {
        std::vector<int> integers(count);
        std::vector<float> reals(count);
        std::vector<double> doubles(count);
        int sum = 0;
        double exact = 0;
        for (int i = 0; i < count; i++) {
            integers[i] = (int)(random.word() % 2001) - 1000;
            reals[i] = random.real(0, 1);
            doubles[i] = reals[i];
            sum += integers[i];
            exact += doubles[i];
        }
        int found = reduced(integers);
        EXPECT(found == sum, "the sum of %d integers is %d, not %d", count, found, sum);
        float single = reduced(reals);
        EXPECT(std::fabs(single - exact) <= 1e-5 * exact, "the sum of %d floats is %.9g, not %.9g",
               count, single, exact);
        double twice = reduced(doubles);
        EXPECT(std::fabs(twice - exact) <= 1e-13 * exact,
               "the sum of %d doubles is %.17g, not %.17g", count, twice, exact);
    }
    return passed();
}
