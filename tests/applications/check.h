// Helpers shared by the programs: every call is checked, and a run ends with `passed` or with a line
// that describes the failure.
#pragma once

#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

// Prints the failure and ends the program.
__attribute__((format(printf, 1, 2), noreturn)) inline void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    printf("\n");
    exit(1);
}

inline int passed() {
    printf("passed\n");
    return 0;
}

// Checks a condition and prints the message if it does not hold.
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail(__VA_ARGS__);                                                                     \
    } while (0)

// Checks that a call returns the status `expected`.
#define HIP_GIVES(expected, call)                                                                  \
    do {                                                                                           \
        hipError_t status_ = (call);                                                               \
        EXPECT(status_ == (expected), "line %d: %s gives %s, not %s", __LINE__, #call,             \
               hipGetErrorName(status_), hipGetErrorName(expected));                               \
    } while (0)

#define HIP(call) HIP_GIVES(hipSuccess, call)

// A linear congruential generator (Numerical Recipes), with the same numbers on every machine.
class Random {
  public:
    explicit Random(uint32_t seed) : state(seed) {}

    uint32_t word() {
        state = state * 1664525u + 1013904223u;
        return state ^ state >> 16;
    }

    // From `low` inclusive to `high` exclusive.
    float real(float low, float high) {
        return low + (high - low) * (float)(word() >> 8) / 16777216.0f;
    }

  private:
    uint32_t state;
};

template <typename T> T *to_device(const std::vector<T> &values) {
    T *device = nullptr;
    HIP(hipMalloc((void **)&device, values.size() * sizeof(T)));
    HIP(hipMemcpy(device, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
    return device;
}

template <typename T> std::vector<T> from_device(const T *device, size_t count) {
    std::vector<T> values(count);
    HIP(hipMemcpy(values.data(), device, count * sizeof(T), hipMemcpyDeviceToHost));
    return values;
}

// Formats a number without loss.
template <typename T> std::string shown(T value) {
    if (std::is_integral<T>::value)
        return std::to_string((long long)value);
    char text[32];
    snprintf(text, sizeof(text), "%.17g", (double)value);
    return text;
}

template <typename T>
void expect_equal(const char *what, const std::vector<T> &found, const std::vector<T> &expected) {
    EXPECT(found.size() == expected.size(), "%s: %zu values, not %zu", what, found.size(),
           expected.size());
    for (size_t i = 0; i < found.size(); i++)
        EXPECT(found[i] == expected[i], "%s: [%zu] is %s, not %s", what, i, shown(found[i]).c_str(),
               shown(expected[i]).c_str());
}

// Checks equality up to `tolerance`, which is relative for values greater than one.
template <typename T>
void expect_close(const char *what, const std::vector<T> &found, const std::vector<T> &expected,
                  double tolerance) {
    EXPECT(found.size() == expected.size(), "%s: %zu values, not %zu", what, found.size(),
           expected.size());
    for (size_t i = 0; i < found.size(); i++) {
        double right = (double)expected[i];
        double error = std::fabs((double)found[i] - right);
        // NaN fails the comparison.
        EXPECT(error <= tolerance * std::fmax(1.0, std::fabs(right)), "%s: [%zu] is %s, not %s",
               what, i, shown(found[i]).c_str(), shown(expected[i]).c_str());
    }
}
