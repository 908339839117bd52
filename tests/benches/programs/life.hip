// Conway's Game of Life on a torus, with a byte and a thread for each cell.
#include "program.h"

const int width = 64, height = 4, generations = 16;

__host__ __device__ inline uint8_t next_state(uint8_t alive, int neighbours) {
    return neighbours == 3 || (neighbours == 2 && alive);
}

__global__ void live(const uint8_t *in, uint8_t *out, int side) {
    int x = blockIdx.x * width + threadIdx.x, y = blockIdx.y * height + threadIdx.y;
    if (x >= side || y >= side)
        return;
    int left = x > 0 ? x - 1 : side - 1, right = x + 1 < side ? x + 1 : 0;
    const uint8_t *above = in + (y > 0 ? y - 1 : side - 1) * side, *middle = in + y * side;
    const uint8_t *below = in + (y + 1 < side ? y + 1 : 0) * side;
    int neighbours = above[left] + above[x] + above[right] + middle[left] + middle[right] +
                     below[left] + below[x] + below[right];
    out[y * side + x] = next_state(middle[x], neighbours);
}

static void live_host(const uint8_t *in, uint8_t *out, int side) {
    for (int y = 0; y < side; y++) {
        const uint8_t *above = in + (y > 0 ? y - 1 : side - 1) * side, *middle = in + y * side;
        const uint8_t *below = in + (y + 1 < side ? y + 1 : 0) * side;
        auto state = [=](int left, int x, int right) {
            uint8_t neighbours = above[left] + above[x] + above[right] + middle[left] + middle[right] +
                                 below[left] + below[x] + below[right];
            return next_state(middle[x], neighbours);
        };
        uint8_t *row = out + y * side;
        row[0] = state(side - 1, 0, 1);
        for (int x = 1; x < side - 1; x++)
            row[x] = state(x - 1, x, x + 1);
        row[side - 1] = state(side - 2, side - 1, 0);
    }
}

int main(int count, char **arguments) {
    const int side = size(count, arguments, 1000, 90);
    Random random(9);
    std::vector<uint8_t> cells(side * side), next(side * side);
    for (uint8_t &cell : cells)
        cell = random.word() % 3 == 0;
    Device<uint8_t> a(cells), b(cells);
    uint8_t *in = a, *out = b;
    double gpu = seconds([&] {
        dim3 grid(groups(side, width), groups(side, height));
        for (int generation = 0; generation < generations; generation++) {
            live<<<grid, dim3(width, height)>>>(in, out, side);
            std::swap(in, out);
        }
    });
    double host = seconds([&] {
        for (int generation = 0; generation < generations; generation++) {
            live_host(cells.data(), next.data(), side);
            cells.swap(next);
        }
    });
    expect_equal("cells", from_device(in, side * side), cells);
    return report("life", gpu, host, cells);
}
