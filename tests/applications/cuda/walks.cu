// A program on CUDA's runtime API with kernels in the same file: lanes walk through a table until they meet its end, in
// loops of different lengths, and count the ends in shared memory. Prints all results.
#include "runtime.h"

enum { LENGTH = 64, WALKS = 96, BLOCK = 48 };

__constant__ unsigned seeds[4];
__device__ unsigned steps_of_all = 0;

// Not inlined, so that faults also strike called functions and their variables.
__device__ __attribute__((noinline)) unsigned next(const unsigned *table, unsigned at, unsigned round)
{
    unsigned history[4] = {at, round, at ^ round, 1};
    for (unsigned i = 0; i < 4; i++)
        history[(i + round) & 3] += history[i];
    return table[(at + history[round & 3]) % LENGTH];
}

__global__ void walk(const unsigned *table, unsigned *ends)
{
    __shared__ unsigned counts[8];
    unsigned number = blockIdx_x * blockDim_x + threadIdx_x;
    if (threadIdx_x < 8)
        counts[threadIdx_x] = 0;
    __syncthreads();
    unsigned at = seeds[number % 4] + number, round = 0;
#pragma clang loop unroll(disable)
    while (at % 7 != 3 && round != 20) {
        at = next(table, at, round);
        round++;
    }
    __nvvm_atom_add_gen_i((int *)&counts[at % 8], 1);
    __nvvm_atom_add_gen_i((int *)&steps_of_all, (int)round);
    __syncthreads();
    ends[number] = at << 8 | counts[threadIdx_x % 8];
}

__global__ void mix(unsigned *ends)
{
    unsigned number = threadIdx_x;
    if (number < WALKS / 2)
        ends[number] ^= ends[WALKS - 1 - number];
}

int main()
{
    unsigned table[LENGTH], ends[WALKS], host_seeds[4] = {5, 11, 23, 42}, all;
    for (unsigned i = 0; i < LENGTH; i++)
        table[i] = (i * 37 + 11) % 251;
    CALL(cudaMemcpyToSymbol(seeds, host_seeds, sizeof host_seeds, 0, cudaMemcpyHostToDevice));
    unsigned *on_device, *results;
    CALL(cudaMalloc((void **)&on_device, sizeof table));
    CALL(cudaMalloc((void **)&results, sizeof ends));
    CALL(cudaMemcpy(on_device, table, sizeof table, cudaMemcpyHostToDevice));
    for (int run = 0; run < 2; run++) {
        walk<<<WALKS / BLOCK, BLOCK>>>(on_device, results);
        mix<<<1, WALKS>>>(results);
    }
    CALL(cudaMemcpy(ends, results, sizeof ends, cudaMemcpyDeviceToHost));
    CALL(cudaMemcpyFromSymbol(&all, &steps_of_all, sizeof all, 0, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < WALKS; i++)
        printf("%x%c", ends[i], i % 12 == 11 ? '\n' : ' ');
    printf("%u steps\n", all);
    return 0;
}
