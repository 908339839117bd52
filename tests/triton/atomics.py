"""Atomics: programs that change the same memory."""

import numpy as np
import triton
import triton.language as tl
from case import EXACT, F32, Case, case, exact, given, small, wanted


@triton.jit
def add_kernel(x, bins, y, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + tl.load(bins + place), tl.load(x + place))


def addition(name, element, tolerance):
    @case(name)
    def make(_target, random):
        x = given(element, random.integers(-1000, 1000, 512) if element[0] == "i" else small(random, 512))
        bins = given("i32", random.integers(0, 32, 512))
        y = np.zeros(32, np.int64 if element[0] == "i" else np.float64)
        np.add.at(y, bins.values, x.values.astype(y.dtype))
        return Case(
            name, add_kernel, [2], {"x": x, "bins": bins, "y": wanted(element, y, tolerance)}, {"BLOCK": 256}
        )


addition("atomic_add_f32", "fp32", F32)
addition("atomic_add_i32", "i32", EXACT)
addition("atomic_add_i64", "i64", EXACT)
addition("atomic_add_f16", "fp16", {"absolute": 2e-2})
addition("atomic_add_f64", "fp64", {"absolute": 1e-12})


@triton.jit
def extremes_kernel(x, y, floats, highest, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place)
    tl.atomic_max(y + place % 8, value)
    tl.atomic_min(y + 8 + place % 8, value)
    tl.atomic_and(y + 16 + place % 8, value)
    tl.atomic_or(y + 24 + place % 8, value)
    tl.atomic_xor(y + 32 + place % 8, value)
    tl.atomic_max(highest + place % 8, tl.load(floats + place))


@case("atomic_max_min_bits")
def extremes(_target, random):
    x, floats = given("i32", random.integers(-(2**31), 2**31, 512)), given("fp32", small(random, 512))
    columns = x.values.reshape(-1, 8)
    before = np.zeros((5, 8), np.int32)
    before[2] = -1
    y = [np.maximum(columns.max(axis=0), 0), np.minimum(columns.min(axis=0), 0)]
    y += [operation.reduce(columns) for operation in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)]
    highest = np.maximum(floats.values.reshape(-1, 8).max(axis=0), 0)
    arguments = {
        "x": x,
        "y": wanted("i32", np.stack(y), EXACT, before),
        "floats": floats,
        "highest": wanted("fp32", highest, EXACT),
    }
    return Case("atomic_max_min_bits", extremes_kernel, [2], arguments, {"BLOCK": 256})


@triton.jit
def lock_kernel(x, lock, y, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * BLOCK + place)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(y + place, tl.load(y + place) + value)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@case("atomic_cas_lock")
def lock(_target, random):
    x = given("i32", random.integers(-1000, 1000, (6, 128)))
    arguments = {"x": x, "lock": wanted("i32", [0], EXACT), "y": wanted("i32", x.values.sum(axis=0), EXACT)}
    return Case("atomic_cas_lock", lock_kernel, [6], arguments, {"BLOCK": 128}, warps=2)


@triton.jit
def last_kernel(x, partial, counter, y, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    value = tl.load(x + program * BLOCK + tl.arange(0, BLOCK))
    tl.store(partial + program, tl.sum(value, axis=0))
    tl.debug_barrier()
    if tl.atomic_add(counter, 1) == PROGRAMS - 1:
        tl.store(y, tl.sum(tl.load(partial + tl.arange(0, PROGRAMS)), axis=0))


@case("reduce_in_last_program")
def last(_target, random):
    x = given("fp32", small(random, 8, 256))
    precise = exact(x)
    arguments = {
        "x": x,
        "partial": wanted("fp32", precise.sum(axis=1), F32),
        "counter": wanted("i32", [8], EXACT),
        "y": wanted("fp32", [precise.sum()], {"absolute": 1e-4}),
    }
    return Case("reduce_in_last_program", last_kernel, [8], arguments, {"PROGRAMS": 8, "BLOCK": 256})
