// Monte Carlo price of an Asian option: each thread follows a price along paths with its own random
// generator, and adds up the amounts by which the mean price exceeds the strike.
#include "program.h"

const int threads = 256, paths = 4, days = 32;
const float start = 100, strike = 98, rate = 0.03f, volatility = 0.25f, years = 1;

// Marsaglia's xorshift, in (0, 1].
__host__ __device__ inline float uniform(uint32_t &state) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return ((state >> 8) + 1) / 16777216.0f;
}

// Sum of the payoffs of a thread's paths.
__host__ __device__ inline float worth(int thread) {
    uint32_t state = thread * 2654435761u ^ 0x9e3779b9u;
    state = state == 0 ? 1 : state;
    const float day = years / days, drift = (rate - volatility * volatility / 2) * day;
    const float spread = volatility * sqrtf(day);
    float sum = 0;
    for (int path = 0; path < paths; path++) {
        float price = start, mean = 0;
        for (int i = 0; i < days; i += 2) {
            // Two normal numbers from two uniform ones (Box-Muller).
            float length = sqrtf(-2 * logf(uniform(state))), angle = uniform(state) * 6.2831853f;
            price *= expf(drift + spread * length * cosf(angle));
            mean += price / days;
            price *= expf(drift + spread * length * sinf(angle));
            mean += price / days;
        }
        sum += fmaxf(mean - strike, 0);
    }
    return sum * expf(-rate * years);
}

__global__ void follow(float *sums) {
    __shared__ float partial[threads];
    partial[threadIdx.x] = worth(blockIdx.x * threads + threadIdx.x);
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = partial[0];
}

static void follow_host(std::vector<float> &sums) {
    for (size_t group = 0; group < sums.size(); group++) {
        float sum = 0;
        for (int i = 0; i < threads; i++)
            sum += worth(group * threads + i);
        sums[group] = sum;
    }
}

int main(int count, char **arguments) {
    const int workgroups = size(count, arguments, 96, 2);
    Device<float> device_sums(workgroups);
    double gpu = seconds([&] { follow<<<workgroups, threads>>>(device_sums); });
    std::vector<float> sums(workgroups);
    double host = seconds([&] { follow_host(sums); });
    expect_close("sums", device_sums.values(), sums, 1e-4);
    return report("options", gpu, host, device_sums.values());
}
