// Follows chains of pointers: almost every register holds an address or becomes part of one.
kernel void chase(global const uint *next, global const uint *values, global uint *sums,
                  uint length) {
    size_t i = get_global_id(0);
    uint at = i, sum = 0;
    for (uint step = 0; step < length; ++step) {
        sum += values[at];
        at = next[at];
    }
    sums[i] = sum;
}
