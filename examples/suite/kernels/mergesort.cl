// One pass of a bottom-up merge sort: pairs of sorted runs become runs of twice the width. A lane
// finds the position of its element with a binary search in the other run of the pair. Equal
// elements of the left run come first.

__kernel void merge(__global int *after, __global const int *before, int width)
{
    const int index = get_global_id(0);
    const int value = before[index];
    const int run = index / width, is_right = run & 1;
    const int other = (run ^ 1) * width;
    int low = 0, high = width;
    while (low < high) {
        const int middle = (low + high) / 2;
        const int there = before[other + middle];
        if (there < value || (is_right && there == value))
            low = middle + 1;
        else
            high = middle;
    }
    after[run / 2 * 2 * width + index % width + low] = value;
}
