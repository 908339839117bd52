// Three-dimensional grids and workgroups: every thread has the right index and runs exactly once.
#include "check.h"

struct Place {
    unsigned block[3], thread[3], grid[3], size[3];
};

__global__ void places(Place *out, int *visits) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
    out[i] = Place{{blockIdx.x, blockIdx.y, blockIdx.z},
                   {threadIdx.x, threadIdx.y, threadIdx.z},
                   {gridDim.x, gridDim.y, gridDim.z},
                   {blockDim.x, blockDim.y, blockDim.z}};
    atomicAdd(&visits[i], 1);
}

void check(dim3 grid, dim3 size) {
    unsigned blocks = grid.x * grid.y * grid.z, threads = size.x * size.y * size.z;
    Place *device_places = to_device(std::vector<Place>(blocks * threads));
    int *device_visits = to_device(std::vector<int>(blocks * threads));
    places<<<grid, size>>>(device_places, device_visits);
    HIP(hipGetLastError());
    std::vector<Place> found = from_device(device_places, blocks * threads);
    expect_equal("visits", from_device(device_visits, blocks * threads),
                 std::vector<int>(blocks * threads, 1));
    for (unsigned i = 0; i < blocks * threads; i++) {
        unsigned block = i / threads, thread = i % threads;
        unsigned expected[4][3] = {
            {block % grid.x, block / grid.x % grid.y, block / grid.x / grid.y},
            {thread % size.x, thread / size.x % size.y, thread / size.x / size.y},
            {grid.x, grid.y, grid.z},
            {size.x, size.y, size.z}};
        const unsigned *is[4] = {found[i].block, found[i].thread, found[i].grid, found[i].size};
        for (int part = 0; part < 4; part++)
            for (int axis = 0; axis < 3; axis++)
                EXPECT(is[part][axis] == expected[part][axis],
                       "thread %u: part %d, axis %d is %u, not %u", i, part, axis, is[part][axis],
                       expected[part][axis]);
    }
    HIP(hipFree(device_places));
    HIP(hipFree(device_visits));
}

int main() {
    check(dim3(2, 3, 4), dim3(8, 4, 2));
    check(dim3(7, 1, 5), dim3(5, 3, 7));
    check(dim3(1, 300), dim3(3));
    check(dim3(1, 1, 40), dim3(1, 1, 60));
    check(dim3(2), dim3(1024));
    return passed();
}
