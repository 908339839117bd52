// Faults below calls: a kernel calls `walk`, which calls `store_one` through an inlined function.

__attribute__((noinline)) void store_one(global uint *out, uint index, uint value) {
    out[index] = value;
}

static inline __attribute__((always_inline)) void
store_both(global uint *out, uint index, uint value) {
    store_one(out, index, value);
    out[0] = value;
}

__attribute__((noinline)) void walk(global uint *out, uint n) {
    for (uint i = 40; i < n; i++)
        store_both(out, get_local_id(0), i + 2);
}

// The lanes in the mask `bad` store through `wild`, the others to `out`.
kernel void chain(global uint *out, ulong wild, ulong bad, uint n) {
    bool is_bad = bad >> get_local_id(0) & 1;
    walk(is_bad ? (global uint *)wild : out, n);
}

// Adds to one word in all lanes; the lanes from `first` on add to memory that does not exist.
kernel void add(global uint *out, ulong wild, uint first) {
    bool is_bad = get_local_id(0) >= first;
    atomic_inc(is_bad ? (global uint *)wild : out);
}
