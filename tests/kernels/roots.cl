// Instructions of gfx11 without hardware interlocks: compilers insert s_waitcnt_depctr between
// them.

kernel void roots(global float *out) {
    uint i = get_local_id(0);
    float x = __builtin_amdgcn_rsqf(i + 1.0f);
    float y = __builtin_amdgcn_rcpf(x + 2.0f);
    out[i] = __builtin_amdgcn_sqrtf(x * y) + __builtin_amdgcn_exp2f(y) * x;
}
