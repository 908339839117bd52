// Heat in a block: a 7-point stencil over the inner points of a cube, for several steps. A thread
// moves through the block from front to back and keeps loaded values in registers.
#include "program.h"

const int width = 32, height = 8, steps = 6;
const float share = 0.1f;

__host__ __device__ inline float mixed(float center, float left, float right, float above,
                                       float below, float before, float behind) {
    return center + share * (left + right + above + below + before + behind - 6 * center);
}

__global__ void step(const float *in, float *out, int side) {
    int x = blockIdx.x * width + threadIdx.x + 1, y = blockIdx.y * height + threadIdx.y + 1;
    if (x >= side - 1 || y >= side - 1)
        return;
    int i = y * side + x, layer = side * side;
    float before = in[i], center = in[i + layer];
    for (int z = 1; z < side - 1; z++) {
        i += layer;
        float behind = in[i + layer];
        out[i] = mixed(center, in[i - 1], in[i + 1], in[i - side], in[i + side], before, behind);
        before = center;
        center = behind;
    }
}

static void step_host(const float *in, float *out, int side) {
    int layer = side * side;
    for (int z = 1; z < side - 1; z++)
        for (int y = 1; y < side - 1; y++)
            for (int i = z * layer + y * side + 1; i < z * layer + (y + 1) * side - 1; i++)
                out[i] = mixed(in[i], in[i - 1], in[i + 1], in[i - side], in[i + side],
                               in[i - layer], in[i + layer]);
}

int main(int count, char **arguments) {
    const int side = size(count, arguments, 160, 24);
    Random random(19);
    std::vector<float> block(side * side * side);
    for (float &value : block)
        value = random.real(0, 1);
    std::vector<float> next = block;
    Device<float> a(block), b(block);
    float *in = a, *out = b;
    double gpu = seconds([&] {
        dim3 grid(groups(side - 2, width), groups(side - 2, height));
        for (int i = 0; i < steps; i++) {
            step<<<grid, dim3(width, height)>>>(in, out, side);
            std::swap(in, out);
        }
    });
    double host = seconds([&] {
        for (int i = 0; i < steps; i++) {
            step_host(block.data(), next.data(), side);
            block.swap(next);
        }
    });
    expect_close("block", from_device(in, block.size()), block, 1e-5);
    return report("stencil_3d", gpu, host, from_device(in, block.size()));
}
