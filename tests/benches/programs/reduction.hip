// The least, the greatest, the sum and the sum of squares of many numbers: each thread goes through
// its share, then lanes of a wave exchange what they have, then waves through shared memory, and a
// second launch does the same with what the workgroups have left.
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

// The summary of a workgroup's; valid in its first thread.
__device__ Summary together(Summary own) {
    __shared__ Summary shared[waves];
    for (int distance = 32; distance > 0; distance /= 2)
        own = both(own, {__shfl_down(own.least, distance), __shfl_down(own.greatest, distance),
                         __shfl_down(own.sum, distance), __shfl_down(own.squares, distance)});
    if (threadIdx.x % 64 == 0)
        shared[threadIdx.x / 64] = own;
    __syncthreads();
    for (int wave = 1; wave < waves; wave++)
        own = both(own, shared[wave]);
    return own;
}

// There are at least as many values as threads.
__global__ void summarise(const float *values, int count, Summary *out) {
    int i = blockIdx.x * threads + threadIdx.x;
    Summary own = one(values[i]);
    for (i += threads * gridDim.x; i < count; i += threads * gridDim.x)
        own = both(own, one(values[i]));
    own = together(own);
    if (threadIdx.x == 0)
        out[blockIdx.x] = own;
}

__global__ void summarise_again(Summary *all) {
    Summary own = together(all[threadIdx.x]);
    if (threadIdx.x == 0)
        all[0] = own;
}

// In sixteen parts side by side, or each sum would wait for the one before.
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
    Device<float> own(values);
    Device<Summary> summaries(workgroups);
    double gpu = seconds([&] {
        summarise<<<workgroups, threads>>>(own, count, summaries);
        summarise_again<<<1, workgroups>>>(summaries);
    });
    Summary right;
    double host = seconds([&] { right = summarise_host(values.data(), count); });
    std::vector<Summary> found = from_device((Summary *)summaries, 1);
    auto numbers = [](Summary own) {
        return std::vector<double>{own.least, own.greatest, own.sum, own.squares};
    };
    expect_close("summary", numbers(found[0]), numbers(right), 1e-9);
    return report("reduction", gpu, host, found);
}
