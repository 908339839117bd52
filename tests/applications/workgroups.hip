// Kernels of many workgroups: in some, the order of workgroups has no visible effect; in others, it
// decides the result. Prints the kernels that several threads of this process executed (seen from
// the processor time of these threads), and the results that depend on the order.
#include "check.h"

#include <cstring>
#include <dirent.h>
#include <unistd.h>

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

// A thread of this process that executes parts of dispatches.
struct Helper {
    bool sleeps;
    unsigned long long nanoseconds;
};

std::string content(const std::string &file) {
    char text[512];
    size_t length = 0;
    if (FILE *opened = fopen(file.c_str(), "r")) {
        length = fread(text, 1, sizeof text, opened);
        fclose(opened);
    }
    return std::string(text, length);
}

std::vector<Helper> helpers() {
    std::vector<Helper> found;
    DIR *tasks = opendir("/proc/self/task");
    while (dirent *task = readdir(tasks)) {
        std::string folder = std::string("/proc/self/task/") + task->d_name;
        if (content(folder + "/comm") != "flipwave share\n")
            continue;
        // The state follows the name in parentheses. It is read first, because the time of a sleeping
        // thread no longer changes.
        std::string state = content(folder + "/stat");
        bool sleeps = state.find(") S") != std::string::npos;
        found.push_back({sleeps, strtoull(content(folder + "/schedstat").c_str(), nullptr, 10)});
    }
    closedir(tasks);
    return found;
}

// Processor time of the threads in nanoseconds, once all of them sleep. Earlier, the kernel has not accounted
// for all of the time, and threads may still look for work, for a long time on a busy machine.
unsigned long long time_shared() {
    for (int attempt = 0; attempt < 100000; attempt++) {
        unsigned long long sum = 0;
        bool all_sleep = true;
        for (Helper helper : helpers()) {
            sum += helper.nanoseconds;
            all_sleep &= helper.sleeps;
        }
        if (all_sleep)
            return sum;
        usleep(1000);
    }
    printf("threads that share dispatches do not sleep\n");
    exit(1);
}

// Launches a kernel on zeroed memory and returns the memory afterwards.
template <typename T, typename Kernel>
std::vector<T> launched(const char *name, Kernel kernel, unsigned int rounds) {
    T *out = to_device(std::vector<T>(all));
    unsigned long long before = time_shared();
    kernel<<<blocks, size>>>(out, rounds);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    // Each thread has work if the dispatch is shared and keeps sleeping otherwise.
    bool shared = time_shared() > before;
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
