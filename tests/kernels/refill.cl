// Software-pipelined loops as in flash attention: in each round all waves read a tile in LDS, and each
// wave then refills its part. The barrier between reading and refilling is missing; waves in lockstep
// have read the tile by then.

#define READS 40
#define SIZES __attribute__((amdgpu_flat_work_group_size(64, 1024)))

// A word of the tile, usually of another wave.
#define WORD(k) ((i + (k) * (n / 8) + (k)) % n)

#define READ_TILE(tile)                                                                              \
    _Pragma("unroll") for (uint k = 0; k < READS; ++k) sum = sum * 31 + (tile)[WORD(k)]

SIZES kernel void refills(global const uint *tiles, global uint *sums, uint count) {
    local volatile uint tile[2][1024];
    uint i = get_local_id(0), n = get_local_size(0), sum = 0;
    tile[0][i] = tiles[i];
    tile[1][i] = tiles[n + i];
    for (uint round = 0; round < count; ++round) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint next = tiles[(round + 2) * n + i];
        READ_TILE(tile[round & 1]);
        tile[round & 1][i] = next;
    }
    sums[i] = sum;
}

// Like `refills`, without branches.
SIZES kernel void refills_unrolled(global const uint *tiles, global uint *sums, uint count) {
    local volatile uint tile[2][1024];
    uint i = get_local_id(0), n = get_local_size(0), sum = 0;
    tile[0][i] = tiles[i];
    tile[1][i] = tiles[n + i];
    _Pragma("unroll") for (uint round = 0; round < 8; ++round) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint next = tiles[(round + 2) * n + i];
        READ_TILE(tile[round & 1]);
        tile[round & 1][i] = next;
    }
    sums[i] = sum;
}

#if defined(__gfx942__) || defined(__gfx950__)
// Loads directly to LDS, without registers.
SIZES kernel void refills_by_loads(global const uint *tiles, global uint *sums, uint count) {
    local uint tile[2][1024];
    local volatile uint *words = &tile[0][0];
    uint i = get_local_id(0), n = get_local_size(0), sum = 0;
    uint first = __builtin_amdgcn_readfirstlane(i);
    tile[0][i] = tiles[i];
    tile[1][i] = tiles[n + i];
    for (uint round = 0; round < count; ++round) {
        barrier(CLK_LOCAL_MEM_FENCE);
        READ_TILE(words + 1024 * (round & 1));
        __builtin_amdgcn_global_load_lds(
            (global void *)(tiles + (round + 2) * n + i), (local void *)&tile[round & 1][first], 4, 0,
            0);
        __builtin_amdgcn_s_waitcnt(0);
    }
    sums[i] = sum;
}
#endif
