// Reads an index from local memory that was never written.
kernel void gather(global const uint *values, global uint *out) {
    local uint places[64];
    uint i = get_local_id(0);
    if (i == 0)
        places[0] = 7;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = values[places[i] & 63];
}
