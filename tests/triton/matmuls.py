"""Matrix products, with matrix instructions where the target supports them for the type."""

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from case import BF16, EXACT, F16, Case, Scalar, case, exact, given, small, supporting, wanted


@triton.jit
def matmul_kernel(
    a,
    b,
    c,
    M,
    N,
    K,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUP: tl.constexpr,
    PRECISION: tl.constexpr,
):
    program = tl.program_id(0)
    rows, columns = tl.cdiv(M, ROWS), tl.cdiv(N, COLUMNS)
    width = GROUP * columns
    group = program // width
    size = tl.minimum(rows - group * GROUP, GROUP)
    i = group * GROUP + program % width % size
    j = program % width // size
    row = i * ROWS + tl.arange(0, ROWS)
    column = j * COLUMNS + tl.arange(0, COLUMNS)
    inner = tl.arange(0, DEPTH)
    kind: tl.constexpr = tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    total = tl.zeros([ROWS, COLUMNS], kind)
    for k in range(0, K, DEPTH):
        left = tl.load(
            a + row[:, None] * K + k + inner[None, :], (row[:, None] < M) & (k + inner[None, :] < K), 0.0
        )
        right = tl.load(
            b + (k + inner[:, None]) * N + column[None, :],
            (column[None, :] < N) & (k + inner[:, None] < K),
            0.0,
        )
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=kind)
    mask = (row[:, None] < M) & (column[None, :] < N)
    tl.store(c + row[:, None] * N + column[None, :], total.to(c.dtype.element_ty), mask)


