/* What a work-item makes of its own words and its neighbour's. No workgroup touches the words of
 * another, and `out` may be `in`: a wave reads before it writes. */
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
step(global const uint *in, global const uint *more, global uint *out)
{
    const uint own =
        __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    const uint other = in[own ^ 1];
    uint value = in[own] + more[own];
    for (uint i = 0; i < 8; i++)
        value = value * 0x9e3779b1u + (value >> 7) + other;
    out[own] = value;
}
