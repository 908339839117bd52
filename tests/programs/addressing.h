// Building blocks of the programs of `addressing.rs`: elements, address spaces, and values that are
// opaque to the compiler.
#include <stdint.h>

#define NOINLINE static __attribute__((noinline))
#define LANES 64
// Words of the table that all lanes read.
#define TABLE_WORDS 65536
// Bytes of memory per lane.
#define MEMORY_BYTES 65536

typedef uint32_t vector __attribute__((ext_vector_type(4)));
typedef struct { uint8_t a; uint16_t b; uint32_t c; } pair;
typedef struct { uint64_t a; int8_t b[3]; int16_t c; uint32_t d[2]; } record;

struct inputs {
    uint32_t r[8];
};

#ifdef __AMDGCN__
#define PRIVATE __attribute__((address_space(5)))
#define LOCAL __attribute__((address_space(3)))
#define GLOBAL __attribute__((address_space(1)))
#define CONSTANT __attribute__((address_space(4)))
#define LOCAL_ARRAY(T, name, length)                                                              \
    __attribute__((address_space(3), loader_uninitialized)) static T name##_of[LANES][length];
#define LOCAL_POINTER(name) (name##_of[__builtin_amdgcn_workitem_id_x()])
static inline uint32_t opaque(uint32_t value) {
    __asm__ volatile("" : "+v"(value));
    return value;
}
static inline uint32_t opaque_uniform(uint32_t value) {
    return __builtin_amdgcn_readfirstlane(opaque(value));
}
#else
#define PRIVATE
#define LOCAL
#define GLOBAL
#define CONSTANT
#define LOCAL_ARRAY(T, name, length) static T name##_of[length];
#define LOCAL_POINTER(name) (name##_of)
static inline uint32_t opaque(uint32_t value) {
    __asm__ volatile("" : "+r"(value));
    return value;
}
#define opaque_uniform opaque
#endif

// An opaque address `bytes` before `pointer`. Flat addresses stay in their aperture.
#ifdef __AMDGCN__
#define POINTER_BEFORE(name, SPACE, INTEGER)                                                      \
    static inline SPACE char *name(SPACE char *pointer, int64_t bytes) {                          \
        INTEGER before = (INTEGER)pointer - (INTEGER)bytes;                                       \
        __asm__ volatile("" : "+v"(before));                                                      \
        return (SPACE char *)before;                                                              \
    }
#else
#define POINTER_BEFORE(name, SPACE, INTEGER)                                                      \
    static inline char *name(char *pointer, int64_t bytes) {                                      \
        uint64_t before = (uint64_t)pointer - (uint64_t)bytes;                                    \
        __asm__ volatile("" : "+r"(before));                                                      \
        return (char *)before;                                                                    \
    }
#endif
POINTER_BEFORE(before_private, PRIVATE, uint32_t)
POINTER_BEFORE(before_local, LOCAL, uint32_t)
POINTER_BEFORE(before_global, GLOBAL, uint64_t)

// Each element type has conversions from and to a word.
#define SCALAR(T)                                                                                 \
    static inline T fill_##T(uint64_t x) { return (T)x; }                                         \
    static inline uint64_t word_##T(T e) { return (uint64_t)e; }
SCALAR(int8_t)
SCALAR(uint8_t)
SCALAR(int16_t)
SCALAR(uint16_t)
SCALAR(int32_t)
SCALAR(uint32_t)
SCALAR(int64_t)
SCALAR(uint64_t)
static inline pair fill_pair(uint64_t x) {
    pair e = {(uint8_t)x, (uint16_t)(x >> 8), (uint32_t)(x >> 24)};
    return e;
}
static inline uint64_t word_pair(pair e) { return e.a | e.b << 9 | (uint64_t)e.c << 27; }
static inline record fill_record(uint64_t x) {
    record e = {x, {(int8_t)(x >> 3), (int8_t)(x >> 9), (int8_t)(x >> 15)}, (int16_t)(x >> 7),
                {(uint32_t)(x >> 13), (uint32_t)(x >> 27)}};
    return e;
}
static inline uint64_t word_record(record e) {
    return e.a ^ (uint64_t)e.b[0] << 1 ^ (uint64_t)e.b[1] << 7 ^ (uint64_t)e.b[2] << 11 ^
           (uint64_t)e.c << 17 ^ (uint64_t)e.d[0] << 23 ^ (uint64_t)e.d[1] << 31;
}
static inline vector fill_vector(uint64_t x) {
    vector e = {(uint32_t)x, (uint32_t)(x >> 9), (uint32_t)(x >> 18), (uint32_t)(x >> 27)};
    return e;
}
static inline uint64_t word_vector(vector e) {
    return e.x ^ (uint64_t)e.y << 5 ^ (uint64_t)e.z << 14 ^ (uint64_t)e.w << 29;
}

// An opaque scalar base `bytes` before the table.
static inline GLOBAL const char *before_table(GLOBAL const uint32_t *table, uint32_t bytes) {
    uint64_t before = (uint64_t)table - bytes;
    uint32_t high = opaque_uniform(before >> 32);
    before = opaque_uniform(before) | (uint64_t)high << 32;
    return (GLOBAL const char *)before;
}
static inline uint32_t word_at(GLOBAL const char *base, uint32_t offset) {
#ifdef __gfx1250__
    // LLVM 22 treats 32-bit offsets there as signed (llvm-project pull request 217195).
    uint64_t wide = offset;
    __asm__ volatile("" : "+v"(wide));
    return *(GLOBAL const uint32_t *)(base + wide);
#else
    return *(GLOBAL const uint32_t *)(base + offset);
#endif
}
static inline uint32_t scalar_word_at(GLOBAL const char *base, uint32_t offset) {
    return *(CONSTANT const uint32_t *)((CONSTANT const char *)base + offset);
}

#define MIX(s, word) (((s) ^ (word)) * 0x9e3779b97f4a7c15u + ((s) >> 29))

// Loads a dword of the first `bytes` bytes of the table with a buffer resource; zero beyond.
static inline uint32_t buffer_dword(GLOBAL const uint32_t *table, uint32_t bytes, uint32_t offset,
                                    uint32_t scalar_offset) {
#ifdef __AMDGCN__
#if defined(__gfx1250__) || defined(__GFX9__)
    const int flags = 0;
#else
    const int flags = 3 << 28;
#endif
    __amdgpu_buffer_rsrc_t rsrc =
        __builtin_amdgcn_make_buffer_rsrc((void *)table, 0, bytes, flags);
    return __builtin_amdgcn_raw_buffer_load_b32(rsrc, offset, scalar_offset, 0);
#else
    uint64_t at = (uint64_t)offset + scalar_offset;
    return at + 4 <= bytes ? *(const uint32_t *)((const char *)table + at) : 0;
#endif
}
