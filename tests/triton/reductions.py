"""Reductions."""

import numpy as np
import triton
import triton.language as tl
from case import EXACT, F32, Case, Scalar, case, exact, given, small, wanted


@triton.jit
def softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + place, place < columns, float("-inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row * columns + place, power / tl.sum(power, axis=0), place < columns)


@triton.jit
def online_softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    highest = float("-inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + place, place < columns, float("-inf"))
        higher = tl.maximum(highest, tl.max(value, axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(value - higher), axis=0)
        highest = higher
    for start in range(0, columns, BLOCK):
        place = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + place, place < columns)
        tl.store(y + row * columns + place, tl.exp(value - highest) / total, place < columns)


def softmax(name, kernel, block):
    @case(name)
    def make(_target, random):
        x = given("fp32", 5 * small(random, 8, 300))
        power = np.exp(exact(x))
        y = power / power.sum(axis=1, keepdims=True)
        arguments = {"x": x, "y": wanted("fp32", y, {"relative": 1e-5}), "columns": Scalar("i32", 300)}
        return Case(name, kernel, [8], arguments, {"BLOCK": block})


softmax("softmax", softmax_kernel, 512)
softmax("online_softmax", online_softmax_kernel, 128)


@triton.jit
def column_sum_kernel(x, y, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    across = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([COLUMNS], tl.float32)
    for start in range(0, rows, ROWS):
        down = start + tl.arange(0, ROWS)
        mask = (down[:, None] < rows) & (across[None, :] < columns)
        total += tl.sum(tl.load(x + down[:, None] * columns + across[None, :], mask, 0.0), axis=0)
    tl.store(y + across, total, across < columns)


@case("column_sum")
def column_sum(_target, random):
    x = given("fp32", small(random, 100, 150))
    y = wanted("fp32", x.values.sum(axis=0, dtype=np.float64), F32)
    arguments = {"x": x, "y": y, "rows": Scalar("i32", 100), "columns": Scalar("i32", 150)}
    return Case("column_sum", column_sum_kernel, [3], arguments, {"ROWS": 32, "COLUMNS": 64})


@triton.jit
def argmax_kernel(x, places, values, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + place, place < columns, float("-inf"))
    highest, where = tl.max(value, axis=0, return_indices=True)
    tl.store(places + row, where)
    tl.store(values + row, highest)


@case("argmax")
def argmax(_target, random):
    x = given("fp32", small(random, 8, 500))
    arguments = {
        "x": x,
        "places": wanted("i32", x.values.argmax(axis=1), EXACT),
        "values": wanted("fp32", x.values.max(axis=1), EXACT),
        "columns": Scalar("i32", 500),
    }
    return Case("argmax", argmax_kernel, [8], arguments, {"BLOCK": 512})


@triton.jit
def welford(mean, squares, count, other_mean, other_squares, other_count):
    total = count + other_count
    difference = other_mean - mean
    share = tl.where(total == 0, 0.0, other_count / total)
    return mean + difference * share, squares + other_squares + difference * difference * count * share, total


@triton.jit
def variance_kernel(x, means, variances, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + place, place < columns, 0.0)
    count = tl.where(place < columns, 1.0, 0.0)
    mean, squares, total = tl.reduce((value, tl.zeros_like(value), count), 0, welford)
    tl.store(means + row, mean)
    tl.store(variances + row, squares / total)


@case("variance")
def variance(_target, random):
    x = given("fp32", small(random, 8, 400))
    precise = exact(x)
    arguments = {
        "x": x,
        "means": wanted("fp32", precise.mean(axis=1), F32),
        "variances": wanted("fp32", precise.var(axis=1), F32),
        "columns": Scalar("i32", 400),
    }
    return Case("variance", variance_kernel, [8], arguments, {"BLOCK": 512})


@triton.jit
def cross_entropy_kernel(logits, targets, losses, gradient, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    value = tl.load(logits + row * columns + place, place < columns, float("-inf")).to(tl.float32)
    target = tl.load(targets + row)
    highest = tl.max(value, axis=0)
    power = tl.exp(value - highest)
    total = tl.sum(power, axis=0)
    tl.store(losses + row, tl.log(total) + highest - tl.load(logits + row * columns + target).to(tl.float32))
    slope = power / total - tl.where(place == target, 1.0, 0.0)
    tl.store(gradient + row * columns + place, slope, place < columns)


@case("cross_entropy")
def cross_entropy(_target, random):
    logits = given("fp16", 4 * small(random, 8, 250))
    targets = given("i64", random.integers(0, 250, 8))
    precise = exact(logits)
    power = np.exp(precise)
    total = power.sum(axis=1)
    rows = np.arange(8)
    gradient = power / total[:, None]
    gradient[rows, targets.values] -= 1
    arguments = {
        "logits": logits,
        "targets": targets,
        "losses": wanted("fp32", np.log(total) - precise[rows, targets.values], F32),
        "gradient": wanted("fp32", gradient, F32),
        "columns": Scalar("i32", 250),
    }
    return Case("cross_entropy", cross_entropy_kernel, [8], arguments, {"BLOCK": 256})


@triton.jit
def xor_kernel(x, y, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    value = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(y + row, tl.xor_sum(value, axis=0))


@case("xor_sum")
def xor_sum(_target, random):
    x = given("i32", random.integers(-(2**31), 2**31, (4, 1024)))
    arguments = {"x": x, "y": wanted("i32", np.bitwise_xor.reduce(x.values, axis=1), EXACT)}
    return Case("xor_sum", xor_kernel, [4], arguments, {"BLOCK": 1024})
