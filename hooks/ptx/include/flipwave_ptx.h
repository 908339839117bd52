/* Functions for hooks in PTX, which clang compiles as C. A hook runs in the lanes that call it. */

#ifndef FLIPWAVE_PTX_H
#define FLIPWAVE_PTX_H

#include <stdbool.h>
#include <stdint.h>

/* Number of lanes of a wave. */
#ifndef FLIPWAVE_LANES
#define FLIPWAVE_LANES 32
#endif

/* Memory of a state space, by its address in that space. */
#define FLIPWAVE_SHARED __attribute__((address_space(3)))
#define FLIPWAVE_LOCAL __attribute__((address_space(5)))

/* Number of the lane in its wave. */
static inline uint32_t flipwave_lane(void)
{
    return __nvvm_read_ptx_sreg_laneid();
}

/* Lanes that run the hook together, one bit each. */
static inline uint32_t flipwave_active(void)
{
    return __nvvm_activemask();
}

/* Waits for the lanes of a mask, all of which must call it. */
static inline void flipwave_sync(uint32_t lanes)
{
    __nvvm_bar_warp_sync(lanes);
}

/* Lanes of a mask in which a condition is true. All of them must call it. */
static inline uint32_t flipwave_ballot(uint32_t lanes, bool condition)
{
    return __nvvm_vote_ballot_sync(lanes, condition);
}

/* The value of a lane. All lanes of the mask must call it, and the lane must be one of them. */
static inline uint32_t flipwave_read_lane(uint32_t lanes, uint32_t value, uint32_t lane)
{
    return __nvvm_shfl_sync_idx_i32(lanes, value, lane, 31);
}

/* Position of the workgroup in the grid. */
static inline uint32_t flipwave_workgroup_x(void)
{
    return __nvvm_read_ptx_sreg_ctaid_x();
}

static inline uint32_t flipwave_workgroup_y(void)
{
    return __nvvm_read_ptx_sreg_ctaid_y();
}

static inline uint32_t flipwave_workgroup_z(void)
{
    return __nvvm_read_ptx_sreg_ctaid_z();
}

/* Number of the thread in its workgroup. */
static inline uint32_t flipwave_thread(void)
{
    uint32_t plane = __nvvm_read_ptx_sreg_tid_y()
                   + __nvvm_read_ptx_sreg_ntid_y() * __nvvm_read_ptx_sreg_tid_z();
    return __nvvm_read_ptx_sreg_tid_x() + __nvvm_read_ptx_sreg_ntid_x() * plane;
}

/* Number of the wave in its workgroup. */
static inline uint32_t flipwave_wave(void)
{
    return flipwave_thread() / FLIPWAVE_LANES;
}

#endif
