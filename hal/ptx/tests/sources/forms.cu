// Directives, calls, state spaces and inline assembly that the suite's kernels do not contain.

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

struct Pair {
    double first;
    char second[12];
};

__constant__ int table[4] = {1, -2, 0x7fffffff, 4};
__device__ float weights[2][3] = {{1.5f, -0.0f, 3e-40f}, {1e30f}};
__device__ int counter;
__device__ int *pointer = &counter + 3;
__device__ char text[] = "text";
extern __shared__ int dynamic[];

typedef int (*Operation)(int, int);

__device__ __attribute__((noinline)) int add(int a, int b) { return a + b; }
__device__ __attribute__((noinline)) int multiply(int a, int b) { return a * b; }
__device__ Operation operations[2] = {add, multiply};

__device__ __attribute__((noinline)) Pair swap(Pair pair)
{
    pair.second[3] = (char)pair.first;
    return pair;
}

__device__ __attribute__((noinline)) int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

static inline __device__ int scaled(int *numbers, int index)
{
    return numbers[index] * 3 + numbers[index + 1];
}

__global__ void __launch_bounds__(128, 2) forms(int *out, Pair pair, int n, double *doubles)
{
    __shared__ float tile[32];
    int item = __nvvm_read_ptx_sreg_tid_x() + __nvvm_read_ptx_sreg_ctaid_y() * 7;
    int local[8];
    for (int i = 0; i < 8; i++)
        local[(i * n) & 7] = table[i & 3] + i;
    tile[item & 31] = weights[item & 1][n % 3];
    dynamic[item] = local[n & 7];
    __syncthreads();
    int result = operations[n & 1](item, n) + factorial(n & 7) + dynamic[item ^ 1];
    result += __nvvm_atom_add_gen_i(&counter, item);
    Pair swapped = swap(pair);
    int lane;
    asm volatile("{ .reg .pred %%p; setp.ne.s32 %%p, %1, 0; @%%p shfl.sync.bfly.b32 %0|%%p, %1, 1, "
                 "0x1f, 0xffffffff; }" : "=r"(lane) : "r"(n));
    switch (n) {
    case 0: result ^= 17; break;
    case 1: result <<= 3; break;
    default: __builtin_trap();
    }
    result += scaled(out, item + n);
    out[item] = result + lane + swapped.second[3] + (int)tile[(item + 1) & 31] + text[n & 3];
    doubles[item] = __nvvm_fma_rn_d(swapped.first, doubles[item], 0.1) + *pointer;
}
