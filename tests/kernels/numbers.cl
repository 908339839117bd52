// Arithmetic without a single hardware instruction, and conversions.

kernel void integers(global const ulong *left, global const ulong *right, global ulong *results) {
    size_t i = get_global_id(0);
    ulong a = left[i], b = right[i];
    long c = (long)a, d = (long)b;
    global ulong *to = results + 12 * i;
    to[0] = a / b;
    to[1] = a % b;
    // The smallest integer divided by -1 overflows.
    to[2] = d == -1 ? 0 : c / d;
    to[3] = d == -1 ? 0 : c % d;
    to[4] = a * b;
    to[5] = mul_hi(a, b);
    to[6] = (ulong)mul_hi(c, d);
    to[7] = popcount(a) | (ulong)clz(b) << 32;
    to[8] = rotate(a, b);
    to[9] = a << (b & 63) ^ b >> (a & 63) ^ (ulong)(c >> (b & 63));
    to[10] = (uint)a / ((uint)b | 1) | (ulong)((uint)a % ((uint)b | 1)) << 32;
    to[11] = add_sat(a, b) ^ (ulong)sub_sat(c, d);
}

kernel void singles(global const float *left, global const float *right, global float *results) {
    size_t i = get_global_id(0);
    float a = left[i], b = right[i];
    global float *to = results + 8 * i;
    to[0] = a / b;
    to[1] = sqrt(fabs(a));
    to[2] = fma(a, b, 1.0f);
    to[3] = fmin(a, b) + fmax(a, b);
    to[4] = floor(a) - ceil(b);
    to[5] = rint(a) + trunc(b);
    to[6] = (float)convert_int_sat(a);
    to[7] = a < b ? copysign(a, b) : fabs(a);
}

kernel void doubles(global const double *left, global const double *right,
                    global double *results) {
    size_t i = get_global_id(0);
    double a = left[i], b = right[i];
    global double *to = results + 8 * i;
    to[0] = a / b;
    to[1] = sqrt(fabs(a));
    to[2] = fma(a, b, 1.0);
    to[3] = a - b;
    to[4] = floor(a) * ceil(b);
    to[5] = rint(a) + trunc(b);
    to[6] = (double)convert_long_sat(a) + (double)(float)b;
    to[7] = fmin(a, b) / fmax(a, b);
}
