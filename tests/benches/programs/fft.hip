// Fourier transforms of many signals of 1,024 complex numbers: one workgroup each, radix 2, in
// shared memory.
#include "program.h"

const int bits = 10, points = 1 << bits, threads = 256;

// Initial position of a point.
__host__ __device__ inline int reversed(int i) {
    int out = 0;
    for (int bit = 0; bit < bits; bit++)
        out |= (i >> bit & 1) << (bits - 1 - bit);
    return out;
}

// Butterfly of a pair of points.
__host__ __device__ inline void butterfly(float2 &a, float2 &b, float2 turn) {
    float2 turned = make_float2(b.x * turn.x - b.y * turn.y, b.x * turn.y + b.y * turn.x);
    b = make_float2(a.x - turned.x, a.y - turned.y);
    a = make_float2(a.x + turned.x, a.y + turned.y);
}

__global__ void transform(float2 *signals, const float2 *turns) {
    __shared__ float2 block[points];
    float2 *signal = signals + blockIdx.x * points;
    for (int i = threadIdx.x; i < points; i += threads)
        block[reversed(i)] = signal[i];
    __syncthreads();
    for (int stage = 0; stage < bits; stage++) {
        int half = 1 << stage;
        for (int i = threadIdx.x; i < points / 2; i += threads) {
            int part = i & (half - 1), first = (i >> stage << (stage + 1)) + part;
            butterfly(block[first], block[first + half], turns[part << (bits - 1 - stage)]);
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < points; i += threads)
        signal[i] = block[i];
}

static void transform_host(float2 *signal, int signals, const float2 *turns) {
    for (; signals > 0; signals--, signal += points) {
        for (int i = 0; i < points; i++)
            if (i < reversed(i))
                std::swap(signal[i], signal[reversed(i)]);
        for (int stage = 0; stage < bits; stage++)
            for (int half = 1 << stage, first = 0; first < points; first += 2 * half)
                for (int part = 0; part < half; part++)
                    butterfly(signal[first + part], signal[first + part + half],
                              turns[part << (bits - 1 - stage)]);
    }
}

int main(int count, char **arguments) {
    const int signals = size(count, arguments, 1024, 6);
    Random random(6);
    std::vector<float2> values(signals * points), turns(points / 2);
    for (float2 &value : values)
        value = make_float2(random.real(-1, 1), random.real(-1, 1));
    for (int i = 0; i < points / 2; i++) {
        double angle = -2 * M_PI * i / points;
        turns[i] = make_float2((float)std::cos(angle), (float)std::sin(angle));
    }
    Device<float2> device_values(values), device_turns(turns);
    double gpu = seconds([&] { transform<<<signals, threads>>>(device_values, device_turns); });
    double host = seconds([&] { transform_host(values.data(), signals, turns.data()); });
    std::vector<float2> found = device_values.values();
    for (int i = 0; i < signals * points; i++)
        EXPECT(std::hypot(found[i].x - values[i].x, found[i].y - values[i].y) < 1e-4,
               "[%d] is %g + %gi, not %g + %gi", i, found[i].x, found[i].y, values[i].x,
               values[i].y);
    return report("fft", gpu, host, found);
}
