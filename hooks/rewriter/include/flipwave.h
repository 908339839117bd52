/* What hooks are written with, and in kernels (OpenCL C, HIP) what proxies are.
 *
 * A hook is a C function. It runs before or after an instruction of a kernel, on the lanes that
 * the instruction runs on, with arguments that the request for it names. What it returns goes to
 * registers for good. Hooks have no stack, no LDS of their own, no calls that are not inlined, no
 * barriers and no traps; variables outside of functions lie in device memory, and start as zero
 * unless the source says otherwise.
 *
 * This file is included before every source of hooks. A kernel includes it for FLIPWAVE_PROXY. */

#pragma once

#if defined(__OPENCL_C_VERSION__) || defined(__HIP__)

/* A proxy: an instruction of the target in the place of one that no chip has. `text` is in the
 * assembler's words, `%0` in place of the destination and `%1`, `%2` and so on in place of the
 * sources, which are given as for inline assembly: "v"(x) in VGPRs, "s"(x) in SGPRs (without
 * optimisation, of what __builtin_amdgcn_readfirstlane gives), "n"(3) for a number. The value is the
 * destination's, of type `type`, in VGPRs. The instruction may write VCC, too, where it has a carry.
 *
 *     #define saturating_add(a, b) \
 *         FLIPWAVE_PROXY(v_pk_add_sat_i4, uint, "v_and_or_b32 %0, %1, %2, 57", "v"(a), "v"(b))
 *
 * Each proxy leaves a mark, so that the same instruction where no proxy was meant is not taken for
 * one. */
#define FLIPWAVE_PROXY(name, type, text, ...) FLIPWAVE_PROXY_TO("=v", name, type, text, __VA_ARGS__)

/* The same with the destination in SGPRs. */
#define FLIPWAVE_SCALAR_PROXY(name, type, text, ...) \
    FLIPWAVE_PROXY_TO("=s", name, type, text, __VA_ARGS__)

#define FLIPWAVE_PROXY_TO(constraint, name, type, text, ...) \
    ({ \
        type flipwave_result; \
        __asm__ volatile(FLIPWAVE_MARK(name) text \
                         : constraint(flipwave_result) : __VA_ARGS__ : "scc", "vcc"); \
        flipwave_result; \
    })

/* A proxy whose destination, `%0`, is read, too: the variable `variable`, in VGPRs. */
#define FLIPWAVE_UPDATING_PROXY(name, variable, text, ...) \
    __asm__ volatile(FLIPWAVE_MARK(name) text : "+v"(variable) : __VA_ARGS__ : "scc", "vcc")

/* Puts the address of the instruction after it into a section that is not loaded. */
#define FLIPWAVE_MARK(name) \
    "1:\n\t.pushsection .flipwave.proxy." #name ",\"\",@progbits\n\t.quad 1b\n\t" \
    ".popsection\n\t"

#else

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* FLIPWAVE_LANES is what the command line says: lanes of a wave, 32 or 64. */
#ifndef FLIPWAVE_LANES
#error "say how many lanes a wave has: -DFLIPWAVE_LANES=64"
#endif

/* The lane's number, 0 to FLIPWAVE_LANES - 1. */
static inline uint32_t flipwave_lane(void)
{
#if FLIPWAVE_LANES == 64
    return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
#else
    return __builtin_amdgcn_mbcnt_lo(~0u, 0);
#endif
}

/* The lanes that run, bit i for lane i. Inside of a condition: those that it holds for. */
static inline uint64_t flipwave_exec(void)
{
#if FLIPWAVE_LANES == 64
    return __builtin_amdgcn_read_exec();
#else
    return __builtin_amdgcn_read_exec_lo();
#endif
}

/* How many running lanes have a lower number than this one. */
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

/* Whether this is the running lane with the lowest number. */
static inline bool flipwave_first_lane(void)
{
    return flipwave_rank() == 0;
}

