/* D = A * B + C with matrix instructions, named as in BLAS. A is stored by rows and B by columns, so
 * the elements summed up are contiguous in both. C and D are stored by rows.
 *
 * A workgroup of two waves computes two tiles of D, one below the other. It copies the parts of A and
 * B for two instructions at a time to local memory. Each lane then loads the elements that the
 * instruction expects in it, as documented for each family: CDNA 3 and CDNA 4 ISA, "Matrix
 * Arithmetic Instructions"; RDNA 3 and RDNA 4 ISA, "WMMA"; AMD's matrix instruction calculator; and
 * for gfx1250, Triton's `AMDWmmaEncoding`.
 *
 * Arguments: D, C, A and B; if A is sparse, two bits per element with its position among four; for
 * scaled products, the exponents of A and of B, one byte for 32 elements; the columns of D; half the
 * number of instructions that compute an element of D.
 *
 * Options:
 *   OPERATION             the instruction's builtin, without `__builtin_amdgcn_`
 *   SIZE, LANES           rows and columns of a tile (default 16), lanes of a wave (default 64)
 *   BITS, B_BITS          bits of an element of A (default 16), and of B if different
 *   ELEMENT               type of an element of C and D (default float)
 *   FRAGMENT, B_FRAGMENT  type of a lane's operand for A, and for B if different
 *   A_WORDS, B_WORDS      words of this operand that are used (default all)
 *   A_GROUPS, B_GROUPS    groups of lanes with different elements of a row (default all)
 *   SPARSE                A holds two of each four elements
 *   A_FORMAT, B_FORMAT    format numbers of a scaled product
 *   SIGNS                 2 if A is signed, plus 1 if B is signed; CLAMP saturates
 *   HIGH                  16-bit results are in the high halves of registers
 *   NEGATED               D = -A * B - |C|
 *   BLGP                  1 negates A, for double precision from CDNA 3 on
 *   BLOCKS                tiles that the instruction computes, from the same A, or from the same B if
 *                         TALL is 1; each share of an operand serves this many instructions in a row
 *   DOT                   the instruction is a dot product: each lane multiplies a word of A and a
 *                         word of B; A_WORDS and B_WORDS are the words per row */

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

typedef __bf16 bfloat8 __attribute__((ext_vector_type(8)));
typedef __bf16 bfloat16 __attribute__((ext_vector_type(16)));

#ifndef SIZE
#define SIZE 16
#endif
#ifndef LANES
#define LANES 64
#endif
#ifndef BITS
#define BITS 16
#endif
#ifndef B_BITS
#define B_BITS BITS
#endif
#ifndef ELEMENT
#define ELEMENT float
#endif
#ifndef B_FRAGMENT
#define B_FRAGMENT FRAGMENT
#endif
#ifndef A_WORDS
#define A_WORDS (sizeof(FRAGMENT) / 4)
#endif
#ifndef B_WORDS
#define B_WORDS (sizeof(B_FRAGMENT) / 4)
#endif
#ifndef BLGP
#define BLGP 0
#endif
#ifndef CLAMP
#define CLAMP 0
#endif

/* Distribution of a row of A or a column of B over the lanes: groups of lanes alternate, CHUNK words at
 * a time. D_ROW is the row of a lane's result. */
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#if defined(__GFX9__)
#define GROUPS (LANES / SIZE)
#define GROUP(groups) (lane / SIZE)
#define CHUNK(words, bits) ((bits) < 8 ? (words) : LEAST(words, 4))
#if BITS == 64
#define D_ROW(result) ((result) * 4 + lane / SIZE)
#else
#define D_ROW(result) ((result) / 4 * (4 * GROUPS) + lane / SIZE * 4 + (result) % 4)
#endif
#elif defined(__GFX11__) || defined(DOT)
#define GROUPS 1
#define GROUP(groups) 0
#define CHUNK(words, bits) (words)
#define D_ROW(result) ((result) * (LANES / SIZE) + lane / SIZE)
#else
#define GROUPS (LANES / SIZE)
#define HALF_ROW (lane / SIZE % 2)
#define GROUP(groups) ((groups) == 2 ? HALF_ROW : BITS == 16 ? lane / SIZE : HALF_ROW * 2 + lane / 32)
#if defined(__gfx1250__)
#define CHUNK(words, bits) ((bits) == 6 ? 6 : LEAST(words, 4))
#elif defined(SPARSE)
#define CHUNK(words, bits) LEAST(words, 4)
#else
#define CHUNK(words, bits) ((bits) == 16 ? 2 : (words))
#endif
#define D_ROW(result) (HALF_ROW * 8 + lane / 32 * 4 + (result))
#endif

