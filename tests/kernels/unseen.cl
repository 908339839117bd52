// Operations that need single stepping in a loop whose other parts are compiled and run in rows: an
// undocumented result decides an address, only in the first round that has one; and v_writelane writes
// one lane independently of EXEC. Processors other than gfx950 lack the first operation.
__kernel void rounds(__global uint *data, __global const uint *table, uint rounds) {
    uint a = data[get_global_id(0)], b = 3 * a;
    for (uint round = 0; round < rounds; ++round) {
        uint c = a ^ round, d = b + round;
#ifdef __gfx950__
        if (round % 16 == 11)
            __asm__ volatile("v_permlane32_swap_b32 %0, %1" : "+v"(c), "+v"(d));
#endif
        if (round > 8 && round < 12)
            a += table[c % 64] & 1;
#ifdef __gfx950__
        if (round % 8 == 5)
            __asm__ volatile("v_writelane_b32 %0, %1, 3" : "+v"(b) : "s"(round));
#endif
        b += round;
    }
    data[get_global_id(0)] = a + b;
}
