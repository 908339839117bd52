// Instructions without hardware interlocks: compilers insert s_nop between them.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

typedef float float16_ __attribute__((ext_vector_type(16)));
typedef double double4_ __attribute__((ext_vector_type(4)));
typedef half half2_ __attribute__((ext_vector_type(2)));

kernel void matrices(global float *out) {
    uint i = get_local_id(0);
    float a = i * 0.5f, b = 3.0f - i;
    float4 small = __builtin_amdgcn_mfma_f32_4x4x1f32(a, b, (float4)(1.0f), 0, 0, 0);
    float4 middle = __builtin_amdgcn_mfma_f32_16x16x4f32(small.x, b, (float4)(2.0f), 0, 0, 0);
    float16_ large = __builtin_amdgcn_mfma_f32_32x32x2f32(middle.y, a, (float16_)(0.5f), 0, 0, 0);
    out[i] = small.x + middle.y + large.s3;
}

kernel void double_matrices(global double *out) {
    uint i = get_local_id(0);
    double a = i * 0.5, b = 3.0 - i;
    double small = __builtin_amdgcn_mfma_f64_4x4x4f64(a, b, 1.0, 0, 0, 0);
    double4_ large = __builtin_amdgcn_mfma_f64_16x16x4f64(small, b, (double4_)(2.0), 0, 0, 0);
    out[i] = small + large.x * fma(a, b, large.y);
}

kernel void lanes(global uint *out) {
    uint i = get_local_id(0);
    uint value = i * 3;
    value += __builtin_amdgcn_update_dpp(0u, value, 0x111, 0xf, 0xf, true);
    value += __builtin_amdgcn_update_dpp(0u, value, 0x112, 0xf, 0xf, true);
    uint first = __builtin_amdgcn_readfirstlane(value) & 63;
    out[i] = value + __builtin_amdgcn_readlane(value, first);
}

kernel void dots(global float *out) {
    uint i = get_local_id(0);
    half2_ a = (half2_)((half)i, (half)2), b = (half2_)((half)1, (half)3);
    float sum = __builtin_amdgcn_fdot2(a, b, 1.0f, false);
    out[i] = sum + 1.0f;
}

kernel void quotients(global double *out) {
    uint i = get_local_id(0);
    out[i] = (i + 1.0) / (i + 3.0);
}
