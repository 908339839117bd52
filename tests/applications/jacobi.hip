// Heat on a plate: Jacobi iteration with two alternating buffers. The device computes the largest
// change of each step, and the iteration ends when it is small enough.
#include "check.h"

const int side = 34;

__global__ void iterate(const float *in, float *out, float *change) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= side - 1 || y >= side - 1)
        return;
    const float *center = in + y * side + x;
    float value = 0.25f * ((center[-1] + center[1]) + (center[-side] + center[side]));
    out[y * side + x] = value;
    // The bits of non-negative floats compare like the numbers.
    atomicMax((int *)change, __float_as_int(fabsf(value - *center)));
}

int main() {
    std::vector<float> plate(side * side);
    for (int i = 0; i < side; i++) {
        plate[i] = 100;
        plate[i * side] = i;
    }
    float *in = to_device(plate), *out = to_device(plate);
    float *change = to_device(std::vector<float>(1));
    std::vector<float> next = plate;
    int steps = 0;
    for (float largest = 1e9f; largest > 0.5f; steps++) {
        HIP(hipMemset(change, 0, sizeof(float)));
        iterate<<<dim3(2, 8), dim3(16, 4)>>>(in, out, change);
        HIP(hipGetLastError());
        std::swap(in, out);
        largest = from_device(change, 1)[0];

        float expected = 0;
        for (int y = 1; y < side - 1; y++)
            for (int x = 1; x < side - 1; x++) {
                const float *center = &plate[y * side + x];
                float value = 0.25f * ((center[-1] + center[1]) + (center[-side] + center[side]));
                next[y * side + x] = value;
                expected = std::fmax(expected, std::fabs(value - *center));
            }
        std::swap(plate, next);
        EXPECT(largest == expected, "step %d changes by %.9g, not %.9g", steps, largest, expected);
    }
    EXPECT(steps > 10, "only %d steps", steps);
    expect_equal("plate", from_device(in, side * side), plate);
    for (float *buffer : {in, out, change})
        HIP(hipFree(buffer));
    return passed();
}
