"""Spreads heat on a plate with a kernel of its own and CuPy's operations, and prints temperatures.

    flipwave exec --gpu gfx90a -- python heat.py [STEPS]
"""

import sys

import cupy
import numpy as np

STEP = r"""
extern "C" __global__ void step(const float *in, float *out, int edge) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= edge || y >= edge)
        return;
    int i = y * edge + x;
    bool is_edge = x == 0 || y == 0 || x == edge - 1 || y == edge - 1;
    out[i] = is_edge ? in[i] : 0.25f * (in[i - 1] + in[i + 1] + in[i - edge] + in[i + edge]);
}
"""
EDGE = 32


def main(steps: int) -> None:
    step = cupy.RawKernel(STEP, "step")
    plate = cupy.zeros((EDGE, EDGE), cupy.float32)
    plate[0] = 100
    for index in range(steps):
        spread = cupy.empty_like(plate)
        step((EDGE // 8, EDGE // 8), (8, 8), (plate, spread, np.int32(EDGE)))
        if index % 4 == 3:
            change = float(cupy.abs(spread - plate).max())
            print(f"step {index + 1} mean {float(spread.mean()):.5f} change {change:.5f}")
        plate = spread


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16)
