// Divergent lanes: loops of different lengths, early returns, switches, nested conditions; a Julia
// set and the Collatz conjecture.
#include "check.h"

__device__ __host__ int julia(float x, float y) {
    // One rounding per operation, so that no step of an iteration differs.
#pragma clang fp contract(off)
    for (int step = 0; step < 60; step++) {
        float x2 = x * x, y2 = y * y;
        if (x2 + y2 > 4)
            return step;
        y = 2 * x * y + 0.65186f;
        x = x2 - y2 + 0.285f * 0.25f - 0.25f;
    }
    return 60;
}

__device__ __host__ int collatz(unsigned value) {
    int steps = 0;
    while (value > 1) {
        if (value > 1u << 30)
            break;
        value = value % 2 ? value * 3 + 1 : value / 2;
        steps++;
        if (steps > 150)
            return -1;
        if (value % 5 == 0)
            continue;
        steps += value % 7 == 0 ? 2 : 0;
    }
    return steps;
}

// A small virtual machine whose program differs from lane to lane.
__device__ __host__ int interpret(unsigned program) {
    int a = 1, b = (int)(program % 11);
    for (; program; program /= 6) {
        switch (program % 6) {
        case 0: a += b; break;
        case 1: b = a - b; break;
        case 2: a = a * 3 ^ b; break;
        case 3:
            if (a < b)
                return a;
            // Falls through.
        case 4: b++; break;
        default:
            for (int i = 0; i < (b & 3); i++)
                a += i * b;
        }
    }
    return a * 31 + b;
}

__global__ void part(int width, int *julias, int *collatzes, int *interpreted) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    julias[i] = julia(i % width / 24.0f - 1.3f, i / width / 24.0f - 0.8f);
    collatzes[i] = collatz(i + 1);
    if (i % 5 == 4)
        return;
    interpreted[i] = interpret(i * 2654435761u);
}

int main() {
    const int width = 64, count = width * 32, threads = 256;
    std::vector<int> expected[3];
    for (int i = 0; i < count; i++) {
        expected[0].push_back(julia(i % width / 24.0f - 1.3f, i / width / 24.0f - 0.8f));
        expected[1].push_back(collatz(i + 1));
        expected[2].push_back(i % 5 == 4 ? 0 : interpret(i * 2654435761u));
    }
    int *found[3];
    for (int *&buffer : found)
        buffer = to_device(std::vector<int>(count));
    part<<<count / threads, threads>>>(width, found[0], found[1], found[2]);
    HIP(hipGetLastError());
    expect_equal("Julia", from_device(found[0], count), expected[0]);
    expect_equal("Collatz", from_device(found[1], count), expected[1]);
    expect_equal("interpreted", from_device(found[2], count), expected[2]);
    for (int *buffer : found)
        HIP(hipFree(buffer));
    return passed();
}
