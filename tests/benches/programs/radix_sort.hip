// Radix sort with 16 values per digit. Lanes of a wave vote on each digit, which gives each key its
// position among equal digits.
#include "program.h"

const int threads = 256, digits = 16, waves = threads / 64;

__device__ inline unsigned long long alike(uint32_t digit) {
    unsigned long long lanes = ~0ull;
    for (int bit = 0; bit < 4; bit++) {
        unsigned long long set = __ballot(digit >> bit & 1);
        lanes &= digit >> bit & 1 ? set : ~set;
    }
    return lanes;
}

// Number of keys of each digit in a workgroup, and the rank of each key in its wave.
__global__ void count_digits(const uint32_t *keys, int shift, int *counts) {
    __shared__ int local_counts[digits];
    if (threadIdx.x < digits)
        local_counts[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&local_counts[keys[blockIdx.x * threads + threadIdx.x] >> shift & (digits - 1)], 1);
    __syncthreads();
    if (threadIdx.x < digits)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = local_counts[threadIdx.x];
}

// One workgroup, with a contiguous range of the counts for each thread.
__global__ void to_offsets(int *counts, int count) {
    __shared__ int sums[threads];
    int stretch = (count + threads - 1) / threads, first = threadIdx.x * stretch, sum = 0;
    int end = min(first + stretch, count);
    for (int i = first; i < end; i++)
        sum += counts[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    int before = 0;
    for (int i = 0; i < threadIdx.x; i++)
        before += sums[i];
    for (int i = first; i < end; i++) {
        int count = counts[i];
        counts[i] = before;
        before += count;
    }
}

__global__ void scatter(const uint32_t *in, uint32_t *out, int shift, const int *offsets) {
    __shared__ int local_counts[waves][digits];
    int lane = threadIdx.x % 64, wave = threadIdx.x / 64;
    uint32_t key = in[blockIdx.x * threads + threadIdx.x], digit = key >> shift & (digits - 1);
    if (lane < digits)
        local_counts[wave][lane] = 0;
    __syncthreads();
    unsigned long long same = alike(digit);
    int rank = __popcll(same & ((1ull << lane) - 1));
    if (rank == 0)
        local_counts[wave][digit] = __popcll(same);
    __syncthreads();
    for (int before = 0; before < wave; before++)
        rank += local_counts[before][digit];
    out[offsets[digit * gridDim.x + blockIdx.x] + rank] = key;
}

// One byte per digit: larger digits are faster on a host.
static void sort_host(std::vector<uint32_t> &keys, std::vector<uint32_t> &other) {
    for (int shift = 0; shift < 32; shift += 8) {
        size_t counts[256] = {}, sum = 0;
        for (uint32_t key : keys)
            counts[key >> shift & 255]++;
        for (size_t &count : counts)
            std::swap(count, sum), sum += count;
        for (uint32_t key : keys)
            other[counts[key >> shift & 255]++] = key;
        keys.swap(other);
    }
}

int main(int count_of_arguments, char **arguments) {
    const int workgroups = size(count_of_arguments, arguments, 1024, 20);
    Random random(15);
    std::vector<uint32_t> keys(workgroups * threads), other(keys.size());
    for (uint32_t &key : keys)
        key = random.word();
    Device<uint32_t> a(keys), b(keys);
    Device<int> counts(workgroups * digits);
    uint32_t *in = a, *out = b;
    double gpu = seconds([&] {
        for (int shift = 0; shift < 32; shift += 4) {
            count_digits<<<workgroups, threads>>>(in, shift, counts);
            to_offsets<<<1, threads>>>(counts, workgroups * digits);
            scatter<<<workgroups, threads>>>(in, out, shift, counts);
            std::swap(in, out);
        }
    });
    double host = seconds([&] { sort_host(keys, other); });
    expect_equal("keys", from_device(in, keys.size()), keys);
    return report("radix_sort", gpu, host, keys);
}
