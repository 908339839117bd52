/* Functions for hooks, and proxy instructions for kernels (OpenCL C, HIP).
 *
 * A hook is a C function that runs before, after or instead of an instruction of a kernel, by
 * default in the active lanes of the instruction. The request specifies its arguments. Its
 * result permanently changes registers. Hooks have no stack, no LDS of their own, no barriers
 * and no traps, and all calls must be inlined. Global variables are in device memory and are
 * initialized with zero by default.
 *
 * This file is included before every hook source. Kernels include it for FLIPWAVE_PROXY. */

#ifndef FLIPWAVE_H
#define FLIPWAVE_H

#if (defined(__OPENCL_C_VERSION__) || defined(__CUDA__)) && defined(__NVPTX__)

/* A proxy instruction in PTX. `text` is an instruction with `%0` for the destination and `%1`, `%2` and so on for the
 * sources, which are specified as in inline assembly: "h"(x), "r"(x), "l"(x), "f"(x) and "d"(x) for registers of 16,
 * 32 and 64 bits and for `float` and `double`, "n"(3) for a number. The result has the type `type`, of 2, 4 or 8
 * bytes.
 *
 *     #define saturating_add(a, b) \
 *         FLIPWAVE_PROXY(v_pk_add_sat_i4, uint, "lop3.b32 %0, %1, %2, 57, 0xea;", "r"(a), "r"(b))
 *
 * A pragma, which has no other effect, marks each proxy. */
#define FLIPWAVE_PROXY(name, type, text, ...) \
    ({ \
        union { \
            type value; \
            unsigned short bits_16; \
            unsigned int bits_32; \
            unsigned long bits_64; \
        } flipwave_result; \
        if (sizeof(type) == 2) \
            __asm__ volatile(FLIPWAVE_MARK(name) text : "=h"(flipwave_result.bits_16) : __VA_ARGS__); \
        else if (sizeof(type) == 4) \
            __asm__ volatile(FLIPWAVE_MARK(name) text : "=r"(flipwave_result.bits_32) : __VA_ARGS__); \
        else \
            __asm__ volatile(FLIPWAVE_MARK(name) text : "=l"(flipwave_result.bits_64) : __VA_ARGS__); \
        flipwave_result.value; \
    })

/* A proxy instruction that also reads its destination `%0`, the variable `variable`, whose register has the constraint
 * `constraint`: "+r" and so on. */
#define FLIPWAVE_UPDATING_PROXY_TO(constraint, name, variable, text, ...) \
    __asm__ volatile(FLIPWAVE_MARK(name) text : constraint(variable) : __VA_ARGS__)
#define FLIPWAVE_UPDATING_PROXY(name, variable, text, ...) \
    FLIPWAVE_UPDATING_PROXY_TO("+r", name, variable, text, __VA_ARGS__)

/* Marks the next instruction in the text of inline assembly, for proxies with several results or with predicates. */
#define FLIPWAVE_MARK(name) ".pragma \"flipwave.proxy " #name "\";\n\t"

#elif defined(__OPENCL_C_VERSION__) || defined(__HIP__)

/* A proxy instruction: an instruction of the target that represents an instruction that no chip
 * has. `text` is assembler text with `%0` for the destination and `%1`, `%2` and so on for the
 * sources, which are specified as in inline assembly: "v"(x) for VGPRs, "s"(x) for SGPRs (without
 * optimization, x must be a result of __builtin_amdgcn_readfirstlane), "n"(3) for a number. The
 * result has the type `type` and is in VGPRs. The instruction may also write VCC as a carry.
 *
 *     #define saturating_add(a, b) \
 *         FLIPWAVE_PROXY(v_pk_add_sat_i4, uint, "v_and_or_b32 %0, %1, %2, 57", "v"(a), "v"(b))
 *
 * Each proxy is marked, so that other occurrences of the same instruction are not replaced. */
#define FLIPWAVE_PROXY(name, type, text, ...) FLIPWAVE_PROXY_TO("=v", name, type, text, __VA_ARGS__)

