/* All kinds of fault targets: numbers, addresses, branches, LDS, private memory. */
kernel void everything(global float *out, global const float *in, int rounds)
{
    local float tile[128];
    volatile float history[4];
    int item = get_local_id(0);
    size_t id = get_global_id(0);
    float sum = in[id];
    for (int round = 0; round < rounds; round++) {
        history[round & 3] = sum;
        tile[item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum = fma(tile[item ^ 1], 0.5f, history[round & 3]) + 1.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (sum > 2.0f)
            sum *= 0.75f;
    }
    out[id] = sum;
}
