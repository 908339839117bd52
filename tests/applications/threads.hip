// Host threads that launch concurrently, each in its own stream, and all in one.
#include "check.h"

#include <thread>

const int count = 1024, threads = 128, rounds = 6;

__global__ void step(uint32_t *values, uint32_t salt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = (values[i] ^ salt) * 2654435761u;
}

__global__ void join(uint32_t *sum, uint32_t addend) { atomicAdd(sum, addend); }

void work(int thread, std::vector<uint32_t> *result, hipStream_t shared, uint32_t *sum) {
    HIP(hipSetDevice(0));
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    uint32_t *values = nullptr;
    HIP(hipMalloc((void **)&values, count * sizeof(uint32_t)));
    HIP(hipMemsetAsync(values, 0, count * sizeof(uint32_t), stream));
    for (int round = 0; round < rounds; round++) {
        step<<<count / threads, threads, 0, stream>>>(values, thread * 100 + round);
        join<<<1, 64, 0, shared>>>(sum, thread + 1);
        HIP(hipGetLastError());
    }
    result->resize(count);
    HIP(hipMemcpyAsync(result->data(), values, count * sizeof(uint32_t), hipMemcpyDeviceToHost,
                       stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipFree(values));
    HIP(hipStreamDestroy(stream));
}

int main() {
    const int workers = 3;
    uint32_t *sum = to_device(std::vector<uint32_t>(1));
    hipStream_t shared;
    HIP(hipStreamCreateWithFlags(&shared, hipStreamNonBlocking));
    std::vector<uint32_t> results[workers];
    std::vector<std::thread> running;
    for (int thread = 0; thread < workers; thread++)
        running.emplace_back(work, thread, &results[thread], shared, sum);
    for (std::thread &thread : running)
        thread.join();
    HIP(hipStreamSynchronize(shared));

    for (int thread = 0; thread < workers; thread++) {
        uint32_t value = 0;
        for (int round = 0; round < rounds; round++)
            value = (value ^ (uint32_t)(thread * 100 + round)) * 2654435761u;
        expect_equal("values of a thread", results[thread], std::vector<uint32_t>(count, value));
    }
    uint32_t expected = rounds * 64 * workers * (workers + 1) / 2, found = from_device(sum, 1)[0];
    EXPECT(found == expected, "the sum of all threads is %u, not %u", found, expected);
    HIP(hipStreamDestroy(shared));
    HIP(hipFree(sum));
    return passed();
}
