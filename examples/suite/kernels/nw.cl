// Needleman-Wunsch: the best scores of alignments of the beginnings of two sequences, a matrix in
// which each element depends on those before it in row, column and diagonal; then the best
// alignment from its end to its beginning. Blocks on an anti-diagonal are independent of each
// other, and so are the elements on an anti-diagonal of a block.

#define BLOCK 16

// What it is worth to align each element of one sequence with each of the other, and the scores of
// gaps at the beginning.
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

// The blocks (x, y) of which x + y is `diagonal`, from y = `top` on.
__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void align(__global int *scores, __global const int *reference, int size, int penalty,
           int diagonal, int top)
{
    __local int block[BLOCK + 1][BLOCK + 1];
    __local int worth[BLOCK][BLOCK];
    const int own = get_local_id(0);
    const int y = top + get_group_id(0), x = diagonal - y;
    const int row = y * BLOCK, column = x * BLOCK, width = size + 1;
    for (int line = 0; line < BLOCK; line++)
        worth[line][own] = reference[(row + line) * size + column + own];
    block[own + 1][0] = scores[(row + own + 1) * width + column];
    block[0][own + 1] = scores[row * width + column + own + 1];
    if (own == 0)
        block[0][0] = scores[row * width + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int line = 0; line < 2 * BLOCK - 1; line++) {
        const int below = line - own;
        if (below >= 0 && below < BLOCK) {
            const int both = block[below][own] + worth[below][own];
            const int gap = max(block[below][own + 1], block[below + 1][own]) - penalty;
            block[below + 1][own + 1] = max(both, gap);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int line = 0; line < BLOCK; line++)
        scores[(row + line + 1) * width + column + own + 1] = block[line + 1][own + 1];
}

// The scores along the best alignment, by the first lane alone. Of equal ways the diagonal one is
// taken, then the one upwards.
__kernel void trace_back(__global int *path, __global const int *scores,
                         __global const int *reference, int size, int penalty)
{
    if (get_global_id(0) != 0)
        return;
    const int width = size + 1;
    int x = size, y = size, at = 0;
    path[at++] = scores[y * width + x];
    while ((x > 0 || y > 0) && at <= 2 * size) {
        const int own = scores[y * width + x];
        if (x > 0 && y > 0
            && own == scores[(y - 1) * width + x - 1] + reference[(y - 1) * size + x - 1]) {
            x--;
            y--;
        } else if (y > 0 && (x == 0 || own == scores[(y - 1) * width + x] - penalty)) {
            y--;
        } else {
            x--;
        }
        path[at++] = scores[y * width + x];
    }
}
