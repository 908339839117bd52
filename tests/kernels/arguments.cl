// More arguments than fit into the user SGPRs.
kernel void arguments(global uint *out, uint a, uint b, uint c, uint d, uint e, uint f, uint g,
                      uint h, uint i, uint j, uint k, uint l)
{
    uint sum = a;
    for (uint turn = 0; turn < b; turn++)
        sum = sum * c + d;
    sum ^= e + 3 * f + 5 * g + 7 * h + 11 * i + 13 * j + 17 * k + 19 * l;
    out[get_global_id(0)] = sum + (uint)get_global_id(0);
}
