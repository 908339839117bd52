// A race as found in libraries: in each round all waves read a word that the first thread then
// overwrites, with a barrier only afterwards. Waves in lockstep have all read the word by then.
__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void overwrites_what_all_read(global const uint *rounds, global uint *seen) {
    local volatile uint word;
    uint i = get_local_id(0);
    if (i == 0)
        word = 1000;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint sum = 0;
    for (uint round = 0; round < rounds[0]; ++round) {
        uint here = word;
        if (here == 0)
            break;
        if (i == 0) {
            uint next = here;
            for (uint step = 0; step <= round % 3; ++step)
                next = next / 3 + 500 % (next + 1);
            word = next;
        }
        sum = sum * 31 + here;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    seen[i] = sum;
}
