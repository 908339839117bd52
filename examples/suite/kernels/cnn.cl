// A small convolutional network: convolutions of one image, 2 by 2 max pooling, a dense
// layer.

#define EDGE 3

// One work-item for each element of each channel.
__kernel void convolve(__global float *maps, __global const float *image,
                       __global const float *weights, __global const float *bias, int size)
{
    const int x = get_global_id(0), y = get_global_id(1), channel = get_global_id(2);
    const int width = size + EDGE - 1;
    float sum = bias[channel];
    for (int j = 0; j < EDGE; j++)
        for (int i = 0; i < EDGE; i++)
            sum = fma(weights[(channel * EDGE + j) * EDGE + i], image[(y + j) * width + x + i], sum);
    maps[(channel * size + y) * size + x] = fmax(sum, 0.0f);
}

__kernel void pool(__global float *pooled, __global const float *maps, int size)
{
    const int x = get_global_id(0), y = get_global_id(1), channel = get_global_id(2);
    __global const float *corner = maps + (channel * 2 * size + 2 * y) * 2 * size + 2 * x;
    const float above = fmax(corner[0], corner[1]);
    const float below = fmax(corner[2 * size], corner[2 * size + 1]);
    pooled[(channel * size + y) * size + x] = fmax(above, below);
}

__kernel void dense(__global float *scores, __global const float *inputs,
                    __global const float *weights, __global const float *bias, int count,
                    int classes)
{
    const int class_index = get_global_id(0);
    if (class_index >= classes)
        return;
    float sum = bias[class_index];
    for (int k = 0; k < count; k++)
        sum = fma(weights[class_index * count + k], inputs[k], sum);
    scores[class_index] = sum;
}
