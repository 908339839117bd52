// Four streams that depend on each other through events: in each round, one kernel feeds two that
// may run concurrently, and a fourth needs both. Any other order changes the result.
#include "check.h"

__global__ void first(const uint32_t *last, uint32_t *out, uint32_t round) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = last[i] + round;
}

// Takes time, so that a kernel that does not wait for it runs too early.
__global__ void left(const uint32_t *in, uint32_t *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t value = in[i];
    for (int step = 0; step < 50; step++)
        value = value * 1664525u + 1013904223u;
    out[i] = value;
}

__global__ void right(const uint32_t *in, uint32_t *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] ^ in[i] >> 7 ^ 0x5a5a5a5a;
}

__global__ void last(const uint32_t *a, const uint32_t *b, uint32_t *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] * 3 - b[i];
}

int main() {
    const int count = 2048, threads = 256, blocks = count / threads, rounds = 5;
    std::vector<uint32_t> values(count);
    Random random(2);
    for (uint32_t &value : values)
        value = random.word();
    uint32_t *start = to_device(values), *fed = to_device(values);
    uint32_t *on_left = to_device(values), *on_right = to_device(values);

    hipStream_t streams[4];
    HIP(hipStreamCreate(&streams[0]));
    HIP(hipStreamCreateWithFlags(&streams[1], hipStreamNonBlocking));
    HIP(hipStreamCreateWithFlags(&streams[2], hipStreamNonBlocking));
    int least = 0, greatest = 0;
    HIP(hipDeviceGetStreamPriorityRange(&least, &greatest));
    HIP(hipStreamCreateWithPriority(&streams[3], hipStreamNonBlocking, greatest));
    hipEvent_t done[4];
    for (hipEvent_t &event : done)
        HIP(hipEventCreateWithFlags(&event, hipEventDisableTiming));

    for (int round = 0; round < rounds; round++) {
        if (round > 0)
            HIP(hipStreamWaitEvent(streams[0], done[3], 0));
        first<<<blocks, threads, 0, streams[0]>>>(start, fed, round);
        HIP(hipEventRecord(done[0], streams[0]));
        HIP(hipStreamWaitEvent(streams[1], done[0], 0));
        HIP(hipStreamWaitEvent(streams[2], done[0], 0));
        left<<<blocks, threads, 0, streams[1]>>>(fed, on_left);
        HIP(hipEventRecord(done[1], streams[1]));
        right<<<blocks, threads, 0, streams[2]>>>(fed, on_right);
        HIP(hipEventRecord(done[2], streams[2]));
        HIP(hipStreamWaitEvent(streams[3], done[1], 0));
        HIP(hipStreamWaitEvent(streams[3], done[2], 0));
        last<<<blocks, threads, 0, streams[3]>>>(on_left, on_right, start);
        HIP(hipEventRecord(done[3], streams[3]));
    }
    HIP(hipGetLastError());
    HIP(hipStreamSynchronize(streams[3]));
    HIP(hipStreamQuery(streams[3]));

    for (int round = 0; round < rounds; round++)
        for (uint32_t &value : values) {
            uint32_t in = value + round, a = in;
            for (int step = 0; step < 50; step++)
                a = a * 1664525u + 1013904223u;
            value = a * 3 - (in ^ in >> 7 ^ 0x5a5a5a5a);
        }
    expect_equal("values", from_device(start, count), values);
    for (hipEvent_t event : done)
        HIP(hipEventDestroy(event));
    for (hipStream_t stream : streams)
        HIP(hipStreamDestroy(stream));
    for (uint32_t *buffer : {start, fed, on_left, on_right})
        HIP(hipFree(buffer));
    return passed();
}
