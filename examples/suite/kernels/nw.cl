// Needleman-Wunsch: computes the matrix of the best scores of all pairs of prefixes of two sequences,
// in which an element depends on the previous elements in its row, column and diagonal, and then
// traces the best alignment back from its end. Blocks on an anti-diagonal are independent of each
// other, and so are the elements on an anti-diagonal of a block.

#define BLOCK 16

// Computes the substitution score of each pair of elements, and the scores of gaps at the
// beginning.
__kernel void prepare(__global int *reference, __global int *scores, __global const int *first,
                      __global const int *second, __global const int *worth, int kinds, int size,
                      int penalty)
{
    const int x = get_global_id(0), y = get_global_id(1);
    reference[y * size + x] = worth[first[y] * kinds + second[x]];
    if (y == 0)
        scores[x + 1] = -(x + 1) * penalty;
    if (x == 0)
        scores[(y + 1) * (size + 1)] = -(y + 1) * penalty;
}

// Computes the blocks (x, y) with x + y = `diagonal`, starting at y = `top`.
__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void align(__global int *scores, __global const int *reference, int size, int penalty,
           int diagonal, int top)
{
    __local int block[BLOCK + 1][BLOCK + 1];
    __local int worth[BLOCK][BLOCK];
    const int lane = get_local_id(0);
    const int y = top + get_group_id(0), x = diagonal - y;
    const int row = y * BLOCK, column = x * BLOCK, width = size + 1;
    for (int line = 0; line < BLOCK; line++)
        worth[line][lane] = reference[(row + line) * size + column + lane];
    block[lane + 1][0] = scores[(row + lane + 1) * width + column];
    block[0][lane + 1] = scores[row * width + column + lane + 1];
    if (lane == 0)
        block[0][0] = scores[row * width + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int line = 0; line < 2 * BLOCK - 1; line++) {
        const int below = line - lane;
        if (below >= 0 && below < BLOCK) {
            const int both = block[below][lane] + worth[below][lane];
            const int gap = max(block[below][lane + 1], block[below + 1][lane]) - penalty;
            block[below + 1][lane + 1] = max(both, gap);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int line = 0; line < BLOCK; line++)
        scores[(row + line + 1) * width + column + lane + 1] = block[line + 1][lane + 1];
}

// Writes the scores along the best alignment. Only the first lane works. Ties prefer the diagonal,
// then the step upwards.
__kernel void trace_back(__global int *path, __global const int *scores,
                         __global const int *reference, int size, int penalty)
{
    if (get_global_id(0) != 0)
        return;
    const int width = size + 1;
    int x = size, y = size, at = 0;
    path[at++] = scores[y * width + x];
    while ((x > 0 || y > 0) && at <= 2 * size) {
        const int score = scores[y * width + x];
        if (x > 0 && y > 0
            && score == scores[(y - 1) * width + x - 1] + reference[(y - 1) * size + x - 1]) {
            x--;
            y--;
        } else if (y > 0 && (x == 0 || score == scores[(y - 1) * width + x] - penalty)) {
            y--;
        } else {
            x--;
        }
        path[at++] = scores[y * width + x];
    }
}
