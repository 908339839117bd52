// One pass of a merge sort from the bottom up: pairs of sorted runs become runs of twice the width.
// A lane finds where its element belongs by searching the other run of the pair; of equal elements
// those of the left run come first.

__kernel void merge(__global int *after, __global const int *before, int width)
{
    const int own = get_global_id(0);
    const int value = before[own];
    const int run = own / width, is_right = run & 1;
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
    after[run / 2 * 2 * width + own % width + low] = value;
}
