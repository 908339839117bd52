// Blurs an image with a separable filter: along rows, then along columns. Tiles and their margins
// are in shared memory, the filter in constant memory.
#include "program.h"

const int radius = 8, width = 64, height = 4, tile = 32;

__constant__ float weights[2 * radius + 1];

__global__ void along_rows(const float *in, float *out, int side) {
    __shared__ float block[height][width + 2 * radius];
    int x = blockIdx.x * width + threadIdx.x, y = blockIdx.y * height + threadIdx.y;
    for (int i = threadIdx.x; i < width + 2 * radius; i += width) {
        int from = blockIdx.x * width + i - radius;
        block[threadIdx.y][i] = from >= 0 && from < side ? in[y * side + from] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int i = 0; i <= 2 * radius; i++)
        sum += weights[i] * block[threadIdx.y][threadIdx.x + i];
    out[y * side + x] = sum;
}

__global__ void along_columns(const float *in, float *out, int side) {
    __shared__ float block[tile + 2 * radius][width];
    int x = blockIdx.x * width + threadIdx.x;
    for (int i = threadIdx.y; i < tile + 2 * radius; i += height) {
        int from = blockIdx.y * tile + i - radius;
        block[i][threadIdx.x] = from >= 0 && from < side ? in[from * side + x] : 0;
    }
    __syncthreads();
    for (int y = threadIdx.y; y < tile; y += height) {
        float sum = 0;
        for (int i = 0; i <= 2 * radius; i++)
            sum += weights[i] * block[y + i][threadIdx.x];
        out[(blockIdx.y * tile + y) * side + x] = sum;
    }
}

static void blur(const float *filter, const float *in, float *between, float *out, int side) {
    for (int y = 0; y < side; y++)
        for (int i = -radius; i <= radius; i++)
            for (int x = std::max(0, -i); x < side - std::max(0, i); x++)
                between[y * side + x] += filter[i + radius] * in[y * side + x + i];
    for (int y = 0; y < side; y++)
        for (int i = std::max(-radius, -y); i <= std::min(radius, side - 1 - y); i++)
            for (int x = 0; x < side; x++)
                out[y * side + x] += filter[i + radius] * between[(y + i) * side + x];
}

int main(int count, char **arguments) {
    const int side = size(count, arguments, 1536, 128);
    EXPECT(side % width == 0, "the side must be a multiple of %d", width);
    Random random(4);
    std::vector<float> filter(2 * radius + 1), picture(side * side);
    for (float &weight : filter)
        weight = random.real(0, 1.0f / radius);
    for (float &pixel : picture)
        pixel = random.real(0, 1);
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(weights), filter.data(), sizeof(weights)));
    Device<float> in(picture), between(side * side), out(side * side);
    double gpu = seconds([&] {
        dim3 threads(width, height);
        along_rows<<<dim3(side / width, side / height), threads>>>(in, between, side);
        along_columns<<<dim3(side / width, side / tile), threads>>>(between, out, side);
    });
    std::vector<float> half(side * side), blurred(side * side);
    double host = seconds([&] {
        blur(filter.data(), picture.data(), half.data(), blurred.data(), side);
    });
    expect_close("picture", out.values(), blurred, 1e-5);
    return report("convolution", gpu, host, out.values());
}
