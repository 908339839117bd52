// Assigns integer points to 16 centres, which then move to the mean of their points, for several
// iterations. Sums use 32-bit atomic operations in shared memory and then 64-bit ones in global
// memory.
#include "program.h"

const int centres = 16, axes = 4, rounds = 5, threads = 256;
const int values = centres * axes;
typedef unsigned long long Sum;

// Returns the nearest centre. Coordinates of a point are `count` words apart.
__host__ __device__ inline int nearest(const int *point, int count, const int *middle) {
    int best = 0, least = INT32_MAX;
    for (int centre = 0; centre < centres; centre++) {
        int distance = 0;
        for (int axis = 0; axis < axes; axis++) {
            int away = point[axis * count] - middle[centre * axes + axis];
            distance += away * away;
        }
        best = distance < least ? centre : best;
        least = distance < least ? distance : least;
    }
    return best;
}

// Sums of coordinates, followed by numbers of points.
__global__ void divide(const int *points, int count, const int *middle, Sum *sums) {
    __shared__ int local_middle[values];
    __shared__ unsigned local_sums[values + centres];
    if (threadIdx.x < values)
        local_middle[threadIdx.x] = middle[threadIdx.x];
    if (threadIdx.x < values + centres)
        local_sums[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * threads + threadIdx.x;
    if (i < count) {
        int cluster = nearest(points + i, count, local_middle);
        for (int axis = 0; axis < axes; axis++)
            atomicAdd(&local_sums[cluster * axes + axis], (unsigned)points[axis * count + i]);
        atomicAdd(&local_sums[values + cluster], 1u);
    }
    __syncthreads();
    if (threadIdx.x < values + centres)
        atomicAdd(&sums[threadIdx.x], (Sum)local_sums[threadIdx.x]);
}

__global__ void move(Sum *sums, int *middle) {
    Sum count = sums[values + threadIdx.x / axes];
    if (count > 0)
        middle[threadIdx.x] = (int)(sums[threadIdx.x] / count);
    __syncthreads();
    sums[threadIdx.x] = 0;
    if (threadIdx.x < centres)
        sums[values + threadIdx.x] = 0;
}

static void round_host(const int *points, int count, int *middle) {
    Sum sums[values + centres] = {};
    for (int i = 0; i < count; i++) {
        int cluster = nearest(points + i, count, middle);
        for (int axis = 0; axis < axes; axis++)
            sums[cluster * axes + axis] += points[axis * count + i];
        sums[values + cluster]++;
    }
    for (int i = 0; i < values; i++)
        if (sums[values + i / axes] > 0)
            middle[i] = (int)(sums[i] / sums[values + i / axes]);
}

int main(int count_of_arguments, char **arguments) {
    const int count = size(count_of_arguments, arguments, 1 << 17, 2000);
    Random random(8);
    std::vector<int> points(axes * count), middle(values);
    for (int &value : points)
        value = random.word() % 4096 * (random.word() % 3) / 2;
    for (int &value : middle)
        value = random.word() % 4096;
    Device<int> device_points(points), device_middle(middle);
    Device<Sum> sums(values + centres);
    double gpu = seconds([&] {
        for (int round = 0; round < rounds; round++) {
            divide<<<groups(count, threads), threads>>>(device_points, count, device_middle, sums);
            move<<<1, values>>>(sums, device_middle);
        }
    });
    double host = seconds([&] {
        for (int round = 0; round < rounds; round++)
            round_host(points.data(), count, middle.data());
    });
    expect_equal("centres", device_middle.values(), middle);
    return report("k_means", gpu, host, middle);
}
