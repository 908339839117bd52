// Counts how often each byte occurs: workgroups count in shared memory and add up the counts in
// global memory, with atomic operations in both.
//
// The additions commute: the result does not depend on the order of workgroups.
#include "program.h"

const int bins = 256, threads = 256, workgroups = 512;

__global__ void count_bytes(const uint32_t *words, int count, unsigned *counts) {
    __shared__ unsigned local_counts[bins];
    local_counts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * threads + threadIdx.x; i < count; i += threads * gridDim.x)
        for (int shift = 0; shift < 32; shift += 8)
            atomicAdd(&local_counts[words[i] >> shift & 255], 1u);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], local_counts[threadIdx.x]);
}

static void count_bytes_host(const uint32_t *words, int count, unsigned *counts) {
    for (int i = 0; i < count; i++)
        for (int shift = 0; shift < 32; shift += 8)
            counts[words[i] >> shift & 255]++;
}

int main(int count_of_arguments, char **arguments) {
    const int count = size(count_of_arguments, arguments, 1 << 24, 200000);
    Random random(7);
    std::vector<uint32_t> words(count);
    // Small bytes are more frequent.
    for (uint32_t &word : words)
        word = random.word() & random.word();
    Device<uint32_t> device_words(words);
    Device<unsigned> device_counts(bins);
    double gpu = seconds(
        [&] { count_bytes<<<workgroups, threads>>>(device_words, count, device_counts); });
    std::vector<unsigned> counts(bins);
    double host = seconds([&] { count_bytes_host(words.data(), count, counts.data()); });
    expect_equal("counts", device_counts.values(), counts);
    return report("histogram", gpu, host, counts);
}