def matmul(
    name,
    element,
    result,
    tolerance,
    size=(64, 64, 64),
    tile=(32, 32, 32),
    precision="ieee",
    targets=None,
    warps=4,
    stages=2,
):
    @case(name, targets or supporting(element))
    def make(_target, random):
        m, n, k = size
        if element == "i8":
            left, right = random.integers(-128, 128, (m, k)), random.integers(-128, 128, (k, n))
        else:
            left, right = small(random, m, k), small(random, k, n)
        a, b = given(element, left), given(element, right)
        c = exact(a) @ exact(b)
        rows, columns, depth = tile
        arguments = {
            "a": a,
            "b": b,
            "c": wanted(result, c, tolerance),
            "M": Scalar("i32", m),
            "N": Scalar("i32", n),
            "K": Scalar("i32", k),
        }
        constants = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "GROUP": 2, "PRECISION": precision}
        grid = [-(-m // rows) * -(-n // columns)]
        return Case(name, matmul_kernel, grid, arguments, constants, warps, stages)


matmul("matmul_f16", "fp16", "fp32", {"absolute": 1e-4})
matmul("matmul_f16_tails", "fp16", "fp16", F16, size=(70, 50, 90), tile=(32, 32, 32))
matmul("matmul_f16_large_tile", "fp16", "fp16", F16, size=(128, 128, 128), tile=(128, 128, 64), warps=8)
matmul(
    "matmul_f16_stages", "fp16", "fp32", {"absolute": 1e-4}, size=(64, 64, 256), tile=(64, 64, 32), stages=3
)
matmul("matmul_f16_1024", "fp16", "fp16", F16, size=(1024, 1024, 1024), tile=(128, 128, 32))
matmul("matmul_bf16", "bf16", "fp32", {"absolute": 1e-4})
matmul("matmul_f32", "fp32", "fp32", {"absolute": 1e-5})
matmul("matmul_f32_one_warp", "fp32", "fp32", {"absolute": 1e-5}, tile=(16, 16, 16), warps=1)
matmul("matmul_bf16x3", "fp32", "fp32", {"absolute": 1e-3}, precision="bf16x3")
matmul("matmul_tf32", "fp32", "fp32", {"absolute": 2e-2}, precision="tf32", targets=["gfx942", "sm_80", "sm_90"])
matmul("matmul_i8", "i8", "i32", EXACT)
matmul("matmul_f8e4m3", "fp8e4nv", "fp32", {"absolute": 1e-4})
matmul("matmul_f8e5m2", "fp8e5", "fp32", {"absolute": 1e-4})
matmul("matmul_f8e4m3_fnuz", "fp8e4b8", "fp32", {"absolute": 1e-4})
matmul("matmul_f8e5m2_fnuz", "fp8e5b16", "fp32", {"absolute": 1e-4})


@triton.jit
def split_matmul_kernel(
    a, b, c, M, N, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, SPLIT: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inner = tl.program_id(2) * DEPTH + tl.arange(0, DEPTH)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for k in range(0, K, DEPTH * SPLIT):
        left = tl.load(a + row[:, None] * K + k + inner[None, :])
        right = tl.load(b + (k + inner[:, None]) * N + column[None, :])
        total = tl.dot(left, right, total)
    tl.atomic_add(c + row[:, None] * N + column[None, :], total)


@case("matmul_split_k")
def split_k(_target, random):
    a, b = given("fp16", small(random, 32, 256)), given("fp16", small(random, 256, 64))
    c = exact(a) @ exact(b)
    arguments = {
        "a": a,
        "b": b,
        "c": wanted("fp32", c, {"absolute": 1e-4}),
        "M": Scalar("i32", 32),
        "N": Scalar("i32", 64),
        "K": Scalar("i32", 256),
    }
    return Case(
        "matmul_split_k",
        split_matmul_kernel,
        [1, 2, 4],
        arguments,
        {"ROWS": 32, "COLUMNS": 32, "DEPTH": 32, "SPLIT": 4},
    )


@triton.jit
def batched_kernel(a, b, bias, c, SIZE: tl.constexpr):
    first = tl.program_id(0) * SIZE * SIZE
    row = tl.arange(0, SIZE)
    place = first + row[:, None] * SIZE + row[None, :]
    total = tl.dot(tl.load(a + place), tl.trans(tl.load(b + place)))
    total += tl.load(bias + row)[None, :]
    tl.store(c + place, tl.maximum(total, 0.0).to(tl.bfloat16))


@case("matmul_batched_bias_relu")
def batched(_target, random):
    a, b, bias = (
        given("bf16", small(random, 4, 32, 32)),
        given("bf16", small(random, 4, 32, 32)),
        given("fp32", small(random, 32)),
    )
    c = np.maximum(exact(a) @ exact(b).transpose(0, 2, 1) + bias.values, 0)
    arguments = {"a": a, "b": b, "bias": bias, "c": wanted("bf16", c, BF16)}
    return Case("matmul_batched_bias_relu", batched_kernel, [4], arguments, {"SIZE": 32}, warps=2)


@triton.jit
def three_dimensional_kernel(a, b, c, BATCH: tl.constexpr, SIZE: tl.constexpr):
    batch, row, column = tl.arange(0, BATCH), tl.arange(0, SIZE), tl.arange(0, SIZE)
    place = batch[:, None, None] * SIZE * SIZE + row[None, :, None] * SIZE + column[None, None, :]
    tl.store(c + place, tl.dot(tl.load(a + place), tl.load(b + place)))


@case("matmul_three_dimensional")
def three_dimensional(_target, random):
    a, b = given("fp16", small(random, 4, 32, 32)), given("fp16", small(random, 4, 32, 32))
    c = exact(a) @ exact(b)
    arguments = {"a": a, "b": b, "c": wanted("fp32", c, {"absolute": 1e-4})}
    return Case(
        "matmul_three_dimensional", three_dimensional_kernel, [1], arguments, {"BATCH": 4, "SIZE": 32}
    )


@triton.jit
def int4_kernel(a, packed, scales, c, N: tl.constexpr, K: tl.constexpr):
    row, column, half = tl.arange(0, 16), tl.arange(0, N), tl.arange(0, K // 2)
    pairs = tl.load(packed + column[:, None] * (K // 2) + half[None, :])
    low = (pairs << 4).to(tl.int8, bitcast=True) >> 4
    high = pairs.to(tl.int8, bitcast=True) >> 4
    weights = tl.interleave(low, high).to(tl.float16)
    left = tl.load(a + row[:, None] * K + tl.arange(0, K)[None, :])
    total = tl.dot(left, tl.trans(weights)) * tl.load(scales + column)[None, :]
    tl.store(c + row[:, None] * N + column[None, :], total)


@case("matmul_int4_weights")
def int4(_target, random):
    a, weights = given("fp16", small(random, 16, 64)), random.integers(-8, 8, (32, 64))
    packed = (weights[:, 0::2] & 15) | (weights[:, 1::2] & 15) << 4
    scales = given("fp32", random.uniform(0.1, 1, 32))
    c = exact(a) @ weights.T * scales.values
    arguments = {
        "a": a,
        "packed": given("u8", packed),
        "scales": scales,
        "c": wanted("fp32", c, {"absolute": 1e-3}),
    }
    return Case("matmul_int4_weights", int4_kernel, [1], arguments, {"N": 32, "K": 64})


@triton.jit
def scaled_kernel(
    a,
    a_scales,
    b,
    b_scales,
    c,
    SIZE: tl.constexpr,
    K: tl.constexpr,
    BYTES: tl.constexpr,
    FORMAT: tl.constexpr,
):
    row, inner, block = tl.arange(0, SIZE), tl.arange(0, BYTES), tl.arange(0, K // 32)
    left = tl.load(a + row[:, None] * BYTES + inner[None, :])
    right = tl.load(b + row[:, None] * BYTES + inner[None, :])
    left_scale = tl.load(a_scales + row[:, None] * (K // 32) + block[None, :])
    right_scale = tl.load(b_scales + row[:, None] * (K // 32) + block[None, :])
    total = tl.dot_scaled(left, left_scale, FORMAT, tl.trans(right), right_scale, FORMAT)
    tl.store(c + row[:, None] * SIZE + row[None, :], total)


def scaled(name, form, packed):
    """A product of blocks of 32 numbers with a common power of two (OCP Microscaling Formats)."""

    @case(name, supporting("u8" if packed else "fp8e4nv"))
    def make(_target, random):
        size, depth = 32, 128
        operands = []
        for _ in range(2):
            scale = random.integers(125, 130, (size, depth // 32))
            if packed:
                codes = random.integers(0, 16, (size, depth))
                values = codes.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
                stored = given("u8", codes[:, 0::2] | codes[:, 1::2] << 4)
            else:
                stored = given("fp8e4nv", small(random, size, depth))
                values = exact(stored)
            operands.append(
                (stored, given("u8", scale), values * np.repeat(2.0 ** (scale - 127.0), 32, axis=1))
            )
        (a, a_scales, left), (b, b_scales, right) = operands
        arguments = {
            "a": a,
            "a_scales": a_scales,
            "b": b,
            "b_scales": b_scales,
            "c": wanted("fp32", left @ right.T, {"absolute": 1e-2, "relative": 1e-4}),
        }
        constants = {"SIZE": size, "K": depth, "BYTES": depth // 2 if packed else depth, "FORMAT": form}
        return Case(name, scaled_kernel, [1], arguments, constants)


scaled("matmul_mxfp8", "e4m3", False)
scaled("matmul_mxfp4", "e2m1", True)


@triton.jit
def gemv_kernel(a, x, y, K, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS, DEPTH], tl.float32)
    for k in range(0, K, DEPTH):
        inner = k + tl.arange(0, DEPTH)
        total += (
            tl.load(a + row[:, None] * K + inner[None, :]).to(tl.float32)
            * tl.load(x + inner).to(tl.float32)[None, :]
        )
    tl.store(y + row, tl.sum(total, axis=1))


@case("matrix_vector")
def gemv(_target, random):
    a, x = given("fp16", small(random, 64, 256)), given("fp16", small(random, 256))
    y = exact(a) @ exact(x)
    return Case(
        "matrix_vector",
        gemv_kernel,
        [4],
        {"a": a, "x": x, "y": wanted("fp32", y, {"absolute": 1e-4}), "K": Scalar("i32", 256)},
        {"ROWS": 16, "DEPTH": 64},
    )
