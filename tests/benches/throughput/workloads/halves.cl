// Polynomials in packed half precision.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

kernel void halves(global half2 *out, global const half2 *in, int degree)
{
    half2 x = in[get_global_id(0)], sum = 0;
    for (int i = 0; i < degree; ++i)
        sum = fma(sum, x, (half2)(0.5h, -0.25h)) + x * (half2)0.125h;
    out[get_global_id(0)] = sum;
}
