/* Functions for instrumentation tools: one C file with hooks, their places, and a table.
 *
 * Flipwave compiles a tool's file twice: for the GPU, where only its hooks are used, and for the
 * host, where a separate process calls
 *
 *     void flipwave_instrument(const flipwave_inst *inst);
 *         once per instruction, by ascending address, to insert calls of hooks (required);
 *     bool flipwave_on_dispatch(const flipwave_dispatch *dispatch);
 *         before each dispatch; the original code runs if it returns false;
 *     void flipwave_finish(const flipwave_dispatch *dispatch);
 *         after each dispatch, to compute rows from what the hooks recorded.
 *
 * A hook is any other function of the file. Variables of the file exist on both sides, with separate
 * values. flipwave.h includes this file for tools. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Facts about instructions ---- */

/* The unit that executes an instruction. */
enum flipwave_class {
    FLIPWAVE_VALU,     /* vector arithmetic */
    FLIPWAVE_MATRIX,   /* matrix arithmetic (MFMA, WMMA) */
    FLIPWAVE_SALU,     /* scalar arithmetic */
    FLIPWAVE_SMEM,     /* scalar memory */
    FLIPWAVE_VMEM,     /* vector memory: global, flat, buffer, scratch */
    FLIPWAVE_LDS,      /* local data share */
    FLIPWAVE_BRANCH,   /* branches, calls, returns, end of program */
    FLIPWAVE_WAIT,     /* waits, nops, delays, priorities, clauses */
    FLIPWAVE_BARRIER,  /* barriers */
    FLIPWAVE_MESSAGE,  /* messages and traps */
    FLIPWAVE_IMAGE,    /* image operations */
    FLIPWAVE_GRAPHICS, /* exports and interpolation */
};

/* The address space of a memory access. */
enum flipwave_space {
    FLIPWAVE_NO_MEMORY,
    FLIPWAVE_SPACE_BUFFER,  /* through a buffer resource */
    FLIPWAVE_SPACE_FLAT,    /* generic addresses */
    FLIPWAVE_SPACE_GLOBAL,
    FLIPWAVE_SPACE_SCRATCH, /* private memory of a lane */
    FLIPWAVE_SPACE_SCALAR,  /* through the scalar cache, one access per wave */
    FLIPWAVE_SPACE_LDS,
};

/* The element type of an instruction. */
enum flipwave_data_type {
    FLIPWAVE_F16,
    FLIPWAVE_BF16,
    FLIPWAVE_F32,
    FLIPWAVE_F64,
    FLIPWAVE_INTEGER, /* integers and untyped bits of any width */
};

/* The kind of an operand. */
enum flipwave_operand_kind {
    FLIPWAVE_VGPR,
    FLIPWAVE_AGPR,
    FLIPWAVE_SGPR,
    FLIPWAVE_SPECIAL,  /* EXEC, VCC, SCC, M0 and others */
    FLIPWAVE_CONSTANT, /* an immediate; `bits` has its value */
    FLIPWAVE_OTHER,    /* no value: `off`, hardware registers, messages */
};

/* An operand of an instruction. */
typedef struct flipwave_operand {
    enum flipwave_operand_kind kind;
    /* Written; other operands are read. */
    bool is_destination;
    /* Number of the first register, and the number of registers. */
    uint32_t first, words;
    /* Value of a constant, as the bits that a register would hold. */
    uint64_t bits;
} flipwave_operand;

/* An instruction. Text and operands stay valid during the call. */
typedef struct flipwave_inst {
    /* Address in the code object. */
    uint64_t pc;
    /* Number of the instruction in its code object, by ascending address. */
    uint32_t index;
    /* Number of its basic block. */
    uint32_t block;
    /* Operation, such as "global_load_dword", one name for all encodings. */
    const char *opcode;
    /* Number of the operation, the same in all code objects of a run. */
    uint32_t opcode_id;
    /* Assembler text. */
    const char *text;
    /* Size of the encoding in bytes. */
    uint32_t size;
    /* The kernel or device function that contains the instruction. */
    const char *function;
    /* Its source line; "" and 0 without debug information. */
    const char *file;
    uint32_t line;
    /* Target, such as "gfx90a". */
    const char *target;
    enum flipwave_class class;
    enum flipwave_data_type data_type;
    /* Memory access: its space, its bytes per lane (for scalar memory, per wave), and whether it reads,
     * writes or both. */
    enum flipwave_space space;
    uint32_t access_bytes;
    bool is_load, is_store, is_atomic;
    /* Two-address LDS operations access two elements of access_bytes / 2 bytes each, the second at
     * `distance` bytes from the first. All others have one element. */
    uint32_t elements;
    int64_t distance;
    /* The address is in M0, the same for all lanes. */
    bool has_uniform_address;
    bool is_branch, is_conditional_branch, is_call, is_return;
    bool is_barrier;
    /* Ends the wave. */
    bool is_end;
    /* Writes EXEC. */
    bool writes_exec;
    /* In a kernel, not in a device function. */
    bool in_kernel;
    /* First instruction of a kernel, first or last one of a basic block. */
    bool is_kernel_entry, is_block_entry, is_block_exit;
    /* A proxy that hooks of an emulated instruction replace. It has the opcode and text of the emulated
     * instruction, and no other facts than its position. */
    bool is_emulated;
    const flipwave_operand *operands;
    uint32_t operand_count;
} flipwave_inst;

