// What the benchmarks have in common. Each program computes something by kernels and, as plain C++
// on one thread, on the host, compares both and says how long they took:
//
//     NAME [small | SIZE]
//
// It prints a line `NAME GPU_SECONDS HOST_SECONDS`, a digest of what the kernels have left, and
// `passed`. The kernels' time has no copies in it, but what the runtime does at a first launch.
#pragma once

#include "../../applications/check.h"

#include <algorithm>
#include <chrono>

// How much to compute: as the argument says, else the usual size.
inline int size(int count_of_arguments, char **arguments, int usual, int small) {
    if (count_of_arguments < 2)
        return usual;
    if (std::string(arguments[1]) == "small")
        return small;
    int asked = atoi(arguments[1]);
    EXPECT(count_of_arguments == 2 && asked > 0, "usage: %s [small | SIZE]", arguments[0]);
    return asked;
}

// Workgroups enough for so many threads.
constexpr int groups(int count, int threads) {
    return (count + threads - 1) / threads;
}

// Memory of the GPU with values in it.
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

// How long something takes, with all that it gives to the GPU.
template <typename Run> double seconds(Run run) {
    HIP(hipDeviceSynchronize());
    auto start = std::chrono::steady_clock::now();
    run();
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The end of a program whose results were compared: what it prints.
template <typename T>
int report(const char *name, double gpu, double host, const std::vector<T> &results) {
    // Fowler, Noll and Vo's 1a.
    uint64_t digest = 0xcbf29ce484222325u;
    const unsigned char *bytes = (const unsigned char *)results.data();
    for (size_t i = 0; i < results.size() * sizeof(T); i++)
        digest = (digest ^ bytes[i]) * 0x100000001b3u;
    printf("%s %.6f %.6f\ndigest %016llx\n", name, gpu, host, (unsigned long long)digest);
    return passed();
}
