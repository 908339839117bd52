// Attention of one head: products of queries and keys, softmax of each row, and the weighted sums of
// the values.

__kernel void products(__global float *scores, __global const float *queries,
                       __global const float *keys, int length, int width)
{
    const int key = get_global_id(0), query = get_global_id(1);
    float sum = 0.0f;
    for (int k = 0; k < width; k++)
        sum = fma(queries[query * width + k], keys[key * width + k], sum);
    scores[query * length + key] = sum / sqrt((float)width);
}

// Softmax of one row. One workgroup per query and one lane per key; the number of keys is a power of two.
__kernel void soften(__global float *scores, __local float *shared)
{
    const int lane = get_local_id(0), count = get_local_size(0);
    const float score = scores[get_global_id(0)];
    shared[lane] = score;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = count / 2; step > 0; step /= 2) {
        if (lane < step)
            shared[lane] = fmax(shared[lane], shared[lane + step]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float largest = shared[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    const float weight = exp(score - largest);
    shared[lane] = weight;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = count / 2; step > 0; step /= 2) {
        if (lane < step)
            shared[lane] += shared[lane + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    scores[get_global_id(0)] = weight / shared[0];
}

__kernel void weigh(__global float *result, __global const float *weights,
                    __global const float *values, int length, int width)
{
    const int column = get_global_id(0), query = get_global_id(1);
    float sum = 0.0f;
    for (int key = 0; key < length; key++)
        sum = fma(weights[query * length + key], values[key * width + column], sum);
    result[query * width + column] = sum;
}
