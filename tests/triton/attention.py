"""Flash attention: softmax of scores times values, without scores in memory."""

import numpy as np
import triton
import triton.language as tl
from case import BF16, F16, Case, Scalar, case, exact, given, small, wanted


@triton.jit
def attention_kernel(
    q,
    k,
    v,
    o,
    length,
    scale,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    first = tl.program_id(0) * ROWS
    head = tl.program_id(1) * length * WIDTH
    row = first + tl.arange(0, ROWS)
    inner = tl.arange(0, WIDTH)
    query = tl.load(q + head + row[:, None] * WIDTH + inner[None, :])
    highest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    result = tl.zeros([ROWS, WIDTH], tl.float32)
    end = first + ROWS if CAUSAL else length
    for start in range(0, end, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        key = tl.load(k + head + column[None, :] * WIDTH + inner[:, None])
        score = tl.dot(query, key) * (scale * 1.4426950408889634)
        if CAUSAL:
            score = tl.where(row[:, None] >= column[None, :], score, float("-inf"))
        higher = tl.maximum(highest, tl.max(score, axis=1))
        power = tl.exp2(score - higher[:, None])
        factor = tl.exp2(highest - higher)
        total = total * factor + tl.sum(power, axis=1)
        value = tl.load(v + head + column[:, None] * WIDTH + inner[None, :])
        result = tl.dot(power.to(value.dtype), value, result * factor[:, None])
        highest = higher
    tl.store(
        o + head + row[:, None] * WIDTH + inner[None, :], (result / total[:, None]).to(o.dtype.element_ty)
    )


def reference(q, k, v, scale, causal):
    score = q @ k.swapaxes(-1, -2) * scale
    if causal:
        score = np.where(np.tri(*score.shape[-2:]), score, -np.inf)
    power = np.exp(score - score.max(axis=-1, keepdims=True))
    return power / power.sum(axis=-1, keepdims=True) @ v


def attention(name, element, tolerance, causal, heads=2, length=64, width=32, tile=(32, 32), warps=4):
    @case(name)
    def make(_target, random):
        q, k, v = (given(element, small(random, heads, length, width)) for _ in range(3))
        scale = width**-0.5
        o = reference(*(exact(each) for each in (q, k, v)), scale, causal)
        arguments = {
            "q": q,
            "k": k,
            "v": v,
            "o": wanted(element, o, tolerance),
            "length": Scalar("i32", length),
            "scale": Scalar("fp32", scale),
        }
        constants = {"ROWS": tile[0], "COLUMNS": tile[1], "WIDTH": width, "CAUSAL": causal}
        return Case(name, attention_kernel, [length // tile[0], heads], arguments, constants, warps)


attention("attention_causal", "fp16", F16, True)
attention("attention_full", "fp16", F16, False)
attention("attention_4_x_1024", "fp16", F16, True, heads=4, length=1024, width=64, tile=(128, 64))
attention("attention_bf16", "bf16", BF16, True, width=64)


@triton.jit
def decode_kernel(q, keys, values, pages, o, length, scale, PAGE: tl.constexpr, WIDTH: tl.constexpr):
    head = tl.program_id(0)
    inner = tl.arange(0, WIDTH)
    query = tl.load(q + head * WIDTH + inner).to(tl.float32) * scale
    highest = float("-inf")
    total = 0.0
    result = tl.zeros([WIDTH], tl.float32)
    for start in range(0, length, PAGE):
        page = tl.load(pages + start // PAGE)
        row = page * PAGE + tl.arange(0, PAGE)
        mask = start + tl.arange(0, PAGE) < length
        place = (row[:, None] * 2 + head) * WIDTH + inner[None, :]
        key = tl.load(keys + place, mask[:, None], 0.0).to(tl.float32)
        score = tl.where(mask, tl.sum(key * query[None, :], axis=1), float("-inf"))
        higher = tl.maximum(highest, tl.max(score, axis=0))
        power = tl.exp(score - higher)
        factor = tl.exp(highest - higher)
        total = total * factor + tl.sum(power, axis=0)
        value = tl.load(values + place, mask[:, None], 0.0).to(tl.float32)
        result = result * factor + tl.sum(power[:, None] * value, axis=0)
        highest = higher
    tl.store(o + head * WIDTH + inner, (result / total).to(tl.float16))


@case("attention_paged_decode")
def decode(_target, random):
    page, count, width, length = 16, 6, 64, 83
    q = given("fp16", small(random, 2, width))
    keys, values = (given("fp16", small(random, count, page, 2, width)) for _ in range(2))
    pages = given("i32", random.permutation(count))
    key, value = (
        exact(each)[pages.values].reshape(-1, 2, width)[:length].swapaxes(0, 1) for each in (keys, values)
    )
    o = reference(exact(q)[:, None, :], key, value, 0.125, False)[:, 0]
    arguments = {
        "q": q,
        "keys": keys,
        "values": values,
        "pages": pages,
        "o": wanted("fp16", o, F16),
        "length": Scalar("i32", length),
        "scale": Scalar("fp32", 0.125),
    }
    return Case("attention_paged_decode", decode_kernel, [2], arguments, {"PAGE": page, "WIDTH": width})
