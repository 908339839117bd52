// The Mandelbrot set: iterations until each point of the plane escapes. Lanes of a wave leave their
// loop at different times.
#include "program.h"

const int width = 16, height = 16, most = 256;

__host__ __device__ inline int escape(int x, int y, int side) {
    // Otherwise the compiler decides whether to fuse products and sums.
#pragma clang fp contract(off)
    float step = 3.0f / side, real = x * step - 2.25f, imaginary = y * step - 1.5f;
    float a = 0, b = 0;
    int round = 0;
    for (; round < most && a * a + b * b <= 4; round++) {
        float next = a * a - b * b + real;
        b = 2 * a * b + imaginary;
        a = next;
    }
    return round;
}

__global__ void draw(int *picture, int side) {
    int x = blockIdx.x * width + threadIdx.x, y = blockIdx.y * height + threadIdx.y;
    if (x < side && y < side)
        picture[y * side + x] = escape(x, y, side);
}

static void draw_host(int *picture, int side) {
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            picture[y * side + x] = escape(x, y, side);
}

int main(int count, char **arguments) {
    const int side = size(count, arguments, 720, 50);
    Device<int> device_picture(side * side);
    double gpu = seconds([&] {
        dim3 grid(groups(side, width), groups(side, height));
        draw<<<grid, dim3(width, height)>>>(device_picture, side);
    });
    std::vector<int> picture(side * side);
    double host = seconds([&] { draw_host(picture.data(), side); });
    expect_equal("picture", device_picture.values(), picture);
    return report("mandelbrot", gpu, host, picture);
}
