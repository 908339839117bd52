"""Conversions between types."""

import numpy as np
import triton
import triton.language as tl
from case import EXACT, Case, case, dtype, exact, given, small, supporting, wanted


@triton.jit
def convert_kernel(x, y, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.load(x + place).to(y.dtype.element_ty))


def conversion(source, result, values):
    name = f"{source}_to_{result}"

    @case(name, supporting(source, result))
    def make(_target, random):
        x = given(source, values(random))
        with np.errstate(invalid="ignore"):
            y = exact(x).astype(dtype(result)) if source[0] != "i" else x.values
        arguments = {"x": x, "y": wanted(result, y, EXACT)}
        return Case(name, convert_kernel, [x.values.size // 256], arguments, {"BLOCK": 256}, warps=2)


def every_byte(element):
    """All eight-bit numbers except NaN and infinities."""

    def values(_random):
        numbers = np.arange(256).astype(np.uint8).view(dtype(element))
        wide = numbers.astype(np.float32)
        return np.where(np.isfinite(wide), wide, 0)

    return values


def scaled(exponents):
    """Numbers of many magnitudes, including ties for rounding."""

    def values(random):
        numbers = (
            random.uniform(1, 2, 1024)
            * random.choice([-1, 1], 1024)
            * 2.0 ** random.integers(*exponents, 1024)
        )
        coarse = numbers.astype(np.float32).view(np.uint32) & 0xFFFF8000
        return np.where(random.integers(0, 2, 1024), numbers, coarse.view(np.float32))

    return values


def whole(low, high):
    return lambda random: random.integers(low, high, 512)


conversion("fp32", "fp16", scaled((-26, 15)))
conversion("fp32", "bf16", scaled((-120, 120)))
conversion("fp32", "fp64", scaled((-120, 120)))
conversion("fp64", "fp32", scaled((-120, 120)))
conversion("fp16", "fp32", scaled((-24, 15)))
conversion("bf16", "fp32", scaled((-120, 120)))
conversion("fp32", "fp8e4nv", scaled((-10, 8)))
conversion("fp32", "fp8e5", scaled((-17, 15)))
conversion("fp16", "fp8e4nv", scaled((-10, 8)))
conversion("fp16", "fp8e5", scaled((-17, 15)))
conversion("fp32", "fp8e4b8", scaled((-11, 7)))
conversion("fp32", "fp8e5b16", scaled((-18, 15)))
for small_type in ["fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16"]:
    for wide_type in ["fp32", "fp16"]:
        conversion(small_type, wide_type, every_byte(small_type))
conversion("fp8e4nv", "bf16", every_byte("fp8e4nv"))
conversion("fp8e5", "bf16", every_byte("fp8e5"))
conversion("i32", "fp32", whole(-(2**31), 2**31))
conversion("i8", "fp16", whole(-128, 128))
conversion("i64", "fp32", whole(-(2**62), 2**62))
conversion("fp32", "i32", lambda random: 1e6 * small(random, 512))
conversion("fp32", "u8", lambda random: random.uniform(0, 255, 512))
conversion("fp16", "i8", lambda random: 127 * small(random, 512))


@triton.jit
def quantize_kernel(x, y, scales, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    place = row * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.load(x + place)
    scale = tl.max(tl.abs(value), axis=0) / 127.0
    tl.store(scales + row, scale)
    tl.store(y + place, (value / scale + tl.where(value < 0, -0.5, 0.5)).to(tl.int8))


@case("quantize")
def quantize(_target, random):
    x = given("fp32", small(random, 16, 256))
    scales = np.abs(x.values).max(axis=1) / np.float32(127)
    y = np.trunc(x.values / scales[:, None] + np.where(x.values < 0, -0.5, 0.5))
    arguments = {
        "x": x,
        "y": wanted("i8", y, {"absolute": 1}),
        "scales": wanted("fp32", scales, {"relative": 1e-6}),
    }
    return Case("quantize", quantize_kernel, [16], arguments, {"COLUMNS": 256})
