// Kernels whose results the tests compute on the host.

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

static __device__ int item()
{
    return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x()
           + __nvvm_read_ptx_sreg_tid_x();
}

extern "C" __global__ void add(float *c, const float *a, const float *b)
{
    c[item()] = a[item()] + b[item()];
}

// The number of steps until the Collatz sequence reaches 1: lanes leave the loop at different times.
extern "C" __global__ void collatz(int *steps, const unsigned *start)
{
    unsigned value = start[item()];
    int count = 0;
    while (value != 1) {
        value = value & 1 ? 3 * value + 1 : value / 2;
        count++;
    }
    steps[item()] = count;
}

// Sum of a workgroup in shared memory.
extern "C" __global__ void sums(int *out, const int *in)
{
    __shared__ int partial[128];
    int lane = __nvvm_read_ptx_sreg_tid_x();
    partial[lane] = in[item()];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (lane < half)
            partial[lane] += partial[lane + half];
        __syncthreads();
    }
    if (lane == 0)
        out[__nvvm_read_ptx_sreg_ctaid_x()] = partial[0];
}

__constant__ int table[4] = {1, -2, 30, 400};
__device__ int counter = 5;
__device__ int *pointer = &counter;

typedef int (*Operation)(int, int);
__device__ __attribute__((noinline)) int plus(int a, int b) { return a + b; }
__device__ __attribute__((noinline)) int times(int a, int b) { return a * b; }
__device__ Operation operations[2] = {plus, times};

__device__ __attribute__((noinline)) int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

struct Large {
    double number;
    int values[5];
};

__device__ __attribute__((noinline)) Large changed(Large large, int n)
{
    large.number *= 2;
    large.values[n % 5] += n;
    return large;
}

extern "C" __global__ void calls(int *out, Large large)
{
    int n = item();
    int local[4];
    for (int i = 0; i < 4; i++)
        local[(i + n) & 3] = table[i] * n;
    int result = operations[n & 1](n, 7) + fibonacci(n % 11) + local[(n / 2) & 3];
    Large other = changed(large, n);
    result += (int)other.number + other.values[n % 5] + large.values[n % 5];
    if (n % 3 == 0)
        __nvvm_atom_add_gen_i(pointer, n);
    out[n] = result;
}

extern "C" __global__ void wild(int *out)
{
    out[item() * 1000000] = 1;
}

extern "C" __global__ void misaligned(char *out)
{
    *(int *)(out + item()) = 1;
}

extern "C" __global__ void abort_in_lane(int *out)
{
    if (item() == 17)
        __builtin_trap();
}

extern "C" __global__ void endless(volatile int *out)
{
    while (*out == 0) {
    }
}