/* The value of the running lane with the lowest number, in all lanes. */
static inline uint32_t flipwave_uniform(uint32_t value)
{
    return __builtin_amdgcn_readfirstlane(value);
}

/* The same of 64 bits. */
static inline uint64_t flipwave_uniform_64(uint64_t value)
{
    return flipwave_uniform((uint32_t)value)
        | (uint64_t)flipwave_uniform((uint32_t)(value >> 32)) << 32;
}

/* The running lanes whose value is true. */
static inline uint64_t flipwave_ballot(bool value)
{
#if FLIPWAVE_LANES == 64
    return __builtin_amdgcn_ballot_w64(value);
#else
    return __builtin_amdgcn_ballot_w32(value);
#endif
}

/* The value of a lane, in all lanes. All lanes that run must give the same number. */
static inline uint32_t flipwave_read_lane(uint32_t value, uint32_t lane)
{
    return __builtin_amdgcn_readlane(value, flipwave_uniform(lane));
}

/* The same of 64 bits. */
static inline uint64_t flipwave_read_lane_64(uint64_t value, uint32_t lane)
{
    return flipwave_read_lane((uint32_t)value, lane)
        | (uint64_t)flipwave_read_lane((uint32_t)(value >> 32), lane) << 32;
}

/* Adds to a counter that all waves share. The old value is not known. */
static inline void flipwave_count(uint64_t *counter, uint64_t number)
{
    (void)__scoped_atomic_fetch_add(counter, number, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

/* The word at a byte offset in the LDS that the kernel's workgroup has; offsets are multiples of
 * four. Beyond its end reads give zero and writes do nothing. Both are atomic operations,
 * which do not affect the order of waves; plain accesses would. */
static inline uint32_t flipwave_read_lds(uint32_t offset)
{
    volatile __attribute__((address_space(3))) uint32_t *word =
        (volatile __attribute__((address_space(3))) uint32_t *)offset;
    uint32_t nothing = 0;
    /* Hides the zero: LLVM turns an OR with a constant zero into a plain load. */
    __asm__ volatile("" : "+v"(nothing));
    return __scoped_atomic_fetch_or(word, nothing, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
}

static inline void flipwave_write_lds(uint32_t offset, uint32_t value)
{
    volatile __attribute__((address_space(3))) uint32_t *word =
        (volatile __attribute__((address_space(3))) uint32_t *)offset;
    (void)__scoped_atomic_exchange_n(word, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
}

/* The head of a channel. */
struct flipwave_channel {
    /* Records appended, those that found no place included. */
    uint64_t appended;
    uint64_t reserved;
};

/* Defines a channel: room for `count` records of type `record`, to which hooks append and which
 * the host reads after the dispatch. */
#define FLIPWAVE_CHANNEL(name, record, count) \
    struct { \
        struct flipwave_channel head; \
        record records[count]; \
    } name

/* Appends to the channel at `channel` the record `record` of each running lane, in the order of
 * the lanes. What finds no place is counted as appended all the same, so that the host knows how
 * many are lost. */
#define flipwave_append(channel, record) \
    do { \
        uint64_t flipwave_slot = flipwave_slots(&(channel)->head); \
        if (flipwave_slot < sizeof((channel)->records) / sizeof(*(channel)->records)) \
            (channel)->records[flipwave_slot] = (record); \
    } while (0)

/* The number of a new record of each running lane. */
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

/* Registers of the kernel by number. All lanes that run must give the same number; one that the
 * kernel does not have reads as zero, and a write to it does nothing. What is written stays. The
 * engine puts its own code in place of these instructions, which no compiler writes. */
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

/* The value is the wave's: that of the running lane with the lowest number. */
static inline void flipwave_write_sgpr(uint32_t index, uint32_t value)
{
    flipwave_write_sgpr_(index, flipwave_uniform(value));
}

#undef FLIPWAVE_READ
#undef FLIPWAVE_WRITE

/* These are not known inside of a kernel: its compiler may have thrown them away. The request
 * passes what a hook needs as an argument. */
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
