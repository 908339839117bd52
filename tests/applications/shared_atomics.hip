// Atomics in shared memory, in one workgroup each: a histogram, extremes, 64-bit sums, floats, and a
// maximum with compare-and-swap.
#include "check.h"

#include <algorithm>

const int threads = 256, blocks = 4, bins = 32;

struct Summary {
    int counts[bins];
    int least, greatest;
    unsigned long long sum;
    float total;
    float greatest_real;
};

__global__ void summarise(const int *values, Summary *summaries) {
    __shared__ Summary summary;
    int value = values[blockIdx.x * blockDim.x + threadIdx.x];
    for (int i = threadIdx.x; i < bins; i += blockDim.x)
        summary.counts[i] = 0;
    if (threadIdx.x == 0) {
        summary.least = INT_MAX;
        summary.greatest = INT_MIN;
        summary.sum = 0;
        summary.total = 0;
        summary.greatest_real = -1e30f;
    }
    __syncthreads();
    atomicAdd(&summary.counts[(unsigned)value % bins], 1);
    atomicMin(&summary.least, value);
    atomicMax(&summary.greatest, value);
    atomicAdd(&summary.sum, (unsigned long long)(unsigned)value << 8);
    atomicAdd(&summary.total, (float)(value % 100));
    float real = (float)value * 0.5f;
    int *bits = (int *)&summary.greatest_real;
    int seen = *(volatile int *)bits;
    while (__int_as_float(seen) < real) {
        int before = atomicCAS(bits, seen, __float_as_int(real));
        if (before == seen)
            break;
        seen = before;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        summaries[blockIdx.x] = summary;
}

int main() {
    std::vector<int> values(threads * blocks);
    Random random(3);
    for (int &value : values)
        value = (int)(random.word() >> 4) - (1 << 27);
    int *device_values = to_device(values);
    Summary *device_summaries = to_device(std::vector<Summary>(blocks));
    summarise<<<blocks, threads>>>(device_values, device_summaries);
    HIP(hipGetLastError());
    std::vector<Summary> found = from_device(device_summaries, blocks);

    for (int block = 0; block < blocks; block++) {
        const int *group_values = &values[block * threads];
        std::vector<int> counts(bins);
        unsigned long long sum = 0;
        float total = 0;
        for (int i = 0; i < threads; i++) {
            counts[(unsigned)group_values[i] % bins]++;
            sum += (unsigned long long)(unsigned)group_values[i] << 8;
            total += (float)(group_values[i] % 100);
        }
        const Summary &summary = found[block];
        expect_equal("histogram", std::vector<int>(summary.counts, summary.counts + bins), counts);
        int least = *std::min_element(group_values, group_values + threads);
        int greatest = *std::max_element(group_values, group_values + threads);
        EXPECT(summary.least == least, "least: %d, not %d", summary.least, least);
        EXPECT(summary.greatest == greatest, "greatest: %d, not %d", summary.greatest, greatest);
        EXPECT(summary.sum == sum, "sum: %llu, not %llu", summary.sum, sum);
        EXPECT(summary.total == total, "total: %g, not %g", summary.total, total);
        EXPECT(summary.greatest_real == (float)greatest * 0.5f, "greatest real: %g, not %g",
               summary.greatest_real, (float)greatest * 0.5f);
    }
    HIP(hipFree(device_values));
    HIP(hipFree(device_summaries));
    return passed();
}
