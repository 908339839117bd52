// Minimum, maximum, sum and sum of squares of many numbers: each thread reduces its share, then lanes
// of a wave exchange their results, then waves through shared memory, and a second launch reduces
// the results of the workgroups.
#include "program.h"

const int threads = 256, workgroups = 256, waves = threads / 64;

struct Summary {
    float least, greatest;
    double sum, squares;
};

__host__ __device__ inline Summary both(Summary a, Summary b) {
    return {fminf(a.least, b.least), fmaxf(a.greatest, b.greatest), a.sum + b.sum,
            a.squares + b.squares};
}

__host__ __device__ inline Summary one(float value) {
    return {value, value, value, (double)value * value};
}

// Reduces the values of a workgroup. The result is valid in its first thread.
__device__ Summary together(Summary summary) {
    __shared__ Summary shared[waves];
    for (int distance = 32; distance > 0; distance /= 2)
        summary = both(summary, {__shfl_down(summary.least, distance),
                                 __shfl_down(summary.greatest, distance),
                                 __shfl_down(summary.sum, distance),
                                 __shfl_down(summary.squares, distance)});
    if (threadIdx.x % 64 == 0)
        shared[threadIdx.x / 64] = summary;
    __syncthreads();
    for (int wave = 1; wave < waves; wave++)
        summary = both(summary, shared[wave]);
    return summary;
}

// There are at least as many values as threads.
__global__ void summarise(const float *values, int count, Summary *out) {
    int i = blockIdx.x * threads + threadIdx.x;
    Summary summary = one(values[i]);
    for (i += threads * gridDim.x; i < count; i += threads * gridDim.x)
        summary = both(summary, one(values[i]));
    summary = together(summary);
    if (threadIdx.x == 0)
        out[blockIdx.x] = summary;
}

__global__ void summarise_again(Summary *all) {
    Summary summary = together(all[threadIdx.x]);
    if (threadIdx.x == 0)
        all[0] = summary;
}

// Sixteen independent partial sums, because each addition would otherwise wait for the previous one.
static Summary summarise_host(const float *values, int count) {
    const int parts = 16;
    float least[parts], greatest[parts];
    double sums[parts] = {}, squares[parts] = {};
    std::fill(least, least + parts, INFINITY);
    std::fill(greatest, greatest + parts, -INFINITY);
    for (int first = 0; first < count; first += parts)
        for (int i = 0; i < parts; i++) {
            float value = values[first + i];
            least[i] = value < least[i] ? value : least[i];
            greatest[i] = value > greatest[i] ? value : greatest[i];
            sums[i] += value;
            squares[i] += (double)value * value;
        }
    Summary whole = {least[0], greatest[0], sums[0], squares[0]};
    for (int i = 1; i < parts; i++)
        whole = both(whole, {least[i], greatest[i], sums[i], squares[i]});
    return whole;
}

int main(int count_of_arguments, char **arguments) {
    const int count = size(count_of_arguments, arguments, 256, 2) * threads * workgroups;
    Random random(16);
    std::vector<float> values(count);
    for (float &value : values)
        value = random.real(-1, 2);
    Device<float> device_values(values);
    Device<Summary> summaries(workgroups);
    double gpu = seconds([&] {
        summarise<<<workgroups, threads>>>(device_values, count, summaries);
        summarise_again<<<1, workgroups>>>(summaries);
    });
    Summary right;
    double host = seconds([&] { right = summarise_host(values.data(), count); });
    std::vector<Summary> found = from_device((Summary *)summaries, 1);
    auto numbers = [](Summary summary) {
        return std::vector<double>{summary.least, summary.greatest, summary.sum, summary.squares};
    };
    expect_close("summary", numbers(found[0]), numbers(right), 1e-9);
    return report("reduction", gpu, host, found);
}
