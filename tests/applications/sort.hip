// Two sorts of many launches each: bitonic over global memory, and radix with separate kernels for
// counting, offsets and scattering.
#include "check.h"

#include <algorithm>

const int count = 2048, threads = 128, blocks = count / threads, digits = 16;

__global__ void compare_exchange(uint32_t *keys, int distance, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, partner = i ^ distance;
    if (partner < i)
        return;
    bool ascends = (i & size) == 0;
    uint32_t a = keys[i], b = keys[partner];
    if ((a > b) == ascends) {
        keys[i] = b;
        keys[partner] = a;
    }
}

__global__ void count_digits(const uint32_t *keys, int shift, int *counts) {
    __shared__ int local_counts[digits];
    if (threadIdx.x < digits)
        local_counts[threadIdx.x] = 0;
    __syncthreads();
    uint32_t key = keys[blockIdx.x * threads + threadIdx.x];
    atomicAdd(&local_counts[key >> shift & digits - 1], 1);
    __syncthreads();
    if (threadIdx.x < digits)
        counts[threadIdx.x * blocks + blockIdx.x] = local_counts[threadIdx.x];
}

__global__ void to_offsets(int *counts) {
    int sum = 0;
    for (int i = 0; i < digits * blocks; i++) {
        int count = counts[i];
        counts[i] = sum;
        sum += count;
    }
}

// Keys with the same digit keep their order.
__global__ void scatter(const uint32_t *in, uint32_t *out, int shift, const int *offsets) {
    __shared__ unsigned char all[threads];
    uint32_t key = in[blockIdx.x * threads + threadIdx.x], digit = key >> shift & digits - 1;
    all[threadIdx.x] = digit;
    __syncthreads();
    int rank = 0;
    for (int before = 0; before < threadIdx.x; before++)
        rank += all[before] == digit;
    out[offsets[digit * blocks + blockIdx.x] + rank] = key;
}

int main() {
    Random random(9);
    std::vector<uint32_t> keys(count);
    for (uint32_t &key : keys)
        key = random.word() & 0xfffff;
    std::vector<uint32_t> sorted = keys;
    std::sort(sorted.begin(), sorted.end());

    uint32_t *a = to_device(keys), *b = to_device(keys);
    for (int size = 2; size <= count; size *= 2)
        for (int distance = size / 2; distance > 0; distance /= 2)
            compare_exchange<<<blocks, threads>>>(a, distance, size);
    HIP(hipGetLastError());
    expect_equal("bitonic", from_device(a, count), sorted);

    HIP(hipMemcpy(a, keys.data(), count * sizeof(uint32_t), hipMemcpyHostToDevice));
    int *counts = nullptr;
    HIP(hipMalloc((void **)&counts, digits * blocks * sizeof(int)));
    for (int shift = 0; shift < 20; shift += 4) {
        count_digits<<<blocks, threads>>>(a, shift, counts);
        to_offsets<<<1, 1>>>(counts);
        scatter<<<blocks, threads>>>(a, b, shift, counts);
        HIP(hipGetLastError());
        std::swap(a, b);
    }
    expect_equal("by digits", from_device(a, count), sorted);
    for (void *buffer : {(void *)a, (void *)b, (void *)counts})
        HIP(hipFree(buffer));
    return passed();
}
