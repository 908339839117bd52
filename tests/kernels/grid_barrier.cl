// Workgroups that wait for all others of the grid, as in programs that implement a grid barrier.

// The first work-item of a workgroup counts its arrival and waits until `all` have arrived.
static void meet(volatile global uint *arrived, uint all) {
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        atomic_inc(arrived);
        while (atomic_or(arrived, 0) < all)
            ;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
}

// After the barrier, reads the words that another workgroup wrote before it.
__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void neighbours(volatile global uint *arrived, volatile global uint *written,
                       global uint *read) {
    uint group = get_group_id(0), all = get_num_groups(0);
    if (get_local_id(0) == 0)
        written[group] = group * 3 + 1;
    meet(arrived, all);
    if (get_local_id(0) == 0)
        read[group] = written[(group + 1) % all];
    meet(arrived, 2 * all);
    if (get_local_id(0) == 0)
        written[group] = 0;
}

// Waits for work-items that do not exist, and counts its polls.
__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void counts(volatile global uint *arrived, global uint *looks) {
    uint count = 0;
    while (atomic_or(arrived, 0) == 0 && count < 1000000)
        ++count;
    looks[get_global_id(0)] = count;
}
