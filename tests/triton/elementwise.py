"""Elementwise kernels: each program computes a block of elements."""

import math

import numpy as np
import triton
import triton.language as tl
from case import BF16, EXACT, F16, F32, Case, Scalar, case, exact, given, small, wanted


@triton.jit
def add_kernel(left, right, sum, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    tl.store(sum + place, tl.load(left + place, mask) + tl.load(right + place, mask), mask)


def add(name, element, tolerance):
    @case(name)
    def make(_target, random):
        left, right = given(element, small(random, 1000)), given(element, small(random, 1000))
        total = left.values + right.values
        arguments = {
            "left": left,
            "right": right,
            "sum": wanted(element, total, tolerance),
            "count": Scalar("i32", 1000),
        }
        return Case(name, add_kernel, [4], arguments, {"BLOCK": 256})


add("add", "fp32", EXACT)
add("add_f16", "fp16", EXACT)
add("add_bf16", "bf16", EXACT)
add("add_f64", "fp64", EXACT)


@triton.jit
def gelu_kernel(x, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    value = tl.load(x + place, mask)
    tl.store(y + place, 0.5 * value * (1 + tl.erf(value * 0.7071067811865476)), mask)


@case("gelu")
def gelu(_target, random):
    x = given("fp32", 4 * small(random, 1000))
    erf = np.vectorize(math.erf)
    precise = exact(x)
    y = 0.5 * precise * (1 + erf(precise / math.sqrt(2)))
    return Case(
        "gelu",
        gelu_kernel,
        [4],
        {"x": x, "y": wanted("fp32", y, F32), "count": Scalar("i32", 1000)},
        {"BLOCK": 256},
    )


@triton.jit
def swiglu_kernel(gate, up, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    value = tl.load(gate + place, mask).to(tl.float32)
    factor = tl.load(up + place, mask).to(tl.float32)
    tl.store(y + place, (value * tl.sigmoid(value) * factor).to(tl.float16), mask)


@case("swiglu")
def swiglu(_target, random):
    gate, up = given("fp16", 4 * small(random, 1000)), given("fp16", small(random, 1000))
    left = exact(gate)
    y = left / (1 + np.exp(-left)) * exact(up)
    arguments = {"gate": gate, "up": up, "y": wanted("fp16", y, F16), "count": Scalar("i32", 1000)}
    return Case("swiglu", swiglu_kernel, [2], arguments, {"BLOCK": 512})


@triton.jit
def functions_kernel(x, y, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.load(x + place)
    tl.store(y + place, tl.exp(value))
    tl.store(y + BLOCK + place, tl.log2(value))
    tl.store(y + 2 * BLOCK + place, tl.sin(value))
    tl.store(y + 3 * BLOCK + place, tl.cos(value))
    tl.store(y + 4 * BLOCK + place, tl.sqrt_rn(value))
    tl.store(y + 5 * BLOCK + place, tl.rsqrt(value))
    tl.store(y + 6 * BLOCK + place, tl.div_rn(1.0, value))
    tl.store(y + 7 * BLOCK + place, tl.floor(value))


@case("functions")
def functions(_target, random):
    x = given("fp32", random.uniform(0.1, 9, 512))
    value = exact(x)
    y = [np.exp(value), np.log2(value), np.sin(value), np.cos(value)]
    y += [np.sqrt(value), 1 / np.sqrt(value), 1 / value, np.floor(value)]
    return Case(
        "functions", functions_kernel, [1], {"x": x, "y": wanted("fp32", np.stack(y), F32)}, {"BLOCK": 512}
    )


@triton.jit
def integers_kernel(left, right, y, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    a = tl.load(left + place)
    b = tl.load(right + place)
    tl.store(y + place, a // b)
    tl.store(y + BLOCK + place, a % b)
    tl.store(y + 2 * BLOCK + place, a * b)
    tl.store(
        y + 3 * BLOCK + place,
        tl.umulhi(a.to(tl.uint32, bitcast=True), b.to(tl.uint32, bitcast=True)).to(tl.int32, bitcast=True),
    )
    tl.store(y + 4 * BLOCK + place, (a << 3) ^ (b >> 2))
    tl.store(y + 5 * BLOCK + place, tl.minimum(a, b))
    tl.store(y + 6 * BLOCK + place, tl.abs(a))


@case("integers")
def integers(_target, random):
    a = random.integers(-(2**31), 2**31, 512)
    b = random.integers(1, 2**16, 512)
    unsigned = a % 2**32
    results = [np.trunc(a / b).astype(np.int64)]
    results += [
        a - results[0] * b,
        a * b,
        unsigned * b >> 32,
        (a << 3) ^ (b >> 2),
        np.minimum(a, b),
        np.abs(a),
    ]
    y = np.stack(results).astype(np.uint64).astype(np.uint32).view(np.int32)
    arguments = {"left": given("i32", a), "right": given("i32", b), "y": wanted("i32", y, EXACT)}
    return Case("integers", integers_kernel, [1], arguments, {"BLOCK": 512})


def philox(seed, offset):
    """First word of Philox 4x32-10 (J. K. Salmon et al., SC11) for each counter."""
    mask = np.uint64(0xFFFFFFFF)
    words = [offset.astype(np.uint64)] + [np.zeros(offset.shape, np.uint64) for _ in range(3)]
    keys = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        left, right = np.uint64(0xD2511F53) * words[0], np.uint64(0xCD9E8D57) * words[2]
        shift = np.uint64(32)
        words = [
            (right >> shift) ^ words[1] ^ keys[0],
            right & mask,
            (left >> shift) ^ words[3] ^ keys[1],
            left & mask,
        ]
        keys = [(keys[0] + np.uint64(0x9E3779B9)) & mask, (keys[1] + np.uint64(0xBB67AE85)) & mask]
    return words[0].astype(np.uint32)


@triton.jit
def dropout_kernel(x, y, count, p, seed, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    kept = tl.rand(seed, place) > p
    tl.store(y + place, tl.where(kept, tl.load(x + place, mask) / (1 - p), 0.0), mask)


@case("dropout")
def dropout(_target, random):
    x = given("fp32", small(random, 1000))
    seed = 0x1234567
    word = philox(seed, np.arange(1000)).view(np.int32)
    uniform = np.where(word < 0, ~word, word).astype(np.float32) * np.float32(4.6566127342e-10)
    y = np.where(uniform > np.float32(0.25), x.values / np.float32(0.75), 0)
    arguments = {
        "x": x,
        "y": wanted("fp32", y, F32),
        "count": Scalar("i32", 1000),
        "p": Scalar("fp32", 0.25),
        "seed": Scalar("i32", seed),
    }
    return Case("dropout", dropout_kernel, [4], arguments, {"BLOCK": 256})


@triton.jit
def rotary_kernel(x, cosines, sines, y, HALF: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, HALF)
    first = tl.load(x + row * 2 * HALF + place).to(tl.float32)
    second = tl.load(x + row * 2 * HALF + HALF + place).to(tl.float32)
    c = tl.load(cosines + row * HALF + place)
    s = tl.load(sines + row * HALF + place)
    tl.store(y + row * 2 * HALF + place, first * c - second * s)
    tl.store(y + row * 2 * HALF + HALF + place, second * c + first * s)


@case("rotary")
def rotary(_target, random):
    x = given("bf16", small(random, 8, 128))
    angles = random.uniform(0, 6, (8, 64))
    c, s = given("fp32", np.cos(angles)), given("fp32", np.sin(angles))
    first, second = np.split(exact(x), 2, axis=1)
    y = np.concatenate([first * c.values - second * s.values, second * c.values + first * s.values], axis=1)
    arguments = {"x": x, "cosines": c, "sines": s, "y": wanted("bf16", y, BF16)}
    return Case("rotary", rotary_kernel, [8], arguments, {"HALF": 64}, warps=2)
