// Kernels of several streams run in the order of submission unless they have to wait. Each kernel
// appends its number to a list.
#include "check.h"

#include <unistd.h>

struct List {
    uint32_t count;
    uint32_t numbers[1023];
};

__global__ void note(List *list, uint32_t number) {
    list->numbers[atomicAdd(&list->count, 1)] = number;
}

// Takes longer than the submission of some more kernels.
__global__ void note_slowly(List *list, uint32_t number) {
    uint32_t value = number;
    for (int step = 0; step < 20000; step++)
        value = value * 1664525u + 1013904223u;
    list->numbers[atomicAdd(&list->count, 1 + (value == 1))] = number;
}

// Submitted kernels, in order.
class Submissions {
  public:
    Submissions() : list(to_device(std::vector<List>(1))) {}

    void submit(hipStream_t stream, bool is_slow = false) {
        uint32_t number = (uint32_t)expected.size();
        if (is_slow)
            note_slowly<<<1, 1, 0, stream>>>(list, number);
        else
            note<<<1, 1, 0, stream>>>(list, number);
        expected.push_back(number);
    }

    void check(const char *what) {
        HIP(hipGetLastError());
        HIP(hipDeviceSynchronize());
        List found = from_device(list, 1)[0];
        expect_equal(what, {found.numbers, found.numbers + found.count}, expected);
        HIP(hipMemset(list, 0, sizeof(List)));
        expected.clear();
    }

  private:
    List *list;
    std::vector<uint32_t> expected;
};

int main() {
    const size_t bytes = 1 << 20;
    hipStream_t streams[4];
    for (hipStream_t &stream : streams)
        HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    Submissions submissions;
    Random random(5);

    // Independent streams.
    for (int i = 0; i < 400; i++) {
        submissions.submit(streams[random.word() % 4], i % 50 == 0);
        // Sometimes the device is idle.
        if (i % 100 == 99)
            usleep(2000);
    }
    submissions.check("streams alone");

    // Copies that streams wait for, and independent copies.
    void *host = nullptr, *device = nullptr;
    HIP(hipHostMalloc(&host, bytes, hipHostMallocDefault));
    HIP(hipMalloc(&device, bytes));
    for (int i = 0; i < 100; i++) {
        hipStream_t stream = streams[random.word() % 4];
        size_t part = bytes >> random.word() % 8;
        switch (random.word() % 4) {
        case 0:
            HIP(hipMemcpyAsync(device, host, part, hipMemcpyHostToDevice, stream));
            break;
        case 1:
            HIP(hipMemcpyAsync(host, device, part, hipMemcpyDeviceToHost, stream));
            break;
        }
        submissions.submit(stream);
        submissions.submit(streams[random.word() % 4]);
    }
    submissions.check("streams with copies");

    // Events that make streams wait for each other and for copies.
    hipEvent_t event;
    HIP(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    for (int i = 0; i < 100; i++) {
        hipStream_t first = streams[random.word() % 4], second = streams[random.word() % 4];
        submissions.submit(first, i % 25 == 0);
        if (i % 3 == 0)
            HIP(hipMemcpyAsync(device, host, bytes, hipMemcpyHostToDevice, first));
        HIP(hipEventRecord(event, first));
        HIP(hipStreamWaitEvent(second, event, 0));
        submissions.submit(streams[random.word() % 4]);
        submissions.submit(second);
    }
    submissions.check("streams with events");

    HIP(hipEventDestroy(event));
    for (hipStream_t stream : streams)
        HIP(hipStreamDestroy(stream));
    HIP(hipFree(device));
    HIP(hipHostFree(host));
    return passed();
}
