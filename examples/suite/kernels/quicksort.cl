// Quicksort, level by level: each lane partitions one range by a pivot and stores the bounds of both
// parts for the next level. After some levels, insertion sort finishes each range.

// The range of a lane is starts[lane] to starts[lane + 1], exclusive.
__kernel void divide(__global int *values, __global int *after, __global const int *starts,
                     int ranges)
{
    const int lane = get_global_id(0);
    if (lane >= ranges)
        return;
    const int first = starts[lane], end = starts[lane + 1];
    int middle = first;
    if (end - first > 1) {
        const int low = values[first], high = values[end - 1];
        const int between = values[first + (end - first) / 2];
        const int pivot = max(min(low, high), min(max(low, high), between));
        int left = first, right = end - 1;
        while (left <= right) {
            while (values[left] < pivot)
                left++;
            while (values[right] > pivot)
                right--;
            if (left <= right) {
                const int moved = values[left];
                values[left++] = values[right];
                values[right--] = moved;
            }
        }
        middle = left;
    }
    after[2 * lane] = first;
    after[2 * lane + 1] = middle;
    if (lane == ranges - 1)
        after[2 * ranges] = end;
}

__kernel void insert(__global int *values, __global const int *starts, int ranges)
{
    const int lane = get_global_id(0);
    if (lane >= ranges)
        return;
    const int first = starts[lane], end = starts[lane + 1];
    for (int next = first + 1; next < end; next++) {
        const int value = values[next];
        int place = next;
        while (place > first && values[place - 1] > value) {
            values[place] = values[place - 1];
            place--;
        }
        values[place] = value;
    }
}
