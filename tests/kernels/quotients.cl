// A quotient of integers selects an element.

kernel void quotients(global uint *out, global const uint *table, uint divisor) {
    uint i = get_local_id(0);
    out[i] = table[(table[i] * 1000 / divisor) & 63];
}
