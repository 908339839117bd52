// Product of two square matrices, row by row in memory. A workgroup computes a tile of the
// result; tiles of the factors pass through local memory.
#define TILE 16

__attribute__((reqd_work_group_size(TILE, TILE, 1)))
kernel void matmul_tiled(global float *restrict product, global const float *restrict left,
                         global const float *restrict right, int size) {
    local float left_tile[TILE][TILE];
    local float right_tile[TILE][TILE];
    int x = get_local_id(0), y = get_local_id(1);
    int column = get_group_id(0) * TILE + x;
    int row = get_group_id(1) * TILE + y;

    float sum = 0.0f;
    for (int tile = 0; tile < size; tile += TILE) {
        left_tile[y][x] = left[row * size + tile + x];
        right_tile[y][x] = right[(tile + y) * size + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; ++k)
            sum = fma(left_tile[y][k], right_tile[k][x], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    product[row * size + column] = sum;
}
