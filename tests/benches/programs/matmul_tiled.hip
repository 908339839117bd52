// Product of two matrices with tiles in shared memory. A thread computes four elements of a column
// in registers.
#include "program.h"

const int tile = 32, each = 4, height = tile / each;

__global__ void multiply(const float *a, const float *b, float *product, int side) {
    __shared__ float tile_a[tile][tile + 1], tile_b[tile][tile + 1];
    int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
    float sums[each] = {};
    for (int first = 0; first < side; first += tile) {
        for (int i = 0; i < tile; i += height) {
            tile_a[threadIdx.y + i][threadIdx.x] = a[(y + i) * side + first + threadIdx.x];
            tile_b[threadIdx.y + i][threadIdx.x] = b[(first + threadIdx.y + i) * side + x];
        }
        __syncthreads();
        for (int i = 0; i < tile; i++)
            for (int part = 0; part < each; part++)
                sums[part] += tile_a[threadIdx.y + part * height][i] * tile_b[i][threadIdx.x];
        __syncthreads();
    }
    for (int part = 0; part < each; part++)
        product[(y + part * height) * side + x] = sums[part];
}

// Uses the same tiles, so that they stay in the cache.
static void multiply_host(const float *a, const float *b, float *product, int side) {
    for (int first = 0; first < side; first += tile)
        for (int y = 0; y < side; y++)
            for (int i = first; i < first + tile; i++)
                for (int x = 0; x < side; x++)
                    product[y * side + x] += a[y * side + i] * b[i * side + x];
}

int main(int count, char **arguments) {
    const int side = size(count, arguments, 512, 64);
    EXPECT(side % tile == 0, "the side must be a multiple of %d", tile);
    Random random(12);
    std::vector<float> a(side * side), b(side * side), product(side * side);
    for (int i = 0; i < side * side; i++) {
        a[i] = random.real(-1, 1);
        b[i] = random.real(-1, 1);
    }
    Device<float> device_a(a), device_b(b), device_product(side * side);
    double gpu = seconds([&] {
        dim3 grid(side / tile, side / tile), threads(tile, height);
        multiply<<<grid, threads>>>(device_a, device_b, device_product, side);
    });
    double host = seconds([&] { multiply_host(a.data(), b.data(), product.data(), side); });
    expect_close("product", device_product.values(), product, 1e-4);
    return report("matmul_tiled", gpu, host, device_product.values());
}
