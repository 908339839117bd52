// Calls on the device: functions that are not inlined, recursion, pointers to functions, virtual
// functions, and private arrays with computed indices (the stack in scratch memory).
#include "check.h"

__device__ __host__ __attribute__((noinline)) uint32_t mix(uint32_t a, uint32_t b, int rounds) {
    for (int i = 0; i < rounds; i++) {
        a += b * 0x9e3779b9u;
        b ^= a >> 5;
    }
    return a ^ b;
}

// The recursion depth differs between lanes.
__device__ __host__ __attribute__((noinline)) uint32_t ackermann(uint32_t m, uint32_t n) {
    if (m == 0)
        return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

typedef uint32_t (*Operation)(uint32_t, uint32_t);

__device__ __host__ uint32_t add(uint32_t a, uint32_t b) { return a + b; }
__device__ __host__ uint32_t subtract(uint32_t a, uint32_t b) { return a - b; }
__device__ __host__ uint32_t multiply(uint32_t a, uint32_t b) { return a * b; }

__device__ Operation operations[] = {add, subtract, multiply};
const Operation host_operations[] = {add, subtract, multiply};

struct Shape {
    __device__ __host__ virtual uint32_t area() const = 0;
};
struct Square : Shape {
    uint32_t side;
    __device__ __host__ explicit Square(uint32_t side) : side(side) {}
    __device__ __host__ uint32_t area() const override { return side * side; }
};
struct Rectangle : Shape {
    uint32_t width, height;
    __device__ __host__ Rectangle(uint32_t width, uint32_t height) : width(width), height(height) {}
    __device__ __host__ uint32_t area() const override { return width * height; }
};

__device__ __host__ __attribute__((noinline)) uint32_t area(const Shape &shape) {
    return shape.area();
}

// Insertion sort in a private array.
__device__ __host__ __attribute__((noinline)) uint32_t median(uint32_t seed) {
    uint32_t sorted[31];
    for (int count = 0; count < 31; count++) {
        seed = seed * 1664525u + 1013904223u;
        int place = count;
        for (; place > 0 && sorted[place - 1] > seed; place--)
            sorted[place] = sorted[place - 1];
        sorted[place] = seed;
    }
    return sorted[15];
}

__device__ __host__ uint32_t direct(uint32_t i) {
    return mix(i, i * 7, i % 5) + ackermann(i % 3, i % 4) * 1000 + median(i);
}

__global__ void calls(uint32_t *out) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = direct(i);
}

__global__ void indirect_calls(uint32_t *out) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    Square square(i % 50);
    Rectangle rectangle(i % 7, i % 9);
    out[i] = operations[i % 3](i, 12345) + area(i % 2 ? (const Shape &)square : rectangle);
}

int main() {
    const int count = 512, threads = 128;
    uint32_t *out = to_device(std::vector<uint32_t>(count));
    std::vector<uint32_t> expected(count);
    calls<<<count / threads, threads>>>(out);
    HIP(hipGetLastError());
    for (uint32_t i = 0; i < count; i++)
        expected[i] = direct(i);
    expect_equal("calls", from_device(out, count), expected);

    indirect_calls<<<count / threads, threads>>>(out);
    HIP(hipGetLastError());
    for (uint32_t i = 0; i < count; i++) {
        uint32_t area = i % 2 ? (i % 50) * (i % 50) : (i % 7) * (i % 9);
        expected[i] = host_operations[i % 3](i, 12345) + area;
    }
    expect_equal("indirect calls", from_device(out, count), expected);
    HIP(hipFree(out));
    return passed();
}
