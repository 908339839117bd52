// Fast Fourier transform of complex numbers, radix 2, decimation in time: a bit-reversal
// permutation, then one launch for each stage of butterflies, in place.

__kernel void reverse(__global float2 *after, __global const float2 *before, int bits)
{
    const uint index = get_global_id(0);
    uint from = 0;
    for (int bit = 0; bit < bits; bit++)
        from |= (index >> bit & 1) << (bits - 1 - bit);
    after[index] = before[from];
}

// Butterflies of two elements at distance `half_width`.
__kernel void butterfly(__global float2 *values, int half_width)
{
    const int lane = get_global_id(0);
    const int within = lane % half_width;
    const int low = lane / half_width * 2 * half_width + within, high = low + half_width;
    float cosine;
    const float sine = sincos(-M_PI_F * within / half_width, &cosine);
    const float2 a = values[low], b = values[high];
    const float2 turned = (float2)(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
    values[low] = a + turned;
    values[high] = a - turned;
}
