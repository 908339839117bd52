// One step of heat flow on a plate: each inner point moves towards the mean of its four
// neighbours, the border keeps its temperature.
kernel void heat_step(global const float *restrict before, global float *restrict after,
                      int width, int height, float rate) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    int here = y * width + x;
    float temperature = before[here];
    if (x > 0 && x < width - 1 && y > 0 && y < height - 1) {
        float neighbours = (before[here - 1] + before[here + 1])
                         + (before[here - width] + before[here + width]);
        temperature = fma(rate, fma(0.25f, neighbours, -temperature), temperature);
    }
    after[here] = temperature;
}
