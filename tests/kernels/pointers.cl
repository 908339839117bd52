// Functions with generic pointers, so that accesses select the memory at run time: a private array, an
// array in LDS, and device memory; and a pointer to a different kind of memory in each lane.
__attribute__((noinline)) void sort(int *values, int count) {
    for (int i = 1; i < count; ++i) {
        int value = values[i], at = i;
        for (; at > 0 && values[at - 1] > value; --at)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

__attribute__((noinline)) long sum(const short *values, const char *signs, int count) {
    long sum = 0;
    for (int i = 0; i < count; ++i)
        sum = 3 * sum + (signs[i % 4] ? values[i] : -values[i]);
    return sum;
}

__kernel void sorted(__global const int *values, __global int *results, __global long *sums) {
    uint item = get_global_id(0), lane = get_local_id(0);
    __local int shared[64 * 3];
    int array[12];
    char signs[4] = {lane % 2, 1, lane % 3 == 0, 0};
    for (int i = 0; i < 12; ++i)
        array[i] = values[item * 12 + i];
    sort(array, 12);
    for (int i = 0; i < 3; ++i)
        shared[lane * 3 + i] = array[i * 4];
    sort(shared + lane * 3, 3);
    sort(results + item * 12, 5);
    int *anywhere = array;
    if (lane % 3 == 1)
        anywhere = shared + lane * 3;
    else if (lane % 3 == 2)
        anywhere = results + item * 12;
    anywhere[1] += anywhere[2];
    for (int i = 0; i < 12; ++i)
        results[item * 12 + i] += array[i] + shared[lane * 3 + i % 3];
    sums[item] = sum((short *)array, signs, 24);
}
