// One step of the temperature of a chip: heat flows to the neighbours in the plane, the dissipated
// power adds heat, and heat flows to the environment. The temperature beyond the edge equals that at
// the edge.

__kernel void step(__global float *after, __global const float *before,
                   __global const float *power, int width, int height)
{
    const float rate = 0.05f, ambient = 80.0f, lateral = 0.9f, vertical = 0.1f;
    const int x = get_global_id(0), y = get_global_id(1);
    const float center = before[y * width + x];
    const float west = before[y * width + max(x - 1, 0)];
    const float east = before[y * width + min(x + 1, width - 1)];
    const float north = before[max(y - 1, 0) * width + x];
    const float south = before[min(y + 1, height - 1) * width + x];
    float flow = power[y * width + x];
    flow = fma(fma(-2.0f, center, west + east), lateral, flow);
    flow = fma(fma(-2.0f, center, north + south), lateral, flow);
    flow = fma(ambient - center, vertical, flow);
    after[y * width + x] = fma(rate, flow, center);
}
