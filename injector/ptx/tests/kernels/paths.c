/* A mix of everything that faults can strike: loops with data-dependent trip counts, divergence, shared and local
 * memory, atomics, integers and numbers of all sizes, comparisons, guards, carries, exchanges between lanes, and a
 * device function. */

#include <stdint.h>

#define SIZE 80

#define kernel __attribute__((nvptx_kernel))
#define global __attribute__((address_space(1)))
#define local __attribute__((address_space(3)))

typedef uint32_t uint;
typedef uint64_t ulong;

static local uint shared[SIZE];

static uint thread(void)
{
    return __nvvm_read_ptx_sreg_tid_x();
}

/* Index of the work-item in the grid, for two workgroups in x. */
static uint global_index(void)
{
    uint workgroup = __nvvm_read_ptx_sreg_ctaid_x() + 2 * __nvvm_read_ptx_sreg_ctaid_y();
    return workgroup * SIZE + thread();
}

/* Not inlined: has registers and a frame of its own. */
__attribute__((noinline)) static uint scramble(uint value, uint rounds)
{
    volatile uint kept[4];
    for (uint i = 0; i < 4; i++)
        kept[i] = value >> i;
    for (uint i = 0; i < rounds; i++)
        kept[i & 3] = kept[(i + 1) & 3] * 2654435769u + i;
    return kept[0] ^ kept[1] ^ kept[2] ^ kept[3];
}

kernel void mix(global const uint *in, global uint *out, global uint *counters)
{
    const uint item = global_index();
    uint value = in[item];
    float sum = (float)(value & 255);
    double wide = value;
    _Float16 small = (_Float16)(float)(value & 15);
    ulong product = value;
    for (uint i = 0; i < (value & 7) + 1; i++) {
        product = product * 0x9e3779b97f4a7c15ul + i;
        sum = sum * 1.25f + (float)i;
        small = small * (_Float16)0.5 + (_Float16)1.5;
        if ((product >> 32 ^ i) & 1)
            wide = wide * 0.5 + 3.0;
        else if ((product >> 35 ^ i) & 1)
            value += (uint)product >> 5;
        else
            wide += (double)i;
    }
    shared[thread()] = value;
    __syncthreads();
    value ^= shared[(thread() * 5 + 3) % SIZE];
    if (thread() < 64)
        value += __nvvm_shfl_sync_bfly_i32(0xffffffff, value, 1, 31);
    uint low, high;
    __asm__ volatile("add.cc.u32 %0, %2, %3;\n\taddc.u32 %1, %2, 7;"
                     : "=r"(low), "=r"(high) : "r"(value), "r"((uint)product));
    uint guarded = value;
    __asm__ volatile("{ .reg .pred %%q; .reg .b32 %%t;\n\t"
                     "setp.gt.u32 %%q, %1, 0x40000000;\n\t"
                     "@%%q add.u32 %0, %0, 17;\n\t"
                     "@!%%q xor.b32 %0, %0, %1; }"
                     : "+r"(guarded) : "r"(low));
    value += scramble(guarded, value & 3) + high;
    if (value % 3 == 0)
        __atomic_fetch_add(counters + (value & 15), value, __ATOMIC_RELAXED);
    out[item] = value ^ (uint)product ^ (uint)(product >> 32) ^ __builtin_bit_cast(uint16_t, small);
    out[item + 4 * SIZE] = __builtin_bit_cast(uint, sum) + (uint)wide;
}

/* Reads the results of `mix`, some of them in lanes that others wait for. */
kernel void fold(global const uint *in, global uint *out, global uint *counters)
{
    const uint workgroup = __nvvm_read_ptx_sreg_ctaid_x() + 2 * __nvvm_read_ptx_sreg_ctaid_y();
    uint sum = 0;
    for (uint i = 0; i < 12; i++) {
        const uint word = in[workgroup * SIZE + i];
        if (word & 1)
            sum += word;
        else
            sum ^= word << 1;
    }
    const uint item = global_index();
    if (thread() % 3 == 1) {
        out[item] = in[item + 4 * SIZE] - counters[item & 15];
        return;
    }
    out[item] = sum + in[item];
}
