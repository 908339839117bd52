"""Scans and sorts."""

import numpy as np
import triton
import triton.language as tl
from case import EXACT, F32, Case, Scalar, case, exact, given, small, wanted


@triton.jit
def cumsum_kernel(x, y, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.cumsum(tl.load(x + place), axis=0, reverse=REVERSE))


def cumsum(name, element, reverse, tolerance):
    @case(name)
    def make(_target, random):
        x = given(
            element, random.integers(-1000, 1000, (4, 512)) if element == "i32" else small(random, 4, 512)
        )
        wide = x.values.astype(np.int64 if element == "i32" else np.float64)
        y = np.cumsum(wide[:, ::-1], axis=1)[:, ::-1] if reverse else np.cumsum(wide, axis=1)
        arguments = {"x": x, "y": wanted(element, y, tolerance)}
        return Case(name, cumsum_kernel, [4], arguments, {"REVERSE": reverse, "BLOCK": 512})


cumsum("cumsum", "fp32", False, {"absolute": 1e-4})
cumsum("cumsum_reverse", "i32", True, EXACT)


@triton.jit
def compose(factor, term, next_factor, next_term):
    return factor * next_factor, next_factor * term + next_term


@triton.jit
def recurrence_kernel(a, b, y, STEPS: tl.constexpr, CHANNELS: tl.constexpr):
    place = tl.arange(0, STEPS)[:, None] * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    _, state = tl.associative_scan((tl.load(a + place), tl.load(b + place)), 0, compose)
    tl.store(y + place, state)


@case("associative_scan")
def recurrence(_target, random):
    a, b = given("fp32", random.uniform(0.5, 1, (128, 8))), given("fp32", small(random, 128, 8))
    state, y = np.zeros(8), []
    for factor, term in zip(exact(a), exact(b)):
        state = factor * state + term
        y.append(state)
    return Case(
        "associative_scan",
        recurrence_kernel,
        [1],
        {"a": a, "b": b, "y": wanted("fp32", np.stack(y), F32)},
        {"STEPS": 128, "CHANNELS": 8},
    )


@triton.jit
def sort_kernel(x, y, BLOCK: tl.constexpr, DESCENDING: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.sort(tl.load(x + place), descending=DESCENDING))


@case("sort")
def sort(_target, random):
    x = given("i32", random.integers(-(2**31), 2**31, (2, 256)))
    return Case(
        "sort",
        sort_kernel,
        [2],
        {"x": x, "y": wanted("i32", np.sort(x.values, axis=1), EXACT)},
        {"BLOCK": 256, "DESCENDING": False},
    )


@case("sort_f16")
def sort_f16(_target, random):
    x = given("fp16", small(random, 2, 128))
    return Case(
        "sort_f16",
        sort_kernel,
        [2],
        {"x": x, "y": wanted("fp16", np.sort(x.values, axis=1)[:, ::-1], EXACT)},
        {"BLOCK": 128, "DESCENDING": True},
        warps=1,
    )


@triton.jit
def top_kernel(x, y, BLOCK: tl.constexpr, COUNT: tl.constexpr):
    row = tl.program_id(0)
    value = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(y + row * COUNT + tl.arange(0, COUNT), tl.topk(value, COUNT))


@case("top_k")
def top(_target, random):
    x = given("fp32", small(random, 4, 256))
    y = np.sort(x.values, axis=1)[:, :-9:-1]
    return Case("top_k", top_kernel, [4], {"x": x, "y": wanted("fp32", y, EXACT)}, {"BLOCK": 256, "COUNT": 8})


@triton.jit
def histogram_kernel(x, y, count, BLOCK: tl.constexpr, BINS: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.histogram(tl.load(x + place, place < count, 0), BINS, place < count)
    tl.atomic_add(y + tl.arange(0, BINS), bins)


@case("histogram")
def histogram(_target, random):
    x = given("i32", random.integers(0, 64, 900))
    arguments = {
        "x": x,
        "y": wanted("i32", np.bincount(x.values, minlength=64), EXACT),
        "count": Scalar("i32", 900),
    }
    return Case("histogram", histogram_kernel, [2], arguments, {"BLOCK": 512, "BINS": 64})


@triton.jit
def flip_kernel(x, y, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(y + place, tl.flip(tl.load(x + place)))


@case("flip")
def flip(_target, random):
    x = given("i16", random.integers(-(2**15), 2**15, 512))
    return Case("flip", flip_kernel, [1], {"x": x, "y": wanted("i16", x.values[::-1], EXACT)}, {"BLOCK": 512})
