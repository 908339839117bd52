// Replaces the runtime of csmith on the device and on the host: arithmetic without undefined
// behaviour, and a report of the global variables instead of printed text. A program of
// `random_program.rs` includes this file first and `csmith_entry.h` last.
#include <stdint.h>

// Without optimisation, LLVM 22 crashes on a local function that only dead code calls.
#if defined(__AMDGCN__) && !defined(__OPTIMIZE__)
#define static
#endif

// Index of the running lane.
#ifdef __AMDGCN__
#define LANE (__builtin_amdgcn_workgroup_id_x() * WORKGROUP + __builtin_amdgcn_workitem_id_x())
#elif defined(__NVPTX__)
#define LANE (__nvvm_read_ptx_sreg_ctaid_x() * WORKGROUP + __nvvm_read_ptx_sreg_tid_x())
#else
static uint32_t LANE;
#endif

// Code outside the program; its steps are not counted.
#define RUNTIME __attribute__((no_sanitize("coverage"))) static

// Initial value of a scalar: csmith's value in lane 0, often another value in other lanes, so that
// lanes diverge at branches. It varies with the source line.
#define VARY(value) ((value) ^ variation(LANE, __LINE__))

RUNTIME uint64_t variation(uint32_t lane, uint32_t line) {
    uint64_t mixed = (uint64_t)lane * 0x9e3779b97f4a7c15u + (uint64_t)line * 0xd1b54a32d192ed03u;
    mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
    mixed ^= mixed >> 32;
    return lane == 0 || mixed & 3 ? 0 : mixed >> (mixed >> 58 & 63);
}

// Report of a lane: a checksum of all values, their number, and the first of them.
#define REPORT_WORDS 1024

struct report {
    uint64_t *words;
    uint32_t crc;
    uint32_t count;
};

// CRC-32 as in IEEE 802.3, four bits at a time.
static const uint32_t crc_of_nibble[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

RUNTIME void record(struct report *report, uint64_t value) {
    report->crc ^= (uint32_t)value ^ (uint32_t)(value >> 32) * 0x9e3779b1u;
    for (int nibble = 0; nibble < 8; ++nibble)
        report->crc = report->crc >> 4 ^ crc_of_nibble[report->crc & 15];
    if (report->count < REPORT_WORDS - 2)
        report->words[2 + report->count] = value;
    report->count++;
    report->words[0] = report->crc;
    report->words[1] = report->count;
}

#define transparent_crc(value, name, print) record(report, (uint64_t)(value))
#define platform_main_begin()
#define platform_main_end(crc, print)
#define crc32_gentab()

// C does not define the result of bit searches for zero.
#define __builtin_clz(value) ({ uint32_t v_ = (value); v_ ? __builtin_clz(v_) : 32; })
#define __builtin_clzl(value) ({ uint64_t v_ = (value); v_ ? __builtin_clzl(v_) : 64; })
#define __builtin_clzll(value) ({ uint64_t v_ = (value); v_ ? __builtin_clzll(v_) : 64; })
#define __builtin_ctz(value) ({ uint32_t v_ = (value); v_ ? __builtin_ctz(v_) : 32; })
#define __builtin_ctzl(value) ({ uint64_t v_ = (value); v_ ? __builtin_ctzl(v_) : 64; })
#define __builtin_ctzll(value) ({ uint64_t v_ = (value); v_ ? __builtin_ctzll(v_) : 64; })

// Arithmetic under csmith's names. Sums and products wrap (-fwrapv); the result of an undefined
// quotient or shift is the left operand.
#define SIGNED(T, bits, least)                                                                    \
    static T safe_unary_minus_func_##T##_s(T a) { return (T)-a; }                                 \
    static T safe_add_func_##T##_s_s(T a, T b) { return (T)(a + b); }                             \
    static T safe_sub_func_##T##_s_s(T a, T b) { return (T)(a - b); }                             \
    static T safe_mul_func_##T##_s_s(T a, T b) { return (T)(a * b); }                             \
    static T safe_div_func_##T##_s_s(T a, T b) {                                                  \
        return b == 0 || (a == least && b == -1) ? a : (T)(a / b);                                \
    }                                                                                             \
    static T safe_mod_func_##T##_s_s(T a, T b) {                                                  \
        return b == 0 || (a == least && b == -1) ? a : (T)(a % b);                                \
    }                                                                                             \
    static T safe_lshift_func_##T##_s_s(T a, int b) {                                             \
        return a < 0 || b < 0 || b >= bits ? a : (T)(a << b);                                     \
    }                                                                                             \
    static T safe_lshift_func_##T##_s_u(T a, unsigned b) {                                        \
        return a < 0 || b >= bits ? a : (T)(a << b);                                              \
    }                                                                                             \
    static T safe_rshift_func_##T##_s_s(T a, int b) {                                             \
        return b < 0 || b >= bits ? a : (T)(a >> b);                                              \
    }                                                                                             \
    static T safe_rshift_func_##T##_s_u(T a, unsigned b) { return b >= bits ? a : (T)(a >> b); }

#define UNSIGNED(T, bits)                                                                         \
    static T safe_unary_minus_func_##T##_u(T a) { return (T)-a; }                                 \
    static T safe_add_func_##T##_u_u(T a, T b) { return (T)(a + b); }                             \
    static T safe_sub_func_##T##_u_u(T a, T b) { return (T)(a - b); }                             \
    static T safe_mul_func_##T##_u_u(T a, T b) { return (T)(a * b); }                             \
    static T safe_div_func_##T##_u_u(T a, T b) { return b == 0 ? a : (T)(a / b); }                \
    static T safe_mod_func_##T##_u_u(T a, T b) { return b == 0 ? a : (T)(a % b); }                \
    static T safe_lshift_func_##T##_u_s(T a, int b) {                                             \
        return b < 0 || b >= bits ? a : (T)(a << b);                                              \
    }                                                                                             \
    static T safe_lshift_func_##T##_u_u(T a, unsigned b) { return b >= bits ? a : (T)(a << b); }  \
    static T safe_rshift_func_##T##_u_s(T a, int b) {                                             \
        return b < 0 || b >= bits ? a : (T)(a >> b);                                              \
    }                                                                                             \
    static T safe_rshift_func_##T##_u_u(T a, unsigned b) { return b >= bits ? a : (T)(a >> b); }

SIGNED(int8_t, 8, INT8_MIN)
SIGNED(int16_t, 16, INT16_MIN)
SIGNED(int32_t, 32, INT32_MIN)
SIGNED(int64_t, 64, INT64_MIN)
UNSIGNED(uint8_t, 8)
UNSIGNED(uint16_t, 16)
UNSIGNED(uint32_t, 32)
UNSIGNED(uint64_t, 64)
