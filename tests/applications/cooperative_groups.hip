// Cooperative groups: the workgroup, tiles of the workgroup, and the whole grid, which is resident.
#include "check.h"

#include <hip/hip_cooperative_groups.h>

namespace groups = cooperative_groups;

const int threads = 128, blocks = 4, count = threads * blocks, large = 1024;

__global__ void tiles(const int *in, int *sums, int *ranks) {
    groups::thread_block block = groups::this_thread_block();
    groups::thread_block_tile<16> tile = groups::tiled_partition<16>(block);
    int i = blockIdx.x * blockDim.x + block.thread_rank(), sum = in[i];
    for (int distance = tile.size() / 2; distance > 0; distance /= 2)
        sum += tile.shfl_xor(sum, distance);
    sums[i] = sum;
    __shared__ int reversed[threads];
    reversed[block.size() - 1 - block.thread_rank()] = tile.thread_rank();
    block.sync();
    ranks[i] = reversed[block.thread_rank()];
}

// In a second step, each workgroup reads the words that another wrote in the first.
__global__ void whole_grid(int *values) {
    groups::grid_group grid = groups::this_grid();
    int i = grid.thread_rank(), partner = (i + threads) % grid.size();
    for (int step = 0; step < 4; step++) {
        int partner_value = values[partner];
        grid.sync();
        values[i] = values[i] * 2 + partner_value;
        grid.sync();
    }
}

// Launches the given number of workgroups together.
void steps(int blocks) {
    int count = blocks * threads;
    std::vector<int> values(count), next(count);
    for (int i = 0; i < count; i++)
        values[i] = i * i % 1009;
    int *device_values = to_device(values);
    void *arguments[] = {&device_values};
    HIP(hipLaunchCooperativeKernel((const void *)whole_grid, dim3(blocks), dim3(threads), arguments,
                                   0, nullptr));
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < count; i++)
            next[i] = values[i] * 2 + values[(i + threads) % count];
        values = next;
    }
    expect_equal("steps of the grid", from_device(device_values, count), values);
    HIP(hipFree(device_values));
}

int main() {
    std::vector<int> in(count), sums(count), ranks(count);
    for (int i = 0; i < count; i++)
        in[i] = i * i % 1009;
    for (int i = 0; i < count; i++) {
        for (int member = i / 16 * 16; member < i / 16 * 16 + 16; member++)
            sums[i] += in[member];
        ranks[i] = 15 - i % 16;
    }
    int *device_in = to_device(in), *device_sums = to_device(in), *device_ranks = to_device(in);
    tiles<<<blocks, threads>>>(device_in, device_sums, device_ranks);
    HIP(hipGetLastError());
    expect_equal("sums", from_device(device_sums, count), sums);
    expect_equal("ranks", from_device(device_ranks, count), ranks);

    int can_launch = 0;
    HIP(hipDeviceGetAttribute(&can_launch, hipDeviceAttributeCooperativeLaunch, 0));
    EXPECT(can_launch, "no cooperative launches");
    steps(blocks);
    int of_unit = 0, units = 0;
    HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&of_unit, whole_grid, large, 0));
    HIP(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    int most = of_unit * units;
    int *values = to_device(std::vector<int>((most + 1) * large));
    void *arguments[] = {&values};
    HIP(hipLaunchCooperativeKernel((const void *)whole_grid, dim3(most), dim3(large), arguments, 0,
                                   nullptr));
    HIP(hipDeviceSynchronize());
    HIP_GIVES(hipErrorCooperativeLaunchTooLarge,
              hipLaunchCooperativeKernel((const void *)whole_grid, dim3(most + 1), dim3(large),
                                         arguments, 0, nullptr));
    (void)hipGetLastError();
    for (int *buffer : {device_in, device_sums, device_ranks, values})
        HIP(hipFree(buffer));
    return passed();
}
