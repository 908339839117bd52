// Workgroups that observe each other's progress: each takes the next ticket.
kernel void tickets(volatile global uint *next, global uint *out) {
    if (get_local_id(0) == 0)
        out[get_group_id(0)] = atomic_inc(next);
}
