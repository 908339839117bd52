"""Gathers, transposes, scatters, interleaving, and control flow."""

import numpy as np
import triton
import triton.language as tl
from case import EXACT, F32, Case, Scalar, case, exact, given, small, wanted


@triton.jit
def embedding_kernel(tokens, table, y, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    token = tl.load(tokens + row)
    place = tl.arange(0, WIDTH)
    tl.store(y + row * WIDTH + place, tl.load(table + token * WIDTH + place))


@case("embedding")
def embedding(_target, random):
    tokens, table = given("i64", random.integers(0, 40, 16)), given("bf16", small(random, 40, 128))
    return Case(
        "embedding",
        embedding_kernel,
        [16],
        {"tokens": tokens, "table": table, "y": wanted("bf16", table.values[tokens.values], EXACT)},
        {"WIDTH": 128},
        warps=1,
    )


@triton.jit
def gather_kernel(x, places, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    place = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(y + place, tl.gather(tl.load(x + place), tl.load(places + place), 1))


@case("gather")
def gather(_target, random):
    x, places = given("fp32", small(random, 8, 64)), given("i32", random.integers(0, 64, (8, 64)))
    y = np.take_along_axis(x.values, places.values, axis=1)
    return Case(
        "gather",
        gather_kernel,
        [1],
        {"x": x, "places": places, "y": wanted("fp32", y, EXACT)},
        {"ROWS": 8, "COLUMNS": 64},
    )


@triton.jit
def transpose_kernel(x, y, rows, columns, TILE: tl.constexpr):
    down = tl.program_id(0) * TILE + tl.arange(0, TILE)
    across = tl.program_id(1) * TILE + tl.arange(0, TILE)
    value = tl.load(
        x + down[:, None] * columns + across[None, :], (down[:, None] < rows) & (across[None, :] < columns)
    )
    tl.store(
        y + across[:, None] * rows + down[None, :],
        tl.trans(value),
        (across[:, None] < columns) & (down[None, :] < rows),
    )


def transpose(name, element):
    @case(name)
    def make(_target, random):
        x = given(element, 100 * small(random, 70, 50))
        arguments = {
            "x": x,
            "y": wanted(element, x.values.T, EXACT),
            "rows": Scalar("i32", 70),
            "columns": Scalar("i32", 50),
        }
        return Case(name, transpose_kernel, [3, 2], arguments, {"TILE": 32})


transpose("transpose", "fp32")
transpose("transpose_f16", "fp16")
transpose("transpose_i8", "i8")


@triton.jit
def scatter_kernel(x, places, y, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    across = tl.arange(0, WIDTH)
    tl.store(y + tl.load(places + row) * WIDTH + across, tl.load(x + row * WIDTH + across))


@case("scatter")
def scatter(_target, random):
    x, places = given("u8", random.integers(0, 256, (16, 64))), given("i32", random.permutation(16))
    y = np.zeros_like(x.values)
    y[places.values] = x.values
    return Case(
        "scatter",
        scatter_kernel,
        [16],
        {"x": x, "places": places, "y": wanted("u8", y, EXACT)},
        {"WIDTH": 64},
        warps=1,
    )


@triton.jit
def interleave_kernel(left, right, y, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(y + tl.arange(0, 2 * BLOCK), tl.interleave(tl.load(left + place), tl.load(right + place)))


@case("interleave")
def interleave(_target, random):
    left, right = given("fp16", small(random, 256)), given("fp16", small(random, 256))
    y = np.stack([left.values, right.values], axis=1).reshape(-1)
    return Case(
        "interleave",
        interleave_kernel,
        [1],
        {"left": left, "right": right, "y": wanted("fp16", y, EXACT)},
        {"BLOCK": 256},
    )


@triton.jit
def where_found_kernel(x, y, count, limit):
    place = tl.program_id(0)
    steps = 0
    value = tl.load(x + place)
    while (value != 1) & (steps < limit):
        value = tl.where(value % 2 == 0, value // 2, 3 * value + 1)
        steps += 1
    tl.store(y + place, steps)


@case("collatz")
def collatz(_target, random):
    x = given("i32", random.integers(1, 100, 8))
    steps = []
    for value in x.values.tolist():
        count = 0
        while value != 1:
            value, count = (value // 2 if value % 2 == 0 else 3 * value + 1), count + 1
        steps.append(count)
    arguments = {
        "x": x,
        "y": wanted("i32", steps, EXACT),
        "count": Scalar("i32", 8),
        "limit": Scalar("i32", 1000),
    }
    return Case("collatz", where_found_kernel, [8], arguments, warps=1)


@triton.jit(noinline=True)
def polynomial(x):
    return ((0.25 * x - 0.5) * x + 1.5) * x


@triton.jit
def called_kernel(x, y):
    program = tl.program_id(0)
    tl.store(y + program, polynomial(polynomial(tl.load(x + program))))


@case("function_call")
def called(_target, random):
    x = given("fp32", small(random, 16))

    def polynomial(value):
        return ((0.25 * value - 0.5) * value + 1.5) * value

    y = polynomial(polynomial(exact(x)))
    return Case("function_call", called_kernel, [16], {"x": x, "y": wanted("fp32", y, F32)}, warps=1)
