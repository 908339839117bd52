/* One wave of few instructions whose faults have every outcome: wrong values, lost bits, wild
 * addresses. */
kernel void mix(global uint *out, global const uint *in)
{
    uint i = get_local_id(0);
    uint value = in[i] * 5 + 3;
    out[i] = value > 100 ? value >> 3 : value & 0xff;
}
