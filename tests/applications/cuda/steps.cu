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

__global__ void wild(float *to)
{
    to[1 << 20] = 1;
}

}
