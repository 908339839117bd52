/* The part of CUDA C++ that kernels need: qualifiers, positions, barriers, atomic operations, exchanges between
 * lanes, and functions that are single instructions. Included before every `.cu` file. */
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define FLIPWAVE_DEVICE static __device__ __forceinline__

typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef __SIZE_TYPE__ size_t;

#include <__clang_cuda_builtin_vars.h>

FLIPWAVE_DEVICE void __syncwarp(unsigned lanes = 0xffffffff) { __nvvm_bar_warp_sync(lanes); }
FLIPWAVE_DEVICE void __threadfence() { __nvvm_membar_gl(); }
FLIPWAVE_DEVICE void __threadfence_block() { __nvvm_membar_cta(); }

FLIPWAVE_DEVICE int atomicAdd(int *at, int value) { return __nvvm_atom_add_gen_i(at, value); }
FLIPWAVE_DEVICE unsigned atomicAdd(unsigned *at, unsigned value)
{
    return (unsigned)__nvvm_atom_add_gen_i((int *)at, (int)value);
}
FLIPWAVE_DEVICE float atomicAdd(float *at, float value) { return __nvvm_atom_add_gen_f(at, value); }
FLIPWAVE_DEVICE int atomicMax(int *at, int value) { return __nvvm_atom_max_gen_i(at, value); }
FLIPWAVE_DEVICE int atomicMin(int *at, int value) { return __nvvm_atom_min_gen_i(at, value); }
FLIPWAVE_DEVICE int atomicExch(int *at, int value) { return __nvvm_atom_xchg_gen_i(at, value); }
FLIPWAVE_DEVICE int atomicCAS(int *at, int compared, int value)
{
    return __nvvm_atom_cas_gen_i(at, compared, value);
}

FLIPWAVE_DEVICE int __shfl_sync(unsigned lanes, int value, int lane, int width = 32)
{
    return __nvvm_shfl_sync_idx_i32(lanes, value, lane, ((32 - width) << 8) | 0x1f);
}
FLIPWAVE_DEVICE int __shfl_down_sync(unsigned lanes, int value, unsigned delta, int width = 32)
{
    return __nvvm_shfl_sync_down_i32(lanes, value, delta, ((32 - width) << 8) | 0x1f);
}
FLIPWAVE_DEVICE int __shfl_xor_sync(unsigned lanes, int value, int mask, int width = 32)
{
    return __nvvm_shfl_sync_bfly_i32(lanes, value, mask, ((32 - width) << 8) | 0x1f);
}
FLIPWAVE_DEVICE float __shfl_sync(unsigned lanes, float value, int lane, int width = 32)
{
    return __nvvm_shfl_sync_idx_f32(lanes, value, lane, ((32 - width) << 8) | 0x1f);
}
FLIPWAVE_DEVICE float __shfl_down_sync(unsigned lanes, float value, unsigned delta, int width = 32)
{
    return __nvvm_shfl_sync_down_f32(lanes, value, delta, ((32 - width) << 8) | 0x1f);
}
FLIPWAVE_DEVICE float __shfl_xor_sync(unsigned lanes, float value, int mask, int width = 32)
{
    return __nvvm_shfl_sync_bfly_f32(lanes, value, mask, ((32 - width) << 8) | 0x1f);
}
FLIPWAVE_DEVICE unsigned __ballot_sync(unsigned lanes, int predicate)
{
    return __nvvm_vote_ballot_sync(lanes, predicate);
}
FLIPWAVE_DEVICE int __all_sync(unsigned lanes, int predicate) { return __nvvm_vote_all_sync(lanes, predicate); }
FLIPWAVE_DEVICE int __any_sync(unsigned lanes, int predicate) { return __nvvm_vote_any_sync(lanes, predicate); }

FLIPWAVE_DEVICE float sqrtf(float x) { return __nvvm_sqrt_rn_f(x); }
FLIPWAVE_DEVICE double sqrt(double x) { return __nvvm_sqrt_rn_d(x); }
FLIPWAVE_DEVICE float fabsf(float x) { return __builtin_fabsf(x); }
FLIPWAVE_DEVICE double fabs(double x) { return __builtin_fabs(x); }
FLIPWAVE_DEVICE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
FLIPWAVE_DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
FLIPWAVE_DEVICE float fminf(float x, float y) { return __builtin_fminf(x, y); }
FLIPWAVE_DEVICE float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
FLIPWAVE_DEVICE int min(int x, int y) { return x < y ? x : y; }
FLIPWAVE_DEVICE int max(int x, int y) { return x > y ? x : y; }
FLIPWAVE_DEVICE float __expf(float x) { return __nvvm_ex2_approx_f(x * 1.4426950408889634f); }
FLIPWAVE_DEVICE float __logf(float x) { return __nvvm_lg2_approx_f(x) * 0.6931471805599453f; }
FLIPWAVE_DEVICE float __sinf(float x) { return __nvvm_sin_approx_f(x); }
FLIPWAVE_DEVICE float __cosf(float x) { return __nvvm_cos_approx_f(x); }
FLIPWAVE_DEVICE float rsqrtf(float x) { return __nvvm_rsqrt_approx_f(x); }
FLIPWAVE_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
FLIPWAVE_DEVICE int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
