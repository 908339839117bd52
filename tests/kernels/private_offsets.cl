// Private arrays whose address is the sum of a constant and a negative number in a register.

// Sums in bins indexed from the end of the array.
kernel void from_the_end(global const int *places, uint count, global double *out) {
    double bins[17];
    for (uint bin = 0; bin < 17; ++bin)
        bins[bin] = 0.0;
    size_t i = get_global_id(0);
    for (uint at = 0; at < count; ++at)
        bins[17 - places[at * get_global_size(0) + i]] += 1.0 + at;
    for (uint bin = 0; bin < 17; ++bin)
        out[i * 17 + bin] = bins[bin];
}

// Bytes, halves and words with an index that starts below zero.
kernel void from_below(global const int *places, uint count, global uint *out) {
    uchar bytes[32];
    short halves[32];
    uint3 words[16];
    size_t i = get_global_id(0);
    for (int at = 0; at < 32; ++at) {
        bytes[at] = at;
        halves[at] = -at;
        words[at / 2] = (uint3)(at, at + 1, at + 2);
    }
    uint sum = 0;
    for (uint at = 0; at < count; ++at) {
        int below = -places[at * get_global_size(0) + i];
        bytes[below + 20] += at;
        halves[below + 30] ^= bytes[below + 21];
        words[below + 17].y += halves[below + 31];
        sum = sum * 31 + bytes[below + 18] + halves[below + 19] + words[below + 17].y + words[below + 18 & 15].z;
    }
    out[i] = sum;
}
