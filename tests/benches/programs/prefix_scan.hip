// Prefix sums: workgroups scan their parts in shared memory, the totals are scanned in the same way
// and added.
#include "program.h"

const int threads = 256, each = 4, part = threads * each;

__global__ void scan(uint32_t *values, int count, uint32_t *totals) {
    __shared__ uint32_t sums[2][threads];
    int first = blockIdx.x * part + threadIdx.x * each, from = 0;
    uint32_t prefix[each], sum = 0;
    for (int i = 0; i < each; i++)
        prefix[i] = sum += first + i < count ? values[first + i] : 0;
    sums[from][threadIdx.x] = sum;
    __syncthreads();
    for (int distance = 1; distance < threads; distance *= 2, from ^= 1) {
        uint32_t next = sums[from][threadIdx.x];
        if (threadIdx.x >= distance)
            next += sums[from][threadIdx.x - distance];
        sums[from ^ 1][threadIdx.x] = next;
        __syncthreads();
    }
    uint32_t before = sums[from][threadIdx.x] - sum;
    for (int i = 0; i < each; i++)
        if (first + i < count)
            values[first + i] = before + prefix[i];
    if (threadIdx.x == threads - 1)
        totals[blockIdx.x] = sums[from][threadIdx.x];
}

__global__ void add(uint32_t *values, int count, const uint32_t *totals) {
    if (blockIdx.x == 0)
        return;
    for (int i = threadIdx.x; i < part; i += threads)
        if (blockIdx.x * part + i < count)
            values[blockIdx.x * part + i] += totals[blockIdx.x - 1];
}

// Totals of the levels, one level after the other.
static void scan_all(uint32_t *values, int count, uint32_t *totals) {
    int parts = groups(count, part);
    scan<<<parts, threads>>>(values, count, totals);
    if (parts > 1) {
        scan_all(totals, parts, totals + parts);
        add<<<parts, threads>>>(values, count, totals);
    }
}

static void scan_host(uint32_t *values, int count) {
    uint32_t sum = 0;
    for (int i = 0; i < count; i++)
        values[i] = sum += values[i];
}

int main(int count_of_arguments, char **arguments) {
    const int count = size(count_of_arguments, arguments, 1 << 22, 20000);
    Random random(14);
    std::vector<uint32_t> values(count);
    for (uint32_t &value : values)
        value = random.word();
    Device<uint32_t> device_values(values), totals(groups(count, part) * 2 + 2);
    double gpu = seconds([&] { scan_all(device_values, count, totals); });
    double host = seconds([&] { scan_host(values.data(), count); });
    expect_equal("sums", device_values.values(), values);
    return report("prefix_scan", gpu, host, values);
}