/* A dispatch of a kernel. */
typedef struct flipwave_dispatch {
    /* Number of the dispatch, from 0. */
    uint32_t number;
    const char *kernel;
    /* Work items of the grid and of a workgroup. */
    uint32_t grid[3], workgroup[3];
    /* Number of earlier dispatches of this kernel. */
    uint32_t launch;
    /* The dispatch runs code with hooks. */
    bool is_instrumented;
} flipwave_dispatch;

/* ---- Inserting hooks (in flipwave_instrument) ---- */

enum flipwave_when { FLIPWAVE_BEFORE, FLIPWAVE_AFTER, FLIPWAVE_INSTEAD };

/* Inserts a call of the hook named `hook`. The functions below then add its arguments, in order. It runs
 * in the active lanes of the instruction, unless one of the functions below selects others. */
#define flipwave_insert_call(inst, hook, when) flipwave_insert_call_at(inst, hook, when, __LINE__)

/* Runs the hook in one lane, whatever EXEC is: once per wave. */
void flipwave_one_lane(void);
/* Runs the hook in all lanes; results are written in the active lanes of the instruction. */
void flipwave_all_lanes(void);

/* The operand with this index. */
void flipwave_arg_operand(uint32_t index);
/* Registers by number, `words` of them. */
void flipwave_arg_vgpr(uint32_t first, uint32_t words);
void flipwave_arg_agpr(uint32_t first, uint32_t words);
void flipwave_arg_sgpr(uint32_t first, uint32_t words);
/* VCC, 32 or 64 bits depending on the wave size. */
void flipwave_arg_vcc(void);
/* Active lanes of the instruction, bit i for lane i. */
void flipwave_arg_exec(void);
/* Address of the memory access: per lane, for scalar memory per wave. For LDS and scratch, the offset in
 * it. */
void flipwave_arg_address(void);
/* A number, passed in scalar or in vector registers. */
void flipwave_arg_number(uint64_t value);
void flipwave_arg_lane_number(uint64_t value);
/* Address of the instruction in the code object. */
void flipwave_arg_pc(void);
/* Number of the operation. */
void flipwave_arg_opcode_id(void);
/* Number of the workgroup in dimension 0 to 2. */
void flipwave_arg_workgroup(uint32_t dimension);
/* Number of the wave in its workgroup. */
void flipwave_arg_wave(void);
/* Address of the kernel's arguments. */
void flipwave_arg_kernel_arguments(void);
/* Address of a row of a table, see flipwave_new_row. */
#define flipwave_arg_row(table, row) flipwave_arg_row_(table, row, FLIPWAVE_ROW_BYTES(table))
/* Address of the first row of a table, and the offset of a row in bytes; two arguments. For
 * flipwave_increment. */
#define flipwave_arg_row_offset(table, row) \
    flipwave_arg_row_offset_(table, row, FLIPWAVE_ROW_BYTES(table))
/* Address of a variable of the file, by name, plus an offset in bytes. */
void flipwave_arg_variable(const char *name, uint64_t offset);

/* Registers that receive the hook's result permanently: those of an operand, or by number. */
void flipwave_result_operand(uint32_t index);
void flipwave_result_vgpr(uint32_t first, uint32_t words);
void flipwave_result_sgpr(uint32_t first, uint32_t words);
/* EXEC and VCC, 32 or 64 bits depending on the wave size. */
void flipwave_result_exec(void);
void flipwave_result_vcc(void);

