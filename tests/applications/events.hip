// Events: recording, querying, waiting, and the time between two events.
#include "check.h"
#include <chrono>

__global__ void count_up(int *values, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int step = 0; step < steps; step++)
        values[i] += i;
}

int main() {
    const int count = 1024;
    int *values = to_device(std::vector<int>(count));
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    hipEvent_t begin, middle, end, untimed;
    HIP(hipEventCreate(&begin));
    HIP(hipEventCreate(&middle));
    HIP(hipEventCreateWithFlags(&end, hipEventBlockingSync));
    HIP(hipEventCreateWithFlags(&untimed, hipEventDisableTiming));

    // Waiting for an unrecorded event returns at once, and it has no time.
    HIP(hipEventQuery(begin));
    HIP(hipEventSynchronize(begin));
    float elapsed = -1;
    HIP_GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&elapsed, begin, end));
    // HIP 7 keeps the error until it is read.
    (void)hipGetLastError();

    auto start = std::chrono::steady_clock::now();
    HIP(hipEventRecord(begin, stream));
    count_up<<<count / 256, 256, 0, stream>>>(values, 3);
    HIP(hipEventRecord(middle, stream));
    count_up<<<count / 256, 256, 0, stream>>>(values, 30);
    HIP(hipEventRecord(end, stream));
    HIP(hipEventRecord(untimed, stream));
    HIP(hipGetLastError());
    HIP(hipEventSynchronize(end));
    std::chrono::duration<float, std::milli> whole = std::chrono::steady_clock::now() - start;
    HIP(hipEventQuery(begin));
    HIP(hipEventQuery(middle));
    HIP(hipEventQuery(end));

    float before = -1, after = -1;
    HIP(hipEventElapsedTime(&before, begin, middle));
    HIP(hipEventElapsedTime(&after, middle, end));
    HIP(hipEventElapsedTime(&elapsed, begin, end));
    EXPECT(before >= 0 && after >= 0, "time runs backwards");
    EXPECT(elapsed > 0.001f && elapsed <= whole.count(), "the host measures another time");
    // In milliseconds, with a resolution better than a microsecond.
    EXPECT(std::fabs(before + after - elapsed) <= 0.001f + 0.001f * elapsed,
           "the parts of a time do not add up");
    HIP(hipEventElapsedTime(&elapsed, end, end));
    EXPECT(elapsed == 0, "an event is later than itself");
    HIP(hipEventSynchronize(untimed));
    HIP_GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&elapsed, begin, untimed));

    std::vector<int> expected(count);
    for (int i = 0; i < count; i++)
        expected[i] = 33 * i;
    expect_equal("values", from_device(values, count), expected);
    for (hipEvent_t event : {begin, middle, end, untimed})
        HIP(hipEventDestroy(event));
    HIP(hipStreamDestroy(stream));
    HIP(hipFree(values));
    return passed();
}
