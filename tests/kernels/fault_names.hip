// Faults and deadlocks in C++ kernels.
#include <hip/hip_runtime.h>

struct Node {
    int value;
    Node *next;
};

__device__ __attribute__((noinline)) int sum(const Node *node, int count) {
    if (count == 0)
        return 0;
    int rest = sum(node->next, count - 1);
    // Not associative, so that compilers do not turn the recursion into a loop.
    return 3 * rest ^ node->value;
}

// A list with too few nodes ends with a null pointer.
template <typename T> __global__ void total(const Node *list, T *out, int count) {
    out[threadIdx.x] = sum(list, count);
}
template __global__ void total<int>(const Node *, int *, int);

// The second wave never arrives at the barrier.
template <typename T> __global__ void stuck(T *out, int waves) {
    if (threadIdx.x / warpSize < waves)
        __syncthreads();
    else
        while (__hip_atomic_load(out, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) != T(1)) {
        }
    out[1] = T(2);
}
template __global__ void stuck<float>(float *, int);

// Calls what `function` points to.
__global__ void call(int *out, void (*function)(int *)) {
    function(out);
    out[0] = 1;
}
