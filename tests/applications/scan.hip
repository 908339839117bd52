// Prefix sums over many workgroups in three kernels: scan each workgroup, scan the totals, add.
#include "check.h"

const int threads = 128;

__global__ void scan_blocks(const int *in, int *out, int *totals, int count) {
    __shared__ int sums[2][threads];
    int i = blockIdx.x * threads + threadIdx.x, from = 0;
    sums[0][threadIdx.x] = i < count ? in[i] : 0;
    __syncthreads();
    for (int distance = 1; distance < threads; distance *= 2) {
        int sum = sums[from][threadIdx.x];
        if (threadIdx.x >= distance)
            sum += sums[from][threadIdx.x - distance];
        sums[1 - from][threadIdx.x] = sum;
        from = 1 - from;
        __syncthreads();
    }
    if (i < count)
        out[i] = sums[from][threadIdx.x];
    if (threadIdx.x == threads - 1)
        totals[blockIdx.x] = sums[from][threadIdx.x];
}

__global__ void add_totals(int *out, const int *totals, int count) {
    int i = blockIdx.x * threads + threadIdx.x;
    if (blockIdx.x > 0 && i < count)
        out[i] += totals[blockIdx.x - 1];
}

void scan(const int *in, int *out, int count) {
    int blocks = (count + threads - 1) / threads, *totals = nullptr;
    HIP(hipMalloc((void **)&totals, blocks * sizeof(int)));
    scan_blocks<<<blocks, threads>>>(in, out, totals, count);
    HIP(hipGetLastError());
    if (blocks > 1) {
        scan(totals, totals, blocks);
        add_totals<<<blocks, threads>>>(out, totals, count);
        HIP(hipGetLastError());
    }
    HIP(hipFree(totals));
}

int main() {
    Random random(8);
    for (int count : {1, 128, 129, 5000, 16500}) {
        std::vector<int> in(count), expected(count);
        int sum = 0;
        for (int i = 0; i < count; i++) {
            in[i] = (int)(random.word() % 1000) - 300;
            expected[i] = sum += in[i];
        }
        int *device_in = to_device(in), *device_out = to_device(in);
        scan(device_in, device_out, count);
        expect_equal("prefix sums", from_device(device_out, count), expected);
        HIP(hipFree(device_in));
        HIP(hipFree(device_out));
    }
    return passed();
}
