// Product of two matrices in global memory, with a thread for each element of the result.
#include "program.h"

const int width = 16, height = 16;

__global__ void multiply(const float *a, const float *b, float *product, int side) {
    int x = blockIdx.x * width + threadIdx.x, y = blockIdx.y * height + threadIdx.y;
    if (x >= side || y >= side)
        return;
    float sum = 0;
    for (int i = 0; i < side; i++)
        sum += a[y * side + i] * b[i * side + x];
    product[y * side + x] = sum;
}

// In this loop order, rows are read and written from left to right.
static void multiply_host(const float *a, const float *b, float *product, int side) {
    for (int y = 0; y < side; y++)
        for (int i = 0; i < side; i++)
            for (int x = 0; x < side; x++)
                product[y * side + x] += a[y * side + i] * b[i * side + x];
}

int main(int count, char **arguments) {
    const int side = size(count, arguments, 400, 40);
    Random random(11);
    std::vector<float> a(side * side), b(side * side), product(side * side);
    for (int i = 0; i < side * side; i++) {
        a[i] = random.real(-1, 1);
        b[i] = random.real(-1, 1);
    }
    Device<float> device_a(a), device_b(b), device_product(side * side);
    double gpu = seconds([&] {
        dim3 grid(groups(side, width), groups(side, height));
        multiply<<<grid, dim3(width, height)>>>(device_a, device_b, device_product, side);
    });
    double host = seconds([&] { multiply_host(a.data(), b.data(), product.data(), side); });
    expect_close("product", device_product.values(), product, 1e-4);
    return report("matmul", gpu, host, device_product.values());
}
