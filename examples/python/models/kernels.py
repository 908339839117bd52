"""Kernels of both models. Numbers are fp16, sums fp32.

Each may restrict its results to the range ``low`` to ``high``, which no fault-free run leaves.
"""

import triton
import triton.language as tl


@triton.jit
def write(place, value, low, high, RESTRICT: tl.constexpr, mask=None):
    if RESTRICT:
        # Minimum and maximum of a NaN and a number are the number.
        value = tl.minimum(tl.maximum(value, low), high)
    tl.store(place, value.to(place.dtype.element_ty), mask=mask)


@triton.jit
def embed(
    words, table, positions, out, low, high, LENGTH: tl.constexpr, WIDTH: tl.constexpr, RESTRICT: tl.constexpr
):
    """Sum of the rows of a word and of its position. One program per word."""
    word = tl.program_id(0)
    channel = tl.arange(0, WIDTH)
    row = tl.load(table + tl.load(words + word) * WIDTH + channel).to(tl.float32)
    row += tl.load(positions + word % LENGTH * WIDTH + channel).to(tl.float32)
    write(out + word * WIDTH + channel, row, low, high, RESTRICT)


@triton.jit
def normalise(x, scale, shift, out, low, high, WIDTH: tl.constexpr, RESTRICT: tl.constexpr):
    """Layer normalisation of a row. One program per row."""
    channel = tl.arange(0, WIDTH)
    row = tl.load(x + tl.program_id(0) * WIDTH + channel).to(tl.float32)
    row -= tl.sum(row) / WIDTH
    row *= tl.rsqrt(tl.sum(row * row) / WIDTH + 1e-5)
    row = row * tl.load(scale + channel) + tl.load(shift + channel)
    write(out + tl.program_id(0) * WIDTH + channel, row, low, high, RESTRICT)


@triton.jit
def linear(
    x, weight, bias, residual, out, low, high, DEPTH: tl.constexpr, WIDTH: tl.constexpr,
    ACTIVATION: tl.constexpr, RESIDUAL: tl.constexpr, RESTRICT: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Matrix product with bias, activation and residual. One program per tile of the result."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, DEPTH, TILE):
        step = start + tl.arange(0, TILE)
        left = tl.load(x + row * DEPTH + step[None, :])
        total = tl.dot(left, tl.load(weight + step[:, None] * WIDTH + column), total)
    total += tl.load(bias + column)
    if ACTIVATION == "relu":
        total = tl.maximum(total, 0.0)
    if ACTIVATION == "gelu":
        # Approximation by the logistic function: D. Hendrycks and K. Gimpel, 2016, section 2.
        total = total / (1.0 + tl.exp(-1.702 * total))
    place = row * WIDTH + column
    if RESIDUAL:
        total += tl.load(residual + place).to(tl.float32)
    write(out + place, total, low, high, RESTRICT)


@triton.jit
def attend(
    qkv, out, low, high, LENGTH: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr, RESTRICT: tl.constexpr
):  # fmt: skip
    """Causal attention. One program per sequence and head."""
    word = tl.program_id(0) * LENGTH + tl.arange(0, LENGTH)
    channel = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    across: tl.constexpr = HEADS * WIDTH
    place = word[:, None] * (3 * across) + channel[None, :]
    query = tl.load(qkv + place)
    key = tl.load(qkv + across + place)
    value = tl.load(qkv + 2 * across + place)
    score = tl.dot(query, tl.trans(key)) * (WIDTH**-0.5)
    score = tl.where(word[:, None] >= word[None, :], score, float("-inf"))
    power = tl.exp(score - tl.max(score, axis=1)[:, None])
    power /= tl.sum(power, axis=1)[:, None]
    result = tl.dot(power.to(tl.float16), value)
    write(out + word[:, None] * across + channel[None, :], result, low, high, RESTRICT)


@triton.jit
def convolve(
    x, weight, bias, out, low, high, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, SIDE: tl.constexpr,
    RESTRICT: tl.constexpr,
):  # fmt: skip
    """3 x 3 convolution of a zero-padded square image, then ReLU. One program per image."""
    pixel = tl.arange(0, SIDE * SIDE)
    channel = tl.arange(0, OUTPUTS)
    total = tl.zeros([OUTPUTS, SIDE * SIDE], tl.float32) + tl.load(bias + channel)[:, None]
    for source in range(INPUTS):
        image = x + (tl.program_id(0) * INPUTS + source) * SIDE * SIDE
        for tap in tl.static_range(9):
            y = pixel // SIDE + tap // 3 - 1
            column = pixel % SIDE + tap % 3 - 1
            inside = (y >= 0) & (y < SIDE) & (column >= 0) & (column < SIDE)
            value = tl.load(image + y * SIDE + column, mask=inside, other=0.0).to(tl.float32)
            factor = tl.load(weight + (channel * INPUTS + source) * 9 + tap).to(tl.float32)
            total += factor[:, None] * value[None, :]
    place = (tl.program_id(0) * OUTPUTS + channel[:, None]) * SIDE * SIDE + pixel[None, :]
    write(out + place, tl.maximum(total, 0.0), low, high, RESTRICT)


@triton.jit
def pool(x, out, SIDE: tl.constexpr):
    """2 x 2 max pooling of an image of ``SIDE`` x ``SIDE`` pixels. One program per image and channel."""
    half: tl.constexpr = SIDE // 2
    pixel = tl.arange(0, half * half)
    corner = x + tl.program_id(0) * SIDE * SIDE + pixel // half * 2 * SIDE + pixel % half * 2
    upper = tl.maximum(tl.load(corner), tl.load(corner + 1))
    lower = tl.maximum(tl.load(corner + SIDE), tl.load(corner + SIDE + 1))
    tl.store(out + tl.program_id(0) * half * half + pixel, tl.maximum(upper, lower))
