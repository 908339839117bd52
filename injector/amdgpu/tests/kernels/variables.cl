/* Variables that outlive a dispatch, one initialized to zero and one not. */
global uint total;
global uint factor = 3;

kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
count(global uint *out)
{
    const uint lane = __builtin_amdgcn_workitem_id_x();
    const uint value = total + 5;
    const uint next = factor * 7;
    __builtin_amdgcn_s_barrier();
    if (lane == 0) {
        total = value;
        factor = next;
    }
    out[lane] = value * next + lane;
}