#ifndef A_GROUPS
#define A_GROUPS GROUPS
#endif
#ifndef B_GROUPS
#define B_GROUPS GROUPS
#endif
#define A_ROW (A_WORDS * A_GROUPS)
#define B_ROW (B_WORDS * B_GROUPS)

#define B_CHUNK CHUNK(B_WORDS, B_BITS)

/* Number of results of a lane, and their positions in `Sum`. */
#define RESULTS (SIZE * SIZE / LANES)
#ifdef HIGH
#define RESULT(result) ((result) * 2 + HIGH)
typedef ELEMENT Sum __attribute__((ext_vector_type(RESULTS * 2)));
#else
#define RESULT(result) (result)
typedef ELEMENT Sum __attribute__((ext_vector_type(RESULTS)));
#endif

#define JOINED(left, right) left##right
#define BUILTIN(name) JOINED(__builtin_amdgcn_, name)

/* `which` is 0 for the first of two instructions and 1 for the second. */
#if defined(SPARSE)
#define A_CHUNK ((B_CHUNK + 1) / 2)
#define INDEX_BYTES (A_CHUNK * 8 / BITS)
#define INDEX_ROW (A_ROW * 8 / BITS)
#define INDEX_BITS (A_WORDS * 64 / BITS)
#define SIDES global const uchar *indices,
#if defined(__GFX9__)
#define MULTIPLY(which) BUILTIN(OPERATION)(a, b, sum, INDICES(which), 0, INDEX_SHIFT ? which : 0)
#elif defined(SIGNS)
#define MULTIPLY(which) \
    BUILTIN(OPERATION)(SIGNS / 2, a, SIGNS % 2, b, sum, SELECTED(which), CLAMP)
#else
#define MULTIPLY(which) BUILTIN(OPERATION)(a, b, sum, SELECTED(which))
#endif
/* The indices of both instructions share a register if they fit. */
#define INDEX_SHIFT (INDEX_BITS % 32)
#define INDICES(which) index[INDEX_SHIFT ? 0 : which]
#define SELECTED(which) (INDICES(which) >> (INDEX_SHIFT * which))
#else
#define A_CHUNK CHUNK(A_WORDS, BITS)
#if defined(A_FORMAT)
#define SIDES global const uchar *a_scales, global const uchar *b_scales,
#if defined(__gfx1250__)
#define MULTIPLY(which) \
    BUILTIN(OPERATION)(A_FORMAT, a, B_FORMAT, b, 0, sum, 0, 0, a_scale[which], \
                       0, 0, b_scale[which], 0, 0)
#else
#define MULTIPLY(which) \
    BUILTIN(OPERATION)(a, b, sum, A_FORMAT, B_FORMAT, which, a_scale, which + 2, b_scale)
#endif
#else
#define SIDES
#if defined(__gfx1250__) && defined(SIGNS)
#define MULTIPLY(which) BUILTIN(OPERATION)(SIGNS / 2, a, SIGNS % 2, b, sum, 0, 0)
#elif defined(__gfx1250__) && BITS == 8
#define MULTIPLY(which) BUILTIN(OPERATION)(a, b, 0, sum, 0, 0)
#elif defined(__gfx1250__)
#define MULTIPLY(which) BUILTIN(OPERATION)(0, a, 0, b, 0, sum, 0, 0)
#elif defined(SIGNS)
#define MULTIPLY(which) BUILTIN(OPERATION)(SIGNS / 2, a, SIGNS % 2, b, sum, CLAMP)
#elif defined(HIGH)
#define MULTIPLY(which) BUILTIN(OPERATION)(a, b, sum, HIGH)
#elif defined(__GFX9__)
#define MULTIPLY(which) BUILTIN(OPERATION)(a, b, sum, 0, 0, BLGP)
#else
#define MULTIPLY(which) BUILTIN(OPERATION)(a, b, sum)
#endif
#endif
#endif

