// Shared parts of the benchmarks. Each program computes a result with kernels and with plain C++ on
// one thread of the host, compares the results, and prints both times:
//
//     NAME [small | SIZE]
//
// It prints a line `NAME GPU_SECONDS HOST_SECONDS`, a digest of the kernels' results, and `passed`.
// The kernel time excludes copies and includes the runtime's work at the first launch.
#pragma once

#include "../../applications/check.h"

#include <algorithm>
#include <chrono>

// Problem size: from the argument, or the default.
inline int size(int count_of_arguments, char **arguments, int usual, int small) {
    if (count_of_arguments < 2)
        return usual;
    if (std::string(arguments[1]) == "small")
        return small;
    int asked = atoi(arguments[1]);
    EXPECT(count_of_arguments == 2 && asked > 0, "usage: %s [small | SIZE]", arguments[0]);
    return asked;
}

// Number of workgroups needed for `count` threads.
constexpr int groups(int count, int threads) {
    return (count + threads - 1) / threads;
}

// GPU memory with initial values.
template <typename T> class Device {
  public:
    explicit Device(const std::vector<T> &values) : data(to_device(values)), count(values.size()) {}
    explicit Device(size_t count) : Device(std::vector<T>(count)) {}
    Device(const Device &) = delete;
    ~Device() { HIP(hipFree(data)); }

    operator T *() { return data; }
    std::vector<T> values() const { return from_device(data, count); }

  private:
    T *data;
    size_t count;
};

// Measures the time of `run`, including submitted GPU work.
template <typename Run> double seconds(Run run) {
    HIP(hipDeviceSynchronize());
    auto start = std::chrono::steady_clock::now();
    run();
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Prints the report of a program after its results were compared.
template <typename T>
int report(const char *name, double gpu, double host, const std::vector<T> &results) {
    // FNV-1a.
    uint64_t digest = 0xcbf29ce484222325u;
    const unsigned char *bytes = (const unsigned char *)results.data();
    for (size_t i = 0; i < results.size() * sizeof(T); i++)
        digest = (digest ^ bytes[i]) * 0x100000001b3u;
    printf("%s %.6f %.6f\ndigest %016llx\n", name, gpu, host, (unsigned long long)digest);
    return passed();
}
