// Kernels of steps.c, compiled to PTX.
#define __global__ __attribute__((global))

extern "C" {

// A flipped bit of the counter can make the loop very long.
__global__ void step(const float *in, float *out, float factor, int n, unsigned rounds)
{
    int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
    if (i >= n)
        return;
    float first = in[i], value = first;
#pragma clang loop unroll(disable)
    for (unsigned round = 0; round != rounds; round++)
        value = value * factor + first;
    out[i] = value;
}

__global__ void sum(const float *in, unsigned *total, int n)
{
    int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
    if (i < n)
        __nvvm_atom_add_gen_i((int *)total, (int)in[i]);
}

// Waits until all workgroups have arrived `goal` times in total.
static __attribute__((device)) void meet(unsigned *arrived, unsigned goal)
{
    __syncthreads();
    if (__nvvm_read_ptx_sreg_tid_x() == 0) {
        __nvvm_membar_gl();
        __nvvm_atom_add_gen_i((int *)arrived, 1);
        while (*(volatile unsigned *)arrived < goal)
            ;
        __nvvm_membar_gl();
    }
    __syncthreads();
}

// Each element becomes the mean of itself and its neighbours, over and over. Workgroups wait for each other.
__global__ void relax(float *data, float *other, int n, int rounds, unsigned *arrived)
{
    int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
    unsigned goal = 0;
    for (int round = 0; round < rounds; round++) {
        if (i < n)
            other[i] = 0.25f * data[i > 0 ? i - 1 : i] + 0.5f * data[i] + 0.25f * data[i + 1 < n ? i + 1 : i];
        meet(arrived, goal += __nvvm_read_ptx_sreg_nctaid_x());
        float *last = data;
        data = other;
        other = last;
    }
}

// Lanes with even numbers skip a barrier, and the word in shared memory is never written.
__global__ void careless(const float *in, float *out)
{
    __attribute__((shared)) static volatile unsigned last;
    int i = __nvvm_read_ptx_sreg_tid_x();
    if (i % 2)
        __syncthreads();
    out[i] = in[last & 31];
}

__global__ void wild(float *to)
{
    to[1 << 20] = 1;
}

}
