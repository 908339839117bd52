// Advection along lines with a wind that varies in space: each step looks up the origin of the air.
// A thread holds its line in private arrays with computed indices, which the compiler places in
// scratch memory.
#include "program.h"

const int cells = 64, steps = 8, threads = 256;

// One periodic line with a wind around it.
__host__ __device__ inline void transport(float *now, const float *wind) {
    float next[cells];
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < cells; i++) {
            float from = i - wind[i], whole = floorf(from);
            int left = (int)whole & (cells - 1), right = (left + 1) & (cells - 1);
            next[i] = now[left] + (from - whole) * (now[right] - now[left]);
        }
        for (int i = 0; i < cells; i++)
            now[i] = next[i];
    }
}

// Cells of one line are `lines` apart, so that neighbouring threads read neighbouring words.
__global__ void transport_all(float *field, const float *winds, int lines) {
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines)
        return;
    float now[cells], wind[cells];
    for (int i = 0; i < cells; i++) {
        now[i] = field[i * lines + line];
        wind[i] = winds[i * lines + line];
    }
    transport(now, wind);
    for (int i = 0; i < cells; i++)
        field[i * lines + line] = now[i];
}

static void transport_host(std::vector<float> &field, const std::vector<float> &winds, int lines) {
    for (int line = 0; line < lines; line++) {
        float now[cells], wind[cells];
        for (int i = 0; i < cells; i++) {
            now[i] = field[i * lines + line];
            wind[i] = winds[i * lines + line];
        }
        transport(now, wind);
        for (int i = 0; i < cells; i++)
            field[i * lines + line] = now[i];
    }
}

int main(int count, char **arguments) {
    const int lines = size(count, arguments, 16384, 300);
    Random random(1);
    std::vector<float> field(cells * lines), winds(cells * lines);
    for (int i = 0; i < cells * lines; i++) {
        field[i] = random.real(0, 1);
        winds[i] = random.real(-5, 5);
    }
    Device<float> device_field(field), device_winds(winds);
    double gpu = seconds([&] {
        transport_all<<<groups(lines, threads), threads>>>(device_field, device_winds, lines);
    });
    double host = seconds([&] { transport_host(field, winds, lines); });
    expect_close("field", device_field.values(), field, 1e-5);
    return report("advection", gpu, host, device_field.values());
}
