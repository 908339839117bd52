/* Implementation of flipwave_tool.h: the same declarations mean different things for the host and for the GPU. */

#pragma once

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
    FLIPWAVE_KIND_DETECTOR,
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

/* Number of the current dispatch. Only exists if the hooks use it: the first variable of the hooks has the
 * cheapest address. */
static volatile uint32_t flipwave_dispatch_number;

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

/* Adds one to the number at a byte offset from `rows`, for hooks that run in one lane. */
#ifdef __NVPTX__
static inline void flipwave_increment(uint64_t *rows, uint32_t offset)
{
    flipwave_count((uint64_t *)((char *)rows + offset), 1);
}
#else
/* Takes fewer registers and instructions than flipwave_count: an atomic increment adds one if the value is
 * below a limit. Because counters never reach the limit, its low half may be the offset. */
static inline void flipwave_increment(uint64_t *rows, uint32_t offset)
{
    uint64_t limit = 0xffffffff00000000ul | offset;
    asm volatile("global_atomic_inc_x2 %0, %1, %2"
                 :
                 : "v"((uint32_t)limit), "v"(limit), "s"(rows)
                 : "memory");
}
#endif

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
#ifdef __NVPTX__
static inline uint64_t flipwave_reserve(struct flipwave_stream *stream, bool waits, uint64_t capacity)
{
    /* The same lanes until the end, wherever they execute apart. */
    uint32_t lanes = __nvvm_activemask(), rank = flipwave_rank_in(lanes), first_lane = __builtin_ctz(lanes);
    uint64_t count = __builtin_popcount(lanes);
    uint64_t first = 0, taken;
    if (rank == 0)
        first = __scoped_atomic_fetch_add(&stream->reserved, count, __ATOMIC_RELAXED,
                                          __MEMORY_SCOPE_DEVICE);
    first = flipwave_read_lane_of_64(lanes, first, first_lane);
    do {
        taken = __scoped_atomic_load_n(&stream->taken, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE);
        taken = flipwave_read_lane_of_64(lanes, taken, first_lane);
    } while (waits && first + count > capacity + taken);
    return first + rank;
}
#else
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
#endif

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
#ifndef __NVPTX__
    /* The exchange needs consecutive registers for its operands. Copies, which the compiler does not see
     * through, keep it from extending the registers of arguments beyond those that hooks may use. */
    uint32_t low, high;
    __asm__ volatile("v_mov_b32 %0, %1" : "=&v"(low) : "v"((uint32_t)stored));
    __asm__ volatile("v_mov_b32 %0, %1" : "=&v"(high) : "v"((uint32_t)(stored >> 32)));
    stored = low | (uint64_t)high << 32;
#endif
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
