// Host functions between kernels of a stream: they see the results of earlier kernels, and later
// kernels wait for them.
#include "check.h"

__global__ void add(int *values, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] += addend;
}

struct Visit {
    int *values;
    int count, expected;
    std::string *log;
    const char *name;
};

// Checks the result of the previous kernel and changes it for the next.
void look(hipStream_t, hipError_t status, void *data) {
    Visit &visit = *(Visit *)data;
    bool is_right = status == hipSuccess;
    for (int i = 0; i < visit.count; i++) {
        is_right &= visit.values[i] == visit.expected;
        visit.values[i] *= 3;
    }
    *visit.log += is_right ? visit.name : "wrong ";
}

int main() {
    const int count = 1024, threads = 256;
    int *values = nullptr;
    HIP(hipHostMalloc((void **)&values, count * sizeof(int), hipHostMallocDefault));
    for (int i = 0; i < count; i++)
        values[i] = 0;
    std::string log;
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    Visit first = {values, count, 1, &log, "first "}, second = {values, count, 5, &log, "second "};
    Visit third = {values, count, 15 + 4, &log, "third "};

    add<<<count / threads, threads, 0, stream>>>(values, 1);
    HIP(hipStreamAddCallback(stream, look, &first, 0));
    add<<<count / threads, threads, 0, stream>>>(values, 2);
    HIP(hipStreamAddCallback(stream, look, &second, 0));
    add<<<count / threads, threads, 0, stream>>>(values, 4);
    HIP(hipStreamAddCallback(stream, look, &third, 0));
    HIP(hipGetLastError());
    HIP(hipStreamSynchronize(stream));

    EXPECT(log == "first second third ", "the host was called: %s", log.c_str());
    for (int i = 0; i < count; i++)
        EXPECT(values[i] == 57, "values[%d] is %d, not 57", i, values[i]);
    HIP(hipStreamDestroy(stream));
    HIP(hipHostFree(values));
    return passed();
}
