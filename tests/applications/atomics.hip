// Atomics of many workgroups on the same words of global memory: 32-bit and 64-bit integers, float
// and double. Final values do not depend on the order; returned values must match some order.
#include "check.h"

#include <algorithm>

const int threads = 128, blocks = 8, all = threads * blocks;

enum { ADD, SUB, MIN, MAX, AND, OR, XOR, EXCHANGE, PRODUCT, SLOTS };

template <typename T> __global__ void integers(T *slots, T *tickets, T *exchanged) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T value = (T)i * 2654435761u;
    tickets[i] = atomicAdd(&slots[ADD], (T)1);
    atomicSub(&slots[SUB], (T)i);
    atomicMin(&slots[MIN], value);
    atomicMax(&slots[MAX], value);
    atomicAnd(&slots[AND], ~((T)1 << i % (sizeof(T) * 8 - 3)));
    atomicOr(&slots[OR], (T)1 << i % (sizeof(T) * 8 - 3));
    atomicXor(&slots[XOR], value);
    exchanged[i] = atomicExch(&slots[EXCHANGE], (T)i);
    // Multiplies atomically, for which there is no single instruction.
    T seen = slots[PRODUCT], before;
    do {
        before = seen;
        seen = atomicCAS(&slots[PRODUCT], before, before * (T)(2 * (i % 64) + 1));
    } while (seen != before);
}

// Compiler builtins, because HIP 5.2 calls intrinsics that later compilers no longer have.
__global__ void wrapping(unsigned int *up, unsigned int *down) {
    __builtin_amdgcn_atomic_inc32(up, 99, __ATOMIC_RELAXED, "agent");
    __builtin_amdgcn_atomic_dec32(down, 99, __ATOMIC_RELAXED, "agent");
}

// Sums of small integers are exact in any order.
__global__ void floats(float *single, double *twice) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&single[i % 3], (float)(i % 17 - 8));
    atomicAdd(&twice[i % 3], (double)i * 1099511627776.0);
}

template <typename T> void check_integers(const char *type) {
    std::vector<T> expected(SLOTS);
    expected[MIN] = expected[AND] = (T)~(T)0;
    expected[EXCHANGE] = all;
    expected[PRODUCT] = 1;
    T *slots = to_device(expected), *tickets, *exchanged;
    HIP(hipMalloc((void **)&tickets, all * sizeof(T)));
    HIP(hipMalloc((void **)&exchanged, all * sizeof(T)));
    integers<<<blocks, threads>>>(slots, tickets, exchanged);
    HIP(hipGetLastError());

    std::vector<T> order(all);
    for (int i = 0; i < all; i++) {
        T value = (T)i * 2654435761u;
        expected[ADD] += 1;
        expected[SUB] -= i;
        expected[MIN] = std::min(expected[MIN], value);
        expected[MAX] = std::max(expected[MAX], value);
        expected[AND] &= ~((T)1 << i % (sizeof(T) * 8 - 3));
        expected[OR] |= (T)1 << i % (sizeof(T) * 8 - 3);
        expected[XOR] ^= value;
        expected[PRODUCT] *= 2 * (i % 64) + 1;
        order[i] = i;
    }
    std::vector<T> found = from_device(slots, SLOTS);
    // The last exchanged value is still in memory; every other value was returned to some thread.
    std::vector<T> handed = from_device(exchanged, all);
    handed.push_back(found[EXCHANGE]);
    std::sort(handed.begin(), handed.end());
    std::vector<T> complete = order;
    complete.push_back(all);
    expect_equal("exchanged values", handed, complete);
    found[EXCHANGE] = expected[EXCHANGE];
    expect_equal(type, found, expected);
    std::vector<T> drawn = from_device(tickets, all);
    std::sort(drawn.begin(), drawn.end());
    expect_equal("tickets", drawn, order);
    for (T *buffer : {slots, tickets, exchanged})
        HIP(hipFree(buffer));
}

int main() {
    check_integers<unsigned int>("unsigned int");
    check_integers<unsigned long long>("unsigned long long");

    unsigned int *counters = to_device(std::vector<unsigned int>{0, 0});
    wrapping<<<blocks, threads>>>(counters, counters + 1);
    HIP(hipGetLastError());
    expect_equal("wrapping counters", from_device(counters, 2),
                 std::vector<unsigned int>{all % 100, (100 - all % 100) % 100});

    float *single = to_device(std::vector<float>(3));
    double *twice = to_device(std::vector<double>(3));
    floats<<<blocks, threads>>>(single, twice);
    HIP(hipGetLastError());
    std::vector<float> singles(3);
    std::vector<double> doubles(3);
    for (int i = 0; i < all; i++) {
        singles[i % 3] += (float)(i % 17 - 8);
        doubles[i % 3] += (double)i * 1099511627776.0;
    }
    expect_equal("float", from_device(single, 3), singles);
    expect_equal("double", from_device(twice, 3), doubles);
    HIP(hipFree(counters));
    HIP(hipFree(single));
    HIP(hipFree(twice));
    return passed();
}
