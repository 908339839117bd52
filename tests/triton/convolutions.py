"""Convolutions: each element of the result depends on a window of the input."""

import numpy as np
import triton
import triton.language as tl
from case import EXACT, F32, Case, Scalar, case, exact, given, small, wanted


@triton.jit
def convolution_kernel(
    x, weights, y, height, width, CHANNELS: tl.constexpr, FILTERS: tl.constexpr, PIXELS: tl.constexpr
):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    row, column = pixel // width, pixel % width
    channel, filter = tl.arange(0, CHANNELS), tl.arange(0, FILTERS)
    total = tl.zeros([PIXELS, FILTERS], tl.float32)
    for step in range(9):
        down, across = row + step // 3 - 1, column + step % 3 - 1
        inside = (down >= 0) & (down < height) & (across >= 0) & (across < width)
        patch = tl.load(
            x + (down * width + across)[:, None] * CHANNELS + channel[None, :], inside[:, None], 0.0
        )
        weight = tl.load(weights + (step * CHANNELS + channel[:, None]) * FILTERS + filter[None, :])
        total = tl.dot(patch, weight, total)
    tl.store(y + pixel[:, None] * FILTERS + filter[None, :], total, (pixel < height * width)[:, None])


@case("convolution")
def convolution(_target, random):
    x, weights = given("fp16", small(random, 12, 10, 16)), given("fp16", small(random, 3, 3, 16, 32))
    padded = np.pad(exact(x), ((1, 1), (1, 1), (0, 0)))
    y = sum(
        padded[i : i + 12, j : j + 10] @ weights.values[i, j].astype(np.float64)
        for i in range(3)
        for j in range(3)
    )
    arguments = {
        "x": x,
        "weights": weights,
        "y": wanted("fp32", y, {"absolute": 1e-4}),
        "height": Scalar("i32", 12),
        "width": Scalar("i32", 10),
    }
    return Case(
        "convolution", convolution_kernel, [4], arguments, {"CHANNELS": 16, "FILTERS": 32, "PIXELS": 32}
    )


@triton.jit
def depthwise_kernel(x, weights, y, length, CHANNELS: tl.constexpr, STEPS: tl.constexpr):
    step = tl.program_id(0) * STEPS + tl.arange(0, STEPS)
    channel = tl.arange(0, CHANNELS)
    total = tl.zeros([STEPS, CHANNELS], tl.float32)
    for back in tl.static_range(4):
        before = step - back
        mask = (before >= 0) & (before < length)
        total += (
            tl.load(x + before[:, None] * CHANNELS + channel[None, :], mask[:, None], 0.0)
            * tl.load(weights + back * CHANNELS + channel)[None, :]
        )
    tl.store(y + step[:, None] * CHANNELS + channel[None, :], total, (step < length)[:, None])


@case("convolution_depthwise")
def depthwise(_target, random):
    x, weights = given("fp32", small(random, 60, 16)), given("fp32", small(random, 4, 16))
    padded = np.pad(exact(x), ((3, 0), (0, 0)))
    y = sum(padded[3 - back : 63 - back] * weights.values[back] for back in range(4))
    return Case(
        "convolution_depthwise",
        depthwise_kernel,
        [2],
        {"x": x, "weights": weights, "y": wanted("fp32", y, F32), "length": Scalar("i32", 60)},
        {"CHANNELS": 16, "STEPS": 32},
    )


@triton.jit
def pool_kernel(x, highest, mean, width, PIXELS: tl.constexpr):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    half = width // 2
    corner = pixel // half * 2 * width + pixel % half * 2
    most = tl.full([PIXELS], float("-inf"), tl.float32)
    total = tl.zeros([PIXELS], tl.float32)
    for i in tl.static_range(2):
        for j in tl.static_range(2):
            value = tl.load(x + corner + i * width + j)
            most = tl.maximum(most, value)
            total += value
    tl.store(highest + pixel, most)
    tl.store(mean + pixel, total / 4)


@case("pooling")
def pool(_target, random):
    x = given("fp32", small(random, 32, 32))
    windows = x.values.reshape(16, 2, 16, 2).swapaxes(1, 2).reshape(16, 16, 4)
    arguments = {
        "x": x,
        "highest": wanted("fp32", windows.max(axis=-1), EXACT),
        "mean": wanted("fp32", windows.mean(axis=-1), F32),
        "width": Scalar("i32", 32),
    }
    return Case("pooling", pool_kernel, [2], arguments, {"PIXELS": 128})
