// D = A * B with matrix instructions, with A in rows and B in columns, as in libraries: a wave computes
// a tile of 64 x 64 with four instructions for two fragments of A and two of B. OPERATION is the builtin
// of the instruction, with 32 rows and columns; FRAGMENT is the type of a lane's part of A or B.
typedef ELEMENT Sum __attribute__((ext_vector_type(16)));

#define JOINED(left, right) left##right
#define BUILTIN(name) JOINED(__builtin_amdgcn_, name)

__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void matrix(global ELEMENT *d, global const FRAGMENT *a, global const FRAGMENT *b,
                   int columns, int steps)
{
    int lane = get_local_id(0), top = get_group_id(1) * 64, left = get_group_id(0) * 64;
    int line = steps * 2;
    global const FRAGMENT *row = a + (top + lane % 32) * line + lane / 32;
    global const FRAGMENT *column = b + (left + lane % 32) * line + lane / 32;
    Sum sums[4] = {0, 0, 0, 0};
    for (int step = 0; step < line; step += 2) {
        FRAGMENT rows[2] = {row[step], row[32 * line + step]};
        FRAGMENT both[2] = {column[step], column[32 * line + step]};
#pragma unroll
        for (int tile = 0; tile < 4; ++tile)
            sums[tile] = BUILTIN(OPERATION)(rows[tile / 2], both[tile % 2], sums[tile], 0, 0, 0);
    }
#pragma unroll
    for (int tile = 0; tile < 4; ++tile)
#pragma unroll
        for (int result = 0; result < 16; ++result) {
            int at = tile / 2 * 32 + result / 4 * 8 + lane / 32 * 4 + result % 4;
            d[(top + at) * columns + left + tile % 2 * 32 + lane % 32] = sums[tile][result];
        }
}
