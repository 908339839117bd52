// LU decomposition in place without pivoting, right-looking, in blocks. Each step factorises the
// block on the diagonal, then the blocks right of it and below it, then updates the remaining
// matrix. Products are subtracted from an element in the same order as without blocks.

#define BLOCK 16

// Makes the matrix diagonally dominant, so that it needs no pivots.
__kernel void prepare(__global float *a, int size)
{
    const int i = get_global_id(0);
    a[i * size + i] += size;
}

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void diagonal(__global float *a, int size, int first)
{
    __local float block[BLOCK][BLOCK];
    const int lane = get_local_id(0);
    for (int row = 0; row < BLOCK; row++)
        block[row][lane] = a[(first + row) * size + first + lane];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < BLOCK - 1; k++) {
        if (lane > k) {
            block[lane][k] = block[lane][k] / block[k][k];
            for (int column = k + 1; column < BLOCK; column++)
                block[lane][column] = fma(-block[lane][k], block[k][column], block[lane][column]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int row = 0; row < BLOCK; row++)
        a[(first + row) * size + first + lane] = block[row][lane];
}

// The first half of a workgroup solves a column of the blocks to the right, the second half a row
// of the blocks below.
__kernel __attribute__((reqd_work_group_size(2 * BLOCK, 1, 1)))
void perimeter(__global float *a, int size, int first)
{
    __local float block[BLOCK][BLOCK];
    const int lane = get_local_id(0) % BLOCK;
    const int is_row = get_local_id(0) / BLOCK;
    const int other = first + (get_group_id(0) + 1) * BLOCK + lane;
    if (is_row == 0)
        for (int row = 0; row < BLOCK; row++)
            block[row][lane] = a[(first + row) * size + first + lane];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (is_row == 0) {
        for (int row = 1; row < BLOCK; row++) {
            float value = a[(first + row) * size + other];
            for (int k = 0; k < row; k++)
                value = fma(-block[row][k], a[(first + k) * size + other], value);
            a[(first + row) * size + other] = value;
        }
    } else {
        for (int column = 0; column < BLOCK; column++) {
            float value = a[other * size + first + column];
            for (int k = 0; k < column; k++)
                value = fma(-a[other * size + first + k], block[k][column], value);
            a[other * size + first + column] = value / block[column][column];
        }
    }
}

__kernel __attribute__((reqd_work_group_size(BLOCK, BLOCK, 1)))
void internal(__global float *a, int size, int first)
{
    __local float left[BLOCK][BLOCK];
    __local float above[BLOCK][BLOCK];
    const int x = get_local_id(0), y = get_local_id(1);
    const int column = first + BLOCK + get_global_id(0), row = first + BLOCK + get_global_id(1);
    left[y][x] = a[row * size + first + x];
    above[y][x] = a[(first + y) * size + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    float value = a[row * size + column];
    for (int k = 0; k < BLOCK; k++)
        value = fma(-left[y][k], above[k][x], value);
    a[row * size + column] = value;
}