/* A proxy instruction with the destination in SGPRs. */
#define FLIPWAVE_SCALAR_PROXY(name, type, text, ...) \
    FLIPWAVE_PROXY_TO("=s", name, type, text, __VA_ARGS__)

#define FLIPWAVE_PROXY_TO(constraint, name, type, text, ...) \
    ({ \
        type flipwave_result; \
        __asm__ volatile(FLIPWAVE_MARK(name) text \
                         : constraint(flipwave_result) : __VA_ARGS__ : "scc", "vcc"); \
        flipwave_result; \
    })

/* A proxy instruction that also reads its destination `%0`, the variable `variable` in VGPRs. */
#define FLIPWAVE_UPDATING_PROXY(name, variable, text, ...) \
    __asm__ volatile(FLIPWAVE_MARK(name) text : "+v"(variable) : __VA_ARGS__ : "scc", "vcc")

/* Records the address of the next instruction in a section that is not loaded. */
#define FLIPWAVE_MARK(name) \
    "1:\n\t.pushsection .flipwave.proxy." #name ",\"\",@progbits\n\t.quad 1b\n\t" \
    ".popsection\n\t"

#else

#include <stdint.h>

/* Facts about a corrupted value, for the functions of fault models. */
typedef struct {
    /* Width of the value in bits: 1 to 32, or 64 for numbers. */
    uint32_t bits;
    /* Lane of the value; 0 for values that lanes share. */
    uint32_t lane;
    /* Random number, drawn once for each fault. */
    uint64_t random;
} flipwave_fault;

#ifdef FLIPWAVE_FAULT_MODEL

/* A fault model defines one of these functions, which returns the value after the fault. It depends only on
 * its arguments, and has no side effects: it runs on the GPU or on the host. */
#ifdef FLIPWAVE_HOST
#define FLIPWAVE_DEFINED_BY_MODEL __attribute__((weak))
#else
#define FLIPWAVE_DEFINED_BY_MODEL static inline
#endif

/* Corrupts a word. */
FLIPWAVE_DEFINED_BY_MODEL uint32_t flipwave_fault_word(uint32_t value, flipwave_fault fault);
/* Corrupts a floating-point number of any format; the result is rounded to that format. */
FLIPWAVE_DEFINED_BY_MODEL double flipwave_fault_number(double value, flipwave_fault fault);

#endif

#ifdef FLIPWAVE_HOST

/* The host side of an instrumentation tool. */
#include "flipwave_tool.h"

#else

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* FLIPWAVE_LANES is the wave size, 32 or 64, defined on the command line. */
#ifndef FLIPWAVE_LANES
#error "FLIPWAVE_LANES is not defined; define the wave size, for example -DFLIPWAVE_LANES=64"
#endif

/* Returns the lane's number, 0 to FLIPWAVE_LANES - 1. */
static inline uint32_t flipwave_lane(void)
{
#if FLIPWAVE_LANES == 64
    return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
#else
    return __builtin_amdgcn_mbcnt_lo(~0u, 0);
#endif
}

/* Returns the active lanes, bit i for lane i. Inside a condition, these are the lanes for which it
 * holds. */
static inline uint64_t flipwave_exec(void)
{
#if FLIPWAVE_LANES == 64
    return __builtin_amdgcn_read_exec();
#else
    return __builtin_amdgcn_read_exec_lo();
#endif
}

/* Returns the number of active lanes with a lower number than this one. */
static inline uint32_t flipwave_rank(void)
{
    uint64_t exec = flipwave_exec();
#if FLIPWAVE_LANES == 64
    return __builtin_amdgcn_mbcnt_hi((uint32_t)(exec >> 32),
                                     __builtin_amdgcn_mbcnt_lo((uint32_t)exec, 0));
#else
    return __builtin_amdgcn_mbcnt_lo((uint32_t)exec, 0);
#endif
}