/* At most 256 VGPRs: hooks cannot be added to code that uses more. */
#if defined(__gfx1250__)
#define LIMITED __attribute__((amdgpu_waves_per_eu(4)))
#else
#define LIMITED
#endif

#define WAVES 2
#define COORDINATES \
    uint wave = get_local_id(0) / LANES, lane = get_local_id(0) % LANES

#ifdef BLOCKS

#define ROW_BLOCKS (TALL ? BLOCKS : 1)
#define COLUMN_BLOCKS (TALL ? 1 : BLOCKS)
#define ALL_RESULTS (RESULTS * BLOCKS)
typedef ELEMENT Sums __attribute__((ext_vector_type(ALL_RESULTS)));

__attribute__((reqd_work_group_size(WAVES * LANES, 1, 1)))
kernel void gemm(global ELEMENT *d, global const ELEMENT *c, global const FRAGMENT *a_rows,
                 global const FRAGMENT *b_columns, uint columns, uint pairs)
{
    COORDINATES;
    uint top = (get_group_id(1) * WAVES + wave) * SIZE * ROW_BLOCKS;
    uint left = get_group_id(0) * SIZE * COLUMN_BLOCKS;
    global ELEMENT *tile = d + top * columns + left + lane % SIZE;
#define PLACE(result) \
    ((D_ROW((result) % RESULTS) + (TALL ? (result) / RESULTS * SIZE : 0)) * columns \
     + (TALL ? 0 : (result) / RESULTS * SIZE))

    Sums sum;
    for (uint result = 0; result < ALL_RESULTS; ++result)
        sum[result] = c[tile - d + PLACE(result)];
    uint shares = pairs * 2;
    global const FRAGMENT *shared = TALL ? b_columns + (left + lane % SIZE) * shares
                                         : a_rows + (top + lane % SIZE) * shares;
    global const FRAGMENT *fragments = TALL ? a_rows + (top + lane) * shares
                                          : b_columns + (left + lane) * shares;
    for (uint share = 0; share < shares; share += BLOCKS) {
        FRAGMENT all = shared[share + lane / SIZE];
        /* The instruction broadcasts this operand from the lanes of one block to all blocks. */
#if TALL
#define STEP(which) \
        sum = BUILTIN(OPERATION)(fragments[share + which], all, sum, 0, 0, (BLOCKS == 2 ? 1 : 4) + which);
#else
#define STEP(which) \
        sum = BUILTIN(OPERATION)(all, fragments[share + which], sum, BLOCKS / 2, which, 0);
#endif
        STEP(0)
        STEP(1)
#if BLOCKS == 4
        STEP(2)
        STEP(3)
#endif
    }
    for (uint result = 0; result < ALL_RESULTS; ++result)
        tile[PLACE(result)] = sum[result];
}

#else

/* Copies lines of a matrix to local memory. */
__attribute__((always_inline))
static void stage(local uint *to, global const uint *from, uint lines, uint words, uint stride)
{
    for (uint at = get_local_id(0); at < lines * words; at += WAVES * LANES)
        to[at] = from[at / words * stride + at % words];
}

/* Loads a lane's part of a line: `words` words in chunks, which groups of lanes take in turns. */
__attribute__((always_inline))
static void take(uint *to, local const uint *line, uint words, uint chunk, uint group, uint groups)
{
#pragma unroll
    for (uint word = 0; word < words; ++word)
        to[word] = line[(group + word / chunk * groups) * chunk + word % chunk];
}

