"""Normalisation of rows."""

import numpy as np
import triton
import triton.language as tl
from case import BF16, F32, Case, Scalar, case, exact, given, small, wanted


@triton.jit
def layer_norm_kernel(x, weight, bias, y, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    mask = place < columns
    value = tl.load(x + row * columns + place, mask, 0.0)
    mean = tl.sum(value, axis=0) / columns
    centred = tl.where(mask, value - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    scaled = centred * tl.rsqrt(variance + epsilon)
    tl.store(
        y + row * columns + place, scaled * tl.load(weight + place, mask) + tl.load(bias + place, mask), mask
    )


@case("layer_norm")
def layer_norm(_target, random):
    x, weight, bias = (given("fp32", small(random, *shape)) for shape in [(8, 200), (200,), (200,)])
    precise = exact(x)
    centred = precise - precise.mean(axis=1, keepdims=True)
    y = centred / np.sqrt(precise.var(axis=1, keepdims=True) + 1e-5) * weight.values + bias.values
    arguments = {
        "x": x,
        "weight": weight,
        "bias": bias,
        "y": wanted("fp32", y, F32),
        "columns": Scalar("i32", 200),
        "epsilon": Scalar("fp32", 1e-5),
    }
    return Case("layer_norm", layer_norm_kernel, [8], arguments, {"BLOCK": 256})


@triton.jit
def layer_norm_gradient_kernel(x, weight, slope, dx, dweight, dbias, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    mask = place < columns
    value = tl.load(x + row * columns + place, mask, 0.0)
    mean = tl.sum(value, axis=0) / columns
    centred = tl.where(mask, value - mean, 0.0)
    deviation = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + 1e-5)
    scaled = centred * deviation
    down = tl.load(slope + row * columns + place, mask, 0.0)
    weighted = down * tl.load(weight + place, mask, 0.0)
    first = tl.sum(scaled * weighted, axis=0) / columns
    second = tl.sum(weighted, axis=0) / columns
    tl.store(dx + row * columns + place, (weighted - (scaled * first + second)) * deviation, mask)
    tl.atomic_add(dweight + place, down * scaled, mask)
    tl.atomic_add(dbias + place, down, mask)


@case("layer_norm_gradient")
def layer_norm_gradient(_target, random):
    x, weight, slope = (given("fp32", small(random, *shape)) for shape in [(8, 200), (200,), (8, 200)])
    precise = exact(x)
    deviation = 1 / np.sqrt(precise.var(axis=1, keepdims=True) + 1e-5)
    scaled = (precise - precise.mean(axis=1, keepdims=True)) * deviation
    weighted = slope.values * exact(weight)
    first = (scaled * weighted).mean(axis=1, keepdims=True)
    dx = (weighted - scaled * first - weighted.mean(axis=1, keepdims=True)) * deviation
    arguments = {
        "x": x,
        "weight": weight,
        "slope": slope,
        "dx": wanted("fp32", dx, F32),
        "dweight": wanted("fp32", (slope.values * scaled).sum(axis=0), F32),
        "dbias": wanted("fp32", slope.values.sum(axis=0), F32),
        "columns": Scalar("i32", 200),
    }
    return Case("layer_norm_gradient", layer_norm_gradient_kernel, [8], arguments, {"BLOCK": 256})


@triton.jit
def rms_norm_kernel(x, weight, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + place, place < columns, 0.0).to(tl.float32)
        total += value * value
    factor = 1 / tl.sqrt(tl.sum(total, axis=0) / columns + 1e-6)
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        mask = place < columns
        value = tl.load(x + row * columns + place, mask, 0.0).to(tl.float32)
        scale = tl.load(weight + place, mask, 0.0).to(tl.float32)
        tl.store(y + row * columns + place, (value * factor * scale).to(tl.bfloat16), mask)


@case("rms_norm")
def rms_norm(_target, random):
    x, weight = given("bf16", small(random, 8, 320)), given("bf16", small(random, 320))
    precise = exact(x)
    y = precise / np.sqrt((precise**2).mean(axis=1, keepdims=True) + 1e-6) * exact(weight)
    arguments = {"x": x, "weight": weight, "y": wanted("bf16", y, BF16), "columns": Scalar("i32", 320)}
    return Case("rms_norm", rms_norm_kernel, [8], arguments, {"BLOCK": 128}, warps=2)


@triton.jit
def group_norm_kernel(x, y, channels, ROWS: tl.constexpr, PIXELS: tl.constexpr):
    start = tl.program_id(0) * ROWS * PIXELS
    place = start + tl.arange(0, ROWS)[:, None] * PIXELS + tl.arange(0, PIXELS)[None, :]
    value = tl.load(x + place)
    mean = tl.sum(value) / (ROWS * PIXELS)
    variance = tl.sum((value - mean) * (value - mean)) / (ROWS * PIXELS)
    tl.store(y + place, (value - mean) / tl.sqrt(variance + 1e-5))


@case("group_norm")
def group_norm(_target, random):
    x = given("fp32", small(random, 4, 8, 64))
    precise = exact(x)
    y = (precise - precise.mean(axis=(1, 2), keepdims=True)) / np.sqrt(
        precise.var(axis=(1, 2), keepdims=True) + 1e-5
    )
    arguments = {"x": x, "y": wanted("fp32", y, F32), "channels": Scalar("i32", 8)}
    return Case("group_norm", group_norm_kernel, [4], arguments, {"ROWS": 8, "PIXELS": 64})