/* Returns true in the first active lane. */
static inline bool flipwave_first_lane(void)
{
    return flipwave_rank() == 0;
}

/* Returns the value of the first active lane in all lanes. */
static inline uint32_t flipwave_uniform(uint32_t value)
{
    return __builtin_amdgcn_readfirstlane(value);
}

/* Returns the 64-bit value of the first active lane in all lanes. */
static inline uint64_t flipwave_uniform_64(uint64_t value)
{
    return flipwave_uniform((uint32_t)value)
        | (uint64_t)flipwave_uniform((uint32_t)(value >> 32)) << 32;
}

/* Returns the active lanes whose value is true. */
static inline uint64_t flipwave_ballot(bool value)
{
#if FLIPWAVE_LANES == 64
    return __builtin_amdgcn_ballot_w64(value);
#else
    return __builtin_amdgcn_ballot_w32(value);
#endif
}

/* Returns the value of a lane in all lanes. All active lanes must pass the same lane number. */
static inline uint32_t flipwave_read_lane(uint32_t value, uint32_t lane)
{
    return __builtin_amdgcn_readlane(value, flipwave_uniform(lane));
}

/* Returns the 64-bit value of a lane in all lanes. */
static inline uint64_t flipwave_read_lane_64(uint64_t value, uint32_t lane)
{
    return flipwave_read_lane((uint32_t)value, lane)
        | (uint64_t)flipwave_read_lane((uint32_t)(value >> 32), lane) << 32;
}

/* Returns the value of a lane, which each active lane chooses. The chosen lanes must be active. */
static inline uint32_t flipwave_shuffle(uint32_t value, uint32_t lane)
{
    return __builtin_amdgcn_ds_bpermute(lane * 4, value);
}

/* Returns the 64-bit value of a lane, which each active lane chooses. */
static inline uint64_t flipwave_shuffle_64(uint64_t value, uint32_t lane)
{
    return flipwave_shuffle((uint32_t)value, lane)
        | (uint64_t)flipwave_shuffle((uint32_t)(value >> 32), lane) << 32;
}

