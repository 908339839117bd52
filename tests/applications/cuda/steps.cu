// Kernels of steps.c, compiled to PTX.
#define __global__ __attribute__((global))

extern "C" {

__global__ void step(const float *in, float *out, float factor, int n)
{
    int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
    if (i >= n)
        return;
    float value = in[i];
    for (int round = 0; round < 4; round++)
        value = value * factor + in[(i + round) % n];
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
