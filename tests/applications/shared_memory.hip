// Shared memory of a fixed size (a tiled matrix product) and of a size given at the launch (reversal,
// two arrays in one allocation), with barriers.
#include "check.h"

const int tile = 16, side = 48;

__global__ void multiply(const float *a, const float *b, float *c) {
    __shared__ float tile_a[tile][tile], tile_b[tile][tile + 1];
    int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < side; start += tile) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * side + start + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * side + column];
        __syncthreads();
        for (int i = 0; i < tile; i++)
            sum = fmaf(tile_a[threadIdx.y][i], tile_b[i][threadIdx.x], sum);
        __syncthreads();
    }
    c[row * side + column] = sum;
}

// Each workgroup reverses its words and counts the even words before each.
__global__ void reverse(const int *in, int *reversed, int *evens_before) {
    extern __shared__ int dynamic[];
    int *words = dynamic;
    unsigned char *evens = (unsigned char *)(dynamic + blockDim.x);
    int base = blockIdx.x * blockDim.x, i = threadIdx.x;
    words[i] = in[base + i];
    evens[i] = in[base + i] % 2 == 0;
    __syncthreads();
    reversed[base + i] = words[blockDim.x - 1 - i];
    int count = 0;
    for (int before = 0; before < i; before++)
        count += evens[before];
    evens_before[base + i] = count;
}

// The last words of a large allocation.
__global__ void far_end(int bytes, int *out) {
    extern __shared__ int dynamic[];
    int last = bytes / 4 - 1;
    dynamic[last - threadIdx.x] = threadIdx.x * 3;
    __syncthreads();
    out[threadIdx.x] = dynamic[last - (threadIdx.x ^ 1)];
}

int main() {
    Random random(4);
    std::vector<float> a(side * side), b(side * side), c(side * side);
    for (int i = 0; i < side * side; i++) {
        a[i] = random.real(-1, 1);
        b[i] = random.real(-1, 1);
    }
    float *device_a = to_device(a), *device_b = to_device(b), *device_c = to_device(c);
    multiply<<<dim3(side / tile, side / tile), dim3(tile, tile)>>>(device_a, device_b, device_c);
    HIP(hipGetLastError());
    for (int row = 0; row < side; row++)
        for (int column = 0; column < side; column++)
            for (int i = 0; i < side; i++)
                c[row * side + column] = std::fmaf(a[row * side + i], b[i * side + column],
                                                   c[row * side + column]);
    expect_equal("product", from_device(device_c, side * side), c);

    for (int threads : {64, 200, 512}) {
        int count = 4 * threads;
        std::vector<int> in(count), reversed(count), evens(count);
        for (int i = 0; i < count; i++)
            in[i] = (int)(random.word() >> 1);
        int *device_in = to_device(in), *device_out = to_device(in), *device_evens = to_device(in);
        reverse<<<4, threads, threads * 5>>>(device_in, device_out, device_evens);
        HIP(hipGetLastError());
        for (int i = 0; i < count; i++) {
            int base = i / threads * threads;
            reversed[i] = in[base + threads - 1 - (i - base)];
            for (int before = base; before < i; before++)
                evens[i] += in[before] % 2 == 0;
        }
        expect_equal("reversed", from_device(device_out, count), reversed);
        expect_equal("evens", from_device(device_evens, count), evens);
        for (int *buffer : {device_in, device_out, device_evens})
            HIP(hipFree(buffer));
    }

    int bytes = 60 * 1024, *out = to_device(std::vector<int>(128));
    far_end<<<1, 128, bytes>>>(bytes, out);
    HIP(hipGetLastError());
    std::vector<int> ends(128);
    for (int i = 0; i < 128; i++)
        ends[i] = (i ^ 1) * 3;
    expect_equal("far end", from_device(out, 128), ends);
    for (void *buffer : {(void *)device_a, (void *)device_b, (void *)device_c, (void *)out})
        HIP(hipFree(buffer));
    return passed();
}