/* ---- Output ----
 *
 * A tool writes the table that it declares: the first FLIPWAVE_ROWS, or if there is none, the first
 * declaration of another kind. The columns are those of the keys, then the members of the structure.
 * `type` must be a structure with a tag, such as `struct counts`. */

/* A table with rows for keys that flipwave_instrument knows, such as instructions or opcodes. Members of
 * `type` must be uint64_t. Names of key columns follow. */
#define FLIPWAVE_TABLE(name, type, ...) \
    FLIPWAVE_STATIC_TABLE(FLIPWAVE_KIND_TABLE, name, type, __VA_ARGS__)

/* Like FLIPWAVE_TABLE, but sorted by keys and without rows that are zero. */
#define FLIPWAVE_HISTOGRAM(name, type, ...) \
    FLIPWAVE_STATIC_TABLE(FLIPWAVE_KIND_HISTOGRAM, name, type, __VA_ARGS__)

/* A table whose 64-bit keys the hooks compute, at most `capacity` of them, a power of two. Members of
 * `type` must be uint64_t. The rows are sorted by key. */
#define FLIPWAVE_MAP(name, type, capacity, key) \
    FLIPWAVE_DECLARE_MAP(name, type, capacity, key)

/* A stream of records, which hooks append with flipwave_append. Names of columns for a member of the type
 * `flipwave_site` follow. Members may be integers, floating-point numbers, and flipwave_lane_number. */
#define FLIPWAVE_STREAM(name, type, ...) FLIPWAVE_DECLARE_STREAM(name, type, __VA_ARGS__)

/* Rows that flipwave_finish computes. Members may also be `const char *`. */
#define FLIPWAVE_ROWS(name, type) FLIPWAVE_DECLARE_ROWS(name, type)

/* Number of a site in a stream, whose columns are the texts that flipwave_new_site got. */
typedef uint32_t flipwave_site;
/* A lane's number. 255 stands for an operation of the whole wave, and leaves the column empty. */
typedef uint8_t flipwave_lane_number;

/* Adds a row to the memory of a FLIPWAVE_TABLE or FLIPWAVE_HISTOGRAM and returns its number. Hooks count in
 * it, and flipwave_show adds it to the rows of the output. */
#define flipwave_new_row(table) flipwave_new_row_(table)

/* Adds the content of a row in memory to the row of the output that has these keys. Several rows in memory
 * may contribute to a row of the output, and one to several. */
#define flipwave_show(table, inst, row, ...) \
    flipwave_show_(table, inst, row, FLIPWAVE_TEXTS(__VA_ARGS__), __LINE__)

/* Adds a site to a stream and returns its number. */
#define flipwave_new_site(stream, inst, ...) \
    flipwave_new_site_(stream, inst, FLIPWAVE_TEXTS(__VA_ARGS__), __LINE__)

/* Keys: function, address and text of an instruction. */
#define FLIPWAVE_LOCATION(inst) (inst)->function, flipwave_hexadecimal((inst)->pc), (inst)->text

/* Numbers as keys. The text stays valid for 64 further calls. */
const char *flipwave_decimal(uint64_t number);
const char *flipwave_hexadecimal(uint64_t number);
/* The number that a text begins with, decimal or hexadecimal. */
uint64_t flipwave_number(const char *text);

/* Returns true if a text matches a pattern with `*` for any text and `?` for any character. */
bool flipwave_matches(const char *text, const char *pattern);

/* A parameter of the tool: an integer constant, which `--set NAME=VALUE` changes. The value may be the name
 * of an enumerator. */