__attribute__((reqd_work_group_size(WAVES * LANES, 1, 1))) LIMITED
kernel void gemm(global ELEMENT *d, global const ELEMENT *c, global const uint *a_rows,
                 global const uint *b_columns, SIDES uint columns, uint pairs)
{
    local uint left[WAVES * SIZE * 2 * A_ROW], right[SIZE * 2 * B_ROW];
    COORDINATES;
    uint line = wave * SIZE + lane % SIZE;
    uint top = get_group_id(1) * WAVES * SIZE, column = get_group_id(0) * SIZE;
    global ELEMENT *tile = d + (top + wave * SIZE) * columns + column + lane % SIZE;

    Sum sum = 0;
    for (uint result = 0; result < RESULTS; ++result)
        sum[RESULT(result)] = c[tile - d + D_ROW(result) * columns];
#ifdef NEGATED
    for (uint result = 0; result < RESULTS; ++result)
        sum[result] = -fabs(sum[result]);
#endif

    for (uint pair = 0; pair < pairs; ++pair) {
        uint a_stride = pairs * 2 * A_ROW, b_stride = pairs * 2 * B_ROW;
        stage(left, a_rows + top * a_stride + pair * 2 * A_ROW, WAVES * SIZE, 2 * A_ROW, a_stride);
        stage(right, b_columns + column * b_stride + pair * 2 * B_ROW, SIZE, 2 * B_ROW, b_stride);
        barrier(CLK_LOCAL_MEM_FENCE);
#ifdef SPARSE
        uint index[2] = {0, 0};
        for (uint which = 0; which < 2; ++which)
            for (uint byte = 0; byte < INDEX_BITS / 8; ++byte) {
                uint chunk = GROUP(A_GROUPS) + byte / INDEX_BYTES * A_GROUPS;
                uint line_start = ((top + line) * pairs + pair) * 2 * INDEX_ROW;
                uint at = which * INDEX_ROW + chunk * INDEX_BYTES + byte % INDEX_BYTES;
                uint bits = indices[line_start + at];
                index[INDEX_SHIFT ? 0 : which] |= bits << (8 * byte + INDEX_SHIFT * which);
            }
        /* Otherwise the compiler would use two registers. */
        __asm__("" : "+v"(index[0]));
#endif
#if defined(A_FORMAT) && defined(__gfx1250__)
        uint a_scale[2] = {0, 0}, b_scale[2] = {0, 0};
        for (uint which = 0; which < 2; ++which)
            for (uint block = 0; block < 4; ++block) {
                uint at = (pair * 2 + which) * 4 + block;
                uint a = a_scales[(top + line) * pairs * 8 + at];
                uint b = b_scales[(column + lane % SIZE) * pairs * 8 + at];
                a_scale[which] |= a << (8 * block);
                b_scale[which] |= b << (8 * block);
            }
#elif defined(A_FORMAT)
        uint a_scale = 0, b_scale = 0;
        for (uint which = 0; which < 2; ++which) {
            uint at = (pair * 2 + which) * GROUPS + lane / SIZE;
            a_scale |= (uint)a_scales[(top + line) * pairs * 2 * GROUPS + at] << (8 * which);
            b_scale |= (uint)b_scales[(column + lane % SIZE) * pairs * 2 * GROUPS + at]
                       << (8 * which + 16);
        }
#endif
#ifdef DOT
#define STEP(which) \
        for (uint word = 0; word < A_WORDS; ++word) \
            for (uint result = 0; result < RESULTS; ++result) { \
                uint row = wave * SIZE + D_ROW(result); \
                uint a = left[(row * 2 + which) * A_ROW + word]; \
                uint b = right[(lane % SIZE * 2 + which) * B_ROW + word]; \
                sum[result] = BUILTIN(OPERATION)(__builtin_astype(a, FRAGMENT), \
                                                 __builtin_astype(b, FRAGMENT), sum[result], CLAMP); \
            }
#else
        union { uint words[sizeof(FRAGMENT) / 4]; FRAGMENT value; } left_words = {{0}};
        union { uint words[sizeof(B_FRAGMENT) / 4]; B_FRAGMENT value; } right_words = {{0}};
#define STEP(which) \
        take(left_words.words, left + (line * 2 + which) * A_ROW, A_WORDS, A_CHUNK, \
             GROUP(A_GROUPS), A_GROUPS); \
        take(right_words.words, right + (lane % SIZE * 2 + which) * B_ROW, B_WORDS, B_CHUNK, \
             GROUP(B_GROUPS), B_GROUPS); \
        { \
            FRAGMENT a = NEGATE(left_words.value); \
            B_FRAGMENT b = right_words.value; \
            sum = MULTIPLY(which); \
        }
#endif
#ifdef NEGATED
#define NEGATE(value) -(value)
#else
#define NEGATE(value) value
#endif
        STEP(0)
        STEP(1)
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    for (uint result = 0; result < RESULTS; ++result)
        tile[D_ROW(result) * columns] = sum[RESULT(result)];
}

#endif
