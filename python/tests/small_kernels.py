"""Triton kernels. Triton requires their source in a file."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def widen(x, out, COUNT: tl.constexpr):
    at = tl.arange(0, COUNT)
    tl.store(out + at, tl.load(x + at).to(tl.float32))


@triton.jit
def narrow(x, out, COUNT: tl.constexpr):
    at = tl.arange(0, COUNT)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty))


@triton.jit
def scale(x, out, factor, count, COUNT: tl.constexpr):
    at = tl.arange(0, COUNT)
    tl.store(out + at, tl.load(x + at, mask=at < count, other=0.0) * factor)


@triton.jit
def linear(x, w, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(x + rows[:, None] * K + inner[None, :])
    right = tl.load(w + inner[:, None] * N + columns[None, :])
    tl.store(y + rows[:, None] * N + columns[None, :], tl.dot(left, right))


@triton.jit
def broken(x):
    tl.store(x, undefined_name)  # noqa: F821
