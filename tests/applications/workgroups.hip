// Kernels of many workgroups: some whose order leaves nothing that can be seen, and some whose order
// decides what they compute. Says which of them several threads of this process have executed, by
// the time that these have taken, and what came out of those that depend on their order.
#include "check.h"

#include <cstring>
#include <dirent.h>

const unsigned int size = 256, blocks = 600, all = size * blocks;

__host__ __device__ unsigned int mixed(unsigned int value, unsigned int rounds) {
    for (unsigned int round = 0; round < rounds; round++)
        value = (value ^ value >> 15) * 0x2c1b3c6du + round;
    return value;
}

__global__ void alone(unsigned int *out, unsigned int rounds) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = mixed(i, rounds);
}

__global__ void counting(unsigned int *out, unsigned int rounds) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&out[mixed(i, rounds) % 16], 1);
}

__global__ void numbering(unsigned int *out, unsigned int rounds) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int value = mixed(i, rounds);
    if (threadIdx.x == 0)
        out[1 + blockIdx.x] = atomicAdd(&out[0], 1 + value % 2);
}

__global__ void summing(float *out, unsigned int rounds) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(out, (float)mixed(i, rounds) * 1e-3f);
}

__global__ void looking(volatile unsigned int *out, unsigned int rounds) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int value = mixed(i, rounds);
    if (threadIdx.x == 0)
        out[1 + blockIdx.x] = out[blockIdx.x] + value % 5;
}

// Two kinds of atomic operations on the same word.
__global__ void mixing(unsigned int *out, unsigned int rounds) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int value = mixed(i, rounds);
    atomicAdd(out, value);
    atomicXor(out, value >> 3);
}

// Nanoseconds that threads of this process have been executed which share dispatches.
unsigned long long time_shared() {
    unsigned long long sum = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (dirent *task = readdir(tasks)) {
        std::string folder = std::string("/proc/self/task/") + task->d_name;
        char name[64] = "";
        unsigned long long time = 0;
        if (FILE *opened = fopen((folder + "/comm").c_str(), "r")) {
            if (!fgets(name, sizeof name, opened))
                name[0] = 0;
            fclose(opened);
        }
        if (FILE *opened = fopen((folder + "/schedstat").c_str(), "r")) {
            if (std::string(name) == "flipwave share\n" && fscanf(opened, "%llu", &time) == 1)
                sum += time;
            fclose(opened);
        }
    }
    closedir(tasks);
    return sum;
}

// Launches a kernel on zeroed memory, and gives what is there afterwards.
template <typename T, typename Kernel>
std::vector<T> launched(const char *name, Kernel kernel, unsigned int rounds) {
    T *out = to_device(std::vector<T>(all));
    unsigned long long before = time_shared();
    kernel<<<blocks, size>>>(out, rounds);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    // They look for work for some microseconds after they have done the last.
    bool shared = time_shared() - before > 1000000;
    std::vector<T> found = from_device(out, all);
    uint32_t digest = 0;
    for (T value : found) {
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        digest = digest * 31 + bits;
    }
    printf("%s: %s, %08x\n", name, shared ? "shared" : "not shared", digest);
    HIP(hipFree(out));
    return found;
}

int main(int count, char **arguments) {
    unsigned int rounds = count > 1 ? atoi(arguments[1]) : 10;
    std::vector<unsigned int> found = launched<unsigned int>("alone", alone, rounds);
    std::vector<unsigned int> counts(16);
    for (unsigned int i = 0; i < all; i++) {
        unsigned int expected = mixed(i, rounds);
        EXPECT(found[i] == expected, "%u is %u, not %u", i, found[i], expected);
        counts[expected % 16]++;
    }
    found = launched<unsigned int>("counting", counting, rounds);
    for (unsigned int i = 0; i < 16; i++)
        EXPECT(found[i] == counts[i], "%u of number %u, not %u", found[i], i, counts[i]);
    launched<unsigned int>("numbering", numbering, rounds);
    launched<float>("summing", summing, rounds);
    launched<unsigned int>("looking", looking, rounds);
    launched<unsigned int>("mixing", mixing, rounds);
    return passed();
}