#define FLIPWAVE_PARAMETER(name, value) \
    enum { name = FLIPWAVE_SECOND(FLIPWAVE_SET_##name, value) }; \
    FLIPWAVE_DECLARE_PARAMETER(name, "number " #name)

/* A text as a parameter of the tool. */
#define FLIPWAVE_TEXT_PARAMETER(name, value) \
    static const char name[] __attribute__((unused)) = \
        FLIPWAVE_SECOND(FLIPWAVE_TEXT_##name, value); \
    FLIPWAVE_DECLARE_PARAMETER(name, "text " #name)

/* ---- Reading what hooks recorded (in flipwave_finish) ----
 *
 * `table.rows[i]`, `stream.records[i]`, `map.keys[i]` and `map.values[i]` are valid for i below
 * flipwave_length. */
#define flipwave_length(output) flipwave_length_(output)
/* Key of a row of a FLIPWAVE_TABLE or FLIPWAVE_HISTOGRAM, by number of the column. */
#define flipwave_key(table, row, column) flipwave_key_(table, row, column)
/* Adds a row to a FLIPWAVE_ROWS. The structure follows, for example `flipwave_emit(&rows, {1, 2})`. */
#define flipwave_emit(rows_, ...) \
    do { \
        __typeof__(*(rows_)->rows) flipwave_row = __VA_ARGS__; \
        flipwave_emit_(rows_, &flipwave_row, sizeof(flipwave_row)); \
    } while (0)

/* Ends the tool with an error message. */
#define flipwave_fail(message) flipwave_fail_(message, __LINE__)

/* ---- Implementation ---- */

#define FLIPWAVE_SECOND(...) FLIPWAVE_SECOND_(__VA_ARGS__, )
#define FLIPWAVE_SECOND_(first, second, ...) second
#define FLIPWAVE_TEXTS(...) \
    (const char *const[]){__VA_ARGS__}, \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

enum flipwave_output_kind {
    FLIPWAVE_KIND_TABLE,
    FLIPWAVE_KIND_HISTOGRAM,
    FLIPWAVE_KIND_MAP,
    FLIPWAVE_KIND_STREAM,
    FLIPWAVE_KIND_ROWS,
};

void flipwave_insert_call_at(const flipwave_inst *inst, const char *hook, enum flipwave_when when,
                             uint32_t line);
void flipwave_arg_row_(void *table, uint32_t row, uint64_t bytes);
void flipwave_arg_row_offset_(void *table, uint32_t row, uint64_t bytes);
uint32_t flipwave_new_row_(void *table);
void flipwave_show_(void *table, const flipwave_inst *inst, uint32_t row,
                    const char *const *keys, size_t count, uint32_t line);
flipwave_site flipwave_new_site_(void *stream, const flipwave_inst *inst,
                                 const char *const *keys, size_t count, uint32_t line);
uint64_t flipwave_length_(const void *output);
const char *flipwave_key_(const void *table, uint64_t row, uint32_t column);
void flipwave_emit_(void *rows, const void *row, size_t size);
_Noreturn void flipwave_fail_(const char *message, uint32_t line);

/* The functions that a tool defines. On the host, all functions of its file have internal linkage, so that
 * hooks are parsed, but not compiled. */
#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = function)
void flipwave_instrument(const flipwave_inst *inst);
bool flipwave_on_dispatch(const flipwave_dispatch *dispatch);
void flipwave_finish(const flipwave_dispatch *dispatch);
#pragma clang attribute pop

#define FLIPWAVE_ROW_BYTES(table) sizeof(*(table)->rows)

#ifdef FLIPWAVE_HOST

/* Wave size of the code object that is instrumented. */
extern uint32_t flipwave_wave_size;
#define FLIPWAVE_LANES flipwave_wave_size

/* An output of the tool. */
struct flipwave_output {
    const char *name, *type;
    enum flipwave_output_kind kind;
    uint32_t size, key_count;
    const char *const *keys;
    /* Rows in memory, or sites, of the current code object. */
    uint32_t used;
    /* What was recorded in the current dispatch, and the keys of its rows. */
    uint64_t length;
    void **data, **map_keys;
    const char **row_keys;
    /* Offsets of texts in the structure. */
    uint32_t text_count, texts[32];
};

#define FLIPWAVE_DECLARE(kind, name_, type_, data_, map_keys_, ...) \
    static const char *const flipwave_keys_##name_[] = {__VA_ARGS__ __VA_OPT__(, ) NULL}; \
    static __typeof__(name_) name_ = { \
        .head = {#name_, #type_, kind, sizeof(type_), \
                 sizeof(flipwave_keys_##name_) / sizeof(char *) - 1, flipwave_keys_##name_, \
                 .data = data_, .map_keys = map_keys_}}; \
    static struct flipwave_output *const flipwave_output_##name_ \
        __attribute__((used, section("flipwave_outputs"))) = &name_.head;

#define FLIPWAVE_STATIC_TABLE(kind, name, type, ...) \
    static struct { struct flipwave_output head; type *rows; } name; \
    FLIPWAVE_DECLARE(kind, name, type, (void **)&name.rows, NULL, __VA_ARGS__)
#define FLIPWAVE_DECLARE_MAP(name, type, capacity, key) \
    static struct { struct flipwave_output head; uint64_t *keys; type *values; } name; \
    FLIPWAVE_DECLARE(FLIPWAVE_KIND_MAP, name, type, (void **)&name.values, (void **)&name.keys, key)
#define FLIPWAVE_DECLARE_STREAM(name, type, ...) \
    static struct { struct flipwave_output head; type *records; } name; \
    FLIPWAVE_DECLARE(FLIPWAVE_KIND_STREAM, name, type, (void **)&name.records, NULL, __VA_ARGS__)
#define FLIPWAVE_DECLARE_ROWS(name, type) \
    static struct { struct flipwave_output head; type *rows; } name; \
    FLIPWAVE_DECLARE(FLIPWAVE_KIND_ROWS, name, type, (void **)&name.rows, NULL)
#define FLIPWAVE_DECLARE_PARAMETER(name, description) \
    static const char *const flipwave_parameter_##name \
        __attribute__((used, section("flipwave_parameters"))) = description;

/* Hooks are parsed, but not compiled. */
uint32_t flipwave_lane(void);
uint64_t flipwave_exec(void);
uint32_t flipwave_rank(void);
bool flipwave_first_lane(void);
uint32_t flipwave_uniform(uint32_t value);
uint64_t flipwave_uniform_64(uint64_t value);
uint64_t flipwave_ballot(bool value);
uint32_t flipwave_read_lane(uint32_t value, uint32_t lane);
uint64_t flipwave_read_lane_64(uint64_t value, uint32_t lane);
void flipwave_count(uint64_t *counter, uint64_t number);
extern uint32_t flipwave_dispatch_number;
void flipwave_maximum(uint64_t *value, uint64_t candidate);
void flipwave_increment(uint64_t *rows, uint32_t offset);
uint32_t flipwave_read_lds(uint32_t offset);
void flipwave_write_lds(uint32_t offset, uint32_t value);
uint32_t flipwave_read_vgpr(uint32_t index);
uint32_t flipwave_read_agpr(uint32_t index);
uint32_t flipwave_read_sgpr(uint32_t index);
void flipwave_write_vgpr(uint32_t index, uint32_t value);
void flipwave_write_agpr(uint32_t index, uint32_t value);
void flipwave_write_sgpr(uint32_t index, uint32_t value);
#define flipwave_append(stream, record) ((void)(*(stream)->records = (record)))
#define flipwave_lookup(map, key) ((void)(key), (map)->values)

#else

/* Capacity of each stream, set on the command line. */
#ifndef FLIPWAVE_RECORDS
#define FLIPWAVE_RECORDS 1
#endif

#define FLIPWAVE_STATIC_TABLE(kind, name, type, ...) \
    struct { type rows[FLIPWAVE_SECOND(FLIPWAVE_ROWS_##name, 1)]; } name;
#define FLIPWAVE_DECLARE_MAP(name, type, capacity, key) \
    _Static_assert(((capacity) & ((capacity) - 1)) == 0 && (capacity) > 0, \
                   "the capacity of a map must be a power of two"); \
    struct { \
        uint64_t lost, has_last; \
        uint64_t keys[capacity]; \
        type values[(capacity) + 1]; \
    } name;
#define FLIPWAVE_DECLARE_STREAM(name, type, ...) \
    struct { \
        struct flipwave_stream head; \
        type records[FLIPWAVE_RECORDS]; \
        uint32_t marks[FLIPWAVE_RECORDS]; \
    } name;
#define FLIPWAVE_DECLARE_ROWS(name, type) extern struct { type *rows; } name;
#define FLIPWAVE_DECLARE_PARAMETER(name, description)

/* Number of the current dispatch. */
uint32_t flipwave_dispatch_number;

/* The header of a stream, a ring of records. */
struct flipwave_stream {
    /* Numbers of reserved records, and of those that the host has taken. */
    uint64_t reserved, taken;
    /* 1 if the host takes records while the kernel runs, so that waves wait for space in the ring. Otherwise
     * records that do not fit are lost. */
    uint32_t waits, unused[3];
};

/* Appends the record `record` of each active lane to a stream, in the order of lanes. */
#undef flipwave_append
#define flipwave_append(stream, record) \
    do { \
        const uint64_t flipwave_capacity = sizeof((stream)->records) / sizeof(*(stream)->records); \
        bool flipwave_waits = (stream)->head.waits; \
        uint64_t flipwave_number = flipwave_reserve(&(stream)->head, flipwave_waits, flipwave_capacity); \
        if (flipwave_waits || flipwave_number < flipwave_capacity) { \
            __typeof__(*(stream)->records) flipwave_record = (record); \
            flipwave_store(&(stream)->records[flipwave_number % flipwave_capacity], &flipwave_record, \
                           sizeof(flipwave_record)); \
            if (flipwave_waits) \
                __scoped_atomic_store_n(&(stream)->marks[flipwave_number % flipwave_capacity], \
                                        (uint32_t)flipwave_number + 1, __ATOMIC_RELEASE, \
                                        __MEMORY_SCOPE_DEVICE); \
        } \
    } while (0)

/* Adds one to the number at a byte offset from `rows`, for hooks that run in one lane. Takes fewer
 * registers and instructions than flipwave_count: an atomic increment adds one if the value is below a
 * limit. Because counters never reach the limit, its low half may be the offset. */
static inline void flipwave_increment(uint64_t *rows, uint32_t offset)
{
    uint64_t limit = 0xffffffff00000000ul | offset;
    asm volatile("global_atomic_inc_x2 %0, %1, %2"
                 :
                 : "v"((uint32_t)limit), "v"(limit), "s"(rows)
                 : "memory");
}

/* Copies a record word by word, so that the compiler keeps all of it, including padding, in registers. */
static inline void flipwave_store(void *to, const void *from, size_t size)
{
    size_t words = size / 4;
#pragma clang loop unroll(full)
    for (size_t word = 0; word < words; word++)
        ((uint32_t *)to)[word] = ((const uint32_t *)from)[word];
#pragma clang loop unroll(full)
    for (size_t byte = 4 * words; byte < size; byte++)
        ((uint8_t *)to)[byte] = ((const uint8_t *)from)[byte];
}

/* Reserves a record for each active lane and returns its number. If asked to, waits until all of them fit: a
 * wave with space for some of its lanes only would wait for itself. */
static inline uint64_t flipwave_reserve(struct flipwave_stream *stream, bool waits, uint64_t capacity)
{
    uint32_t rank = flipwave_rank();
    uint64_t count = __builtin_popcountll(flipwave_exec());
    uint64_t first = 0;
    if (rank == 0)
        first = __scoped_atomic_fetch_add(&stream->reserved, count, __ATOMIC_RELAXED,
                                          __MEMORY_SCOPE_DEVICE);
    first = flipwave_uniform_64(first);
    while (waits && first + count > capacity + flipwave_uniform_64(__scoped_atomic_load_n(
                                                   &stream->taken, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE)))
        __builtin_amdgcn_s_sleep(1);
    return first + rank;
}

/* Sets a number that all waves share to `candidate` if that is larger. */
static inline void flipwave_maximum(uint64_t *value, uint64_t candidate)
{
    (void)__scoped_atomic_fetch_max(value, candidate, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

/* Returns the address of the value for a key in a map, or NULL if the map is full, which is counted as a
 * lost record. */
#define flipwave_lookup(map, key) \
    ({ \
        uint64_t flipwave_found = flipwave_find((map)->keys, sizeof((map)->keys) / sizeof(uint64_t), \
                                                &(map)->lost, &(map)->has_last, key); \
        flipwave_found == ~0ul ? NULL : &(map)->values[flipwave_found]; \
    })

/* Finds or adds a key and returns its number. Zero marks free places, so keys are stored plus one. */
static inline uint64_t flipwave_find(uint64_t *keys, uint64_t capacity, uint64_t *lost,
                                     uint64_t *has_last, uint64_t key)
{
    uint64_t stored = key + 1;
    if (stored == 0) {
        __scoped_atomic_store_n(has_last, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
        return capacity;
    }
    uint64_t place = (key * 0x9e3779b97f4a7c15ul) >> 20;
    /* The exchange needs consecutive registers for its operands. Copies, which the compiler does not see
     * through, keep it from extending the registers of arguments beyond those that hooks may use. */
    uint32_t low, high;
    __asm__ volatile("v_mov_b32 %0, %1" : "=&v"(low) : "v"((uint32_t)stored));
    __asm__ volatile("v_mov_b32 %0, %1" : "=&v"(high) : "v"((uint32_t)(stored >> 32)));
    stored = low | (uint64_t)high << 32;
#pragma clang loop unroll(disable)
    for (uint64_t tried = 0; tried < capacity; tried++, place++) {
        uint64_t *at = &keys[place & (capacity - 1)];
        uint64_t found = __scoped_atomic_load_n(at, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
        if (found == 0)
            __scoped_atomic_compare_exchange_n(at, &found, stored, false, __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
        if (found == 0 || found == stored)
            return place & (capacity - 1);
    }
    flipwave_count(lost, 1);
    return ~0ul;
}

#endif
