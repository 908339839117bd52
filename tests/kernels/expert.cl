// Vector arithmetic of several units mixed with memory instructions of several kinds.

kernel void mixed(global float *out, global const float *in, uint n) {
    local float shared[64];
    uint i = get_local_id(0);
    float x = in[i];
    for (uint j = 0; j < n; j++) {
        shared[i] = x;
        barrier(CLK_LOCAL_MEM_FENCE);
        x = __builtin_amdgcn_exp2f(shared[(i + 1) & 63] * 0.125f) + in[(i + j) & 63];
        barrier(CLK_LOCAL_MEM_FENCE);
        out[i] = x;
    }
    out[i] = x * x;
}
