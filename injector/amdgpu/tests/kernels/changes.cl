/* Each work-item combines its words with its neighbour's. Workgroups access disjoint words, and `out`
 * may equal `in`: a wave reads before it writes. */
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
step(global const uint *in, global const uint *more, global uint *out)
{
    const uint item =
        __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    const uint neighbour = in[item ^ 1];
    uint value = in[item] + more[item];
    for (uint i = 0; i < 8; i++)
        value = value * 0x9e3779b1u + (value >> 7) + neighbour;
    out[item] = value;
}
