// Private memory that is read before it is written, and padding that is copied.

// The last workgroup does not write one element of an array, and some of its lanes read it. Many
// workgroups used that private memory before.
kernel void sparse(global uint *out, global const uint *values, uint absent) {
    volatile uint places[8];
    uint i = get_local_id(0);
    uint is_last = get_group_id(0) == get_num_groups(0) - 1;
    for (uint j = 0; j < 8; j++)
        if (!is_last || j != absent)
            places[j] = j;
    out[get_global_id(0)] = values[places[i & 7] & 63];
}
struct padded { char tag; int value; };
void fill(volatile struct padded *one, int value) {
    one->tag = 1;
    one->value = value;
}
kernel void copies(global struct padded *out, global const uint *values) {
    struct padded one[2];
    fill(&one[0], get_local_id(0) & 63);
    one[1] = one[0];
    out[get_global_id(0)] = one[1];
    out[get_global_id(0)].value = values[one[1].value];
}
