// Product of two square matrices, one tile of the result per workgroup.

#define TILE 16

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void multiply(__global float *product, __global const float *left, __global const float *right,
              int size)
{
    __local float rows[TILE][TILE];
    __local float columns[TILE][TILE];
    const int x = get_local_id(0), y = get_local_id(1);
    const int column = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (int first = 0; first < size; first += TILE) {
        rows[y][x] = left[row * size + first + x];
        columns[y][x] = right[(first + y) * size + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum = fma(rows[y][k], columns[k][x], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    product[row * size + column] = sum;
}