/* Adds to a counter that all waves share. */
static inline void flipwave_count(uint64_t *counter, uint64_t number)
{
    (void)__scoped_atomic_fetch_add(counter, number, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

/* Reads the word at a byte offset in the LDS of the kernel's workgroup; the offset must be a
 * multiple of four. Reads beyond the end return zero, and writes beyond the end are ignored.
 * Both are atomic operations, which do not affect the order of waves, unlike plain accesses. */
static inline uint32_t flipwave_read_lds(uint32_t offset)
{
    volatile __attribute__((address_space(3))) uint32_t *word =
        (volatile __attribute__((address_space(3))) uint32_t *)offset;
    uint32_t nothing = 0;
    /* Hides the zero: LLVM turns an OR with a constant zero into a plain load. */
    __asm__ volatile("" : "+v"(nothing));
    return __scoped_atomic_fetch_or(word, nothing, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
}

/* Writes the word at a byte offset in the LDS of the kernel's workgroup. */
static inline void flipwave_write_lds(uint32_t offset, uint32_t value)
{
    volatile __attribute__((address_space(3))) uint32_t *word =
        (volatile __attribute__((address_space(3))) uint32_t *)offset;
    (void)__scoped_atomic_exchange_n(word, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
}

/* The header of a channel. */
struct flipwave_channel {
    /* Number of appended records, including lost ones. */
    uint64_t appended;
    uint64_t reserved;
};

/* Defines a channel for `count` records of type `record`, to which hooks append records and from
 * which the host reads them after the dispatch. */
#define FLIPWAVE_CHANNEL(name, record, count) \
    struct { \
        struct flipwave_channel head; \
        record records[count]; \
    } name

/* Appends the record `record` of each active lane to the channel at `channel`, in the order of
 * lanes. Records that do not fit are lost, but counted as appended. */
#define flipwave_append(channel, record) \
    do { \
        uint64_t flipwave_slot = flipwave_slots(&(channel)->head); \
        if (flipwave_slot < sizeof((channel)->records) / sizeof(*(channel)->records)) \
            (channel)->records[flipwave_slot] = (record); \
    } while (0)

/* Reserves a record for each active lane and returns its index. */
static inline uint64_t flipwave_slots(struct flipwave_channel *channel)
{
    uint32_t rank = flipwave_rank();
    uint64_t count = __builtin_popcountll(flipwave_exec());
    uint64_t first = 0;
    if (rank == 0)
        first = __scoped_atomic_fetch_add(&channel->appended, count, __ATOMIC_RELAXED,
                                          __MEMORY_SCOPE_DEVICE);
    return flipwave_uniform_64(first) + rank;
}

/* Access to registers of the kernel by number. All active lanes must pass the same number.
 * Registers that the kernel does not have read as zero, and writes to them are ignored. Writes
 * change registers permanently. The engine replaces these instructions, which no compiler emits. */
#define FLIPWAVE_READ(name, mark, move, constraint) \
    static inline uint32_t name(uint32_t index) \
    { \
        uint32_t value; \
        asm volatile("s_trap " mark "\n\ts_mov_b32 %1, %1\n\t" move " %0, %0" \
                     : "=" constraint(value) \
                     : "s"(flipwave_uniform(index))); \
        return value; \
    }
#define FLIPWAVE_WRITE(name, mark, move, constraint) \
    static inline void name(uint32_t index, uint32_t value) \
    { \
        asm volatile("s_trap " mark "\n\ts_mov_b32 %0, %0\n\t" move " %1, %1" \
                     : \
                     : "s"(flipwave_uniform(index)), constraint(value)); \
    }

FLIPWAVE_READ(flipwave_read_vgpr, "0xf110", "v_mov_b32", "v")
FLIPWAVE_READ(flipwave_read_agpr, "0xf111", "v_mov_b32", "v")
FLIPWAVE_READ(flipwave_read_sgpr, "0xf112", "s_mov_b32", "s")
FLIPWAVE_WRITE(flipwave_write_vgpr, "0xf120", "v_mov_b32", "v")
FLIPWAVE_WRITE(flipwave_write_agpr, "0xf121", "v_mov_b32", "v")
FLIPWAVE_WRITE(flipwave_write_sgpr_, "0xf122", "s_mov_b32", "s")

/* Writes an SGPR with the value of the first active lane. */
static inline void flipwave_write_sgpr(uint32_t index, uint32_t value)
{
    flipwave_write_sgpr_(index, flipwave_uniform(value));
}

#undef FLIPWAVE_READ
#undef FLIPWAVE_WRITE

#ifdef FLIPWAVE_TOOL
#include "flipwave_tool.h"
#endif

/* These values are not available in the middle of a kernel, because its compiler may have
 * discarded them. Requests pass them to hooks as arguments. */
#pragma GCC poison __builtin_amdgcn_workgroup_id_x __builtin_amdgcn_workgroup_id_y
#pragma GCC poison __builtin_amdgcn_workgroup_id_z __builtin_amdgcn_workitem_id_x
#pragma GCC poison __builtin_amdgcn_workitem_id_y __builtin_amdgcn_workitem_id_z
#pragma GCC poison __builtin_amdgcn_workgroup_size_x __builtin_amdgcn_workgroup_size_y
#pragma GCC poison __builtin_amdgcn_workgroup_size_z __builtin_amdgcn_grid_size_x
#pragma GCC poison __builtin_amdgcn_grid_size_y __builtin_amdgcn_grid_size_z
#pragma GCC poison __builtin_amdgcn_dispatch_ptr __builtin_amdgcn_queue_ptr
#pragma GCC poison __builtin_amdgcn_kernarg_segment_ptr __builtin_amdgcn_implicitarg_ptr
#pragma GCC poison __builtin_amdgcn_dispatch_id __builtin_amdgcn_endpgm

#endif

#endif

#endif
