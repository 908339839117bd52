/* Functions that OpenCL C needs on PTX and that libclc lacks. Included before every source. */

/* Functions of NVIDIA's libdevice that libclc calls, by means of the compiler's builtins. */
float __nv_sqrtf(float x) { return __nvvm_sqrt_rn_f(x); }
int __nv_isinff(float x) { return __builtin_isinf(x); }
int __nv_isinfd(double x) { return __builtin_isinf(x); }

/* Atomic operations of 64 bits: cl_khr_int64_base_atomics and cl_khr_int64_extended_atomics. */
#define FLIPWAVE_ATOMIC \
    extern inline __attribute__((overloadable, always_inline, gnu_inline))
#define FLIPWAVE_ATOMICS_ON(type, memory, scope) \
    FLIPWAVE_ATOMIC type atom_add(volatile memory type *at, type value) \
    { return __scoped_atomic_fetch_add(at, value, __ATOMIC_RELAXED, scope); } \
    FLIPWAVE_ATOMIC type atom_sub(volatile memory type *at, type value) \
    { return __scoped_atomic_fetch_sub(at, value, __ATOMIC_RELAXED, scope); } \
    FLIPWAVE_ATOMIC type atom_inc(volatile memory type *at) \
    { return __scoped_atomic_fetch_add(at, 1, __ATOMIC_RELAXED, scope); } \
    FLIPWAVE_ATOMIC type atom_dec(volatile memory type *at) \
    { return __scoped_atomic_fetch_sub(at, 1, __ATOMIC_RELAXED, scope); } \
    FLIPWAVE_ATOMIC type atom_xchg(volatile memory type *at, type value) \
    { return __scoped_atomic_exchange_n(at, value, __ATOMIC_RELAXED, scope); } \
    FLIPWAVE_ATOMIC type atom_cmpxchg(volatile memory type *at, type compared, type value) \
    { \
        __scoped_atomic_compare_exchange_n(at, &compared, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED, scope); \
        return compared; \
    } \
    FLIPWAVE_ATOMIC type atom_min(volatile memory type *at, type value) \
    { return __scoped_atomic_fetch_min(at, value, __ATOMIC_RELAXED, scope); } \
    FLIPWAVE_ATOMIC type atom_max(volatile memory type *at, type value) \
    { return __scoped_atomic_fetch_max(at, value, __ATOMIC_RELAXED, scope); } \
    FLIPWAVE_ATOMIC type atom_and(volatile memory type *at, type value) \
    { return __scoped_atomic_fetch_and(at, value, __ATOMIC_RELAXED, scope); } \
    FLIPWAVE_ATOMIC type atom_or(volatile memory type *at, type value) \
    { return __scoped_atomic_fetch_or(at, value, __ATOMIC_RELAXED, scope); } \
    FLIPWAVE_ATOMIC type atom_xor(volatile memory type *at, type value) \
    { return __scoped_atomic_fetch_xor(at, value, __ATOMIC_RELAXED, scope); }
#define FLIPWAVE_ATOMICS(type) \
    FLIPWAVE_ATOMICS_ON(type, global, __MEMORY_SCOPE_DEVICE) \
    FLIPWAVE_ATOMICS_ON(type, local, __MEMORY_SCOPE_WRKGRP)

FLIPWAVE_ATOMICS(long)
FLIPWAVE_ATOMICS(ulong)
