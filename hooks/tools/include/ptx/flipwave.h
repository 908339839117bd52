/* Functions for hooks of instrumentation tools and of emulated instructions in PTX. The tool's calls of
 * flipwave_insert_call become calls that the lanes of a wave execute together; see docs/tools.md for the differences
 * from AMD GPUs. */

#ifndef FLIPWAVE_H
#define FLIPWAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the lane's number, 0 to 31. */
static inline uint32_t flipwave_lane(void)
{
    return __nvvm_read_ptx_sreg_laneid();
}

/* Returns the active lanes, bit i for lane i. Inside a condition, these are the lanes for which it
 * holds. */
static inline uint64_t flipwave_exec(void)
{
    return __nvvm_activemask();
}

/* Returns the number of lanes of a mask with a lower number than this one. */
static inline uint32_t flipwave_rank_in(uint32_t lanes)
{
    return __builtin_popcount(lanes & __nvvm_read_ptx_sreg_lanemask_lt());
}

/* Returns the number of active lanes with a lower number than this one. */
static inline uint32_t flipwave_rank(void)
{
    return flipwave_rank_in(__nvvm_activemask());
}

/* Returns true in the first active lane. */
static inline bool flipwave_first_lane(void)
{
    return flipwave_rank() == 0;
}

/* Returns the value of a lane of a mask, all of whose lanes must call it. */
static inline uint32_t flipwave_read_lane_of(uint32_t lanes, uint32_t value, uint32_t lane)
{
    return __nvvm_shfl_sync_idx_i32(lanes, value, lane, 31);
}

static inline uint64_t flipwave_read_lane_of_64(uint32_t lanes, uint64_t value, uint32_t lane)
{
    return flipwave_read_lane_of(lanes, (uint32_t)value, lane)
        | (uint64_t)flipwave_read_lane_of(lanes, (uint32_t)(value >> 32), lane) << 32;
}

/* Returns the value of the first active lane in all lanes. */
static inline uint32_t flipwave_uniform(uint32_t value)
{
    uint32_t lanes = __nvvm_activemask();
    return flipwave_read_lane_of(lanes, value, __builtin_ctz(lanes));
}

/* Returns the 64-bit value of the first active lane in all lanes. */
static inline uint64_t flipwave_uniform_64(uint64_t value)
{
    uint32_t lanes = __nvvm_activemask();
    return flipwave_read_lane_of_64(lanes, value, __builtin_ctz(lanes));
}

/* Returns the active lanes whose value is true. */
static inline uint64_t flipwave_ballot(bool value)
{
    return (uint32_t)__nvvm_vote_ballot_sync(__nvvm_activemask(), value);
}

/* Returns the value of a lane in all lanes. All active lanes must pass the same lane number. */
static inline uint32_t flipwave_read_lane(uint32_t value, uint32_t lane)
{
    return flipwave_read_lane_of(__nvvm_activemask(), value, lane);
}

/* Returns the 64-bit value of a lane in all lanes. */
static inline uint64_t flipwave_read_lane_64(uint64_t value, uint32_t lane)
{
    return flipwave_read_lane_of_64(__nvvm_activemask(), value, lane);
}

/* Returns the value of a lane, which each active lane chooses. The chosen lanes must be active. */
static inline uint32_t flipwave_shuffle(uint32_t value, uint32_t lane)
{
    return flipwave_read_lane_of(__nvvm_activemask(), value, lane);
}

/* Returns the 64-bit value of a lane, which each active lane chooses. */
static inline uint64_t flipwave_shuffle_64(uint64_t value, uint32_t lane)
{
    return flipwave_read_lane_of_64(__nvvm_activemask(), value, lane);
}

/* Adds to a counter that all waves share. */
static inline void flipwave_count(uint64_t *counter, uint64_t number)
{
    (void)__scoped_atomic_fetch_add(counter, number, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

/* Position of the workgroup in a dimension. */
static inline uint32_t flipwave_workgroup(uint32_t dimension)
{
    return dimension == 0   ? __nvvm_read_ptx_sreg_ctaid_x()
           : dimension == 1 ? __nvvm_read_ptx_sreg_ctaid_y()
                            : __nvvm_read_ptx_sreg_ctaid_z();
}

/* Number of the wave in its workgroup. */
static inline uint32_t flipwave_wave(void)
{
    uint32_t plane = __nvvm_read_ptx_sreg_tid_y()
        + __nvvm_read_ptx_sreg_ntid_y() * __nvvm_read_ptx_sreg_tid_z();
    return (__nvvm_read_ptx_sreg_tid_x() + __nvvm_read_ptx_sreg_ntid_x() * plane) / FLIPWAVE_LANES;
}

/* Reads a word of the workgroup's shared memory. The offset must be a multiple of four, and in that memory. */
static inline uint32_t flipwave_read_lds(uint32_t offset)
{
    return *(volatile __attribute__((address_space(3))) uint32_t *)(uintptr_t)offset;
}

/* Writes a word of the workgroup's shared memory. */
static inline void flipwave_write_lds(uint32_t offset, uint32_t value)
{
    *(volatile __attribute__((address_space(3))) uint32_t *)(uintptr_t)offset = value;
}

#define FLIPWAVE_NO_REGISTERS __attribute__((unavailable("hooks in PTX get values of registers as arguments")))
uint32_t flipwave_read_vgpr(uint32_t index) FLIPWAVE_NO_REGISTERS;
uint32_t flipwave_read_agpr(uint32_t index) FLIPWAVE_NO_REGISTERS;
uint32_t flipwave_read_sgpr(uint32_t index) FLIPWAVE_NO_REGISTERS;
void flipwave_write_vgpr(uint32_t index, uint32_t value) FLIPWAVE_NO_REGISTERS;
void flipwave_write_agpr(uint32_t index, uint32_t value) FLIPWAVE_NO_REGISTERS;
void flipwave_write_sgpr(uint32_t index, uint32_t value) FLIPWAVE_NO_REGISTERS;
#undef FLIPWAVE_NO_REGISTERS

#ifdef FLIPWAVE_TOOL
#include "flipwave_tool.h"
#endif

#endif
