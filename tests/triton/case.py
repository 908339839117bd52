"""What a test kernel is: a Triton function, what it is called with, and what must come out."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")

# Element types: the name in a campaign file, what Triton calls it, and numpy's type.
ELEMENTS = {
    "u8": ("u8", np.dtype(np.uint8)),
    "i8": ("i8", np.dtype(np.int8)),
    "i16": ("i16", np.dtype(np.int16)),
    "u16": ("u16", np.dtype(np.uint16)),
    "i32": ("i32", np.dtype(np.int32)),
    "u32": ("u32", np.dtype(np.uint32)),
    "i64": ("i64", np.dtype(np.int64)),
    "f16": ("fp16", np.dtype(np.float16)),
    "bf16": ("bf16", np.dtype(ml_dtypes.bfloat16)),
    "f32": ("fp32", np.dtype(np.float32)),
    "f64": ("fp64", np.dtype(np.float64)),
    "f8e4m3_ocp": ("fp8e4nv", np.dtype(ml_dtypes.float8_e4m3fn)),
    "f8e5m2_ocp": ("fp8e5", np.dtype(ml_dtypes.float8_e5m2)),
    "f8e4m3_fnuz": ("fp8e4b8", np.dtype(ml_dtypes.float8_e4m3fnuz)),
    "f8e5m2_fnuz": ("fp8e5b16", np.dtype(ml_dtypes.float8_e5m2fnuz)),
}

# How far an element of an output may be from what numpy computes, as `compare` of a campaign takes it.
EXACT = {"exact": True}
F32 = {"absolute": 1e-5, "relative": 1e-5}
F16 = {"absolute": 2e-3, "relative": 2e-3}
BF16 = {"absolute": 1e-2, "relative": 1e-2}


@dataclass(frozen=True)
class Buffer:
    """An argument that is a pointer, with what the memory holds before the launch."""

    element: str
    values: np.ndarray
    expected: np.ndarray | None = None
    tolerance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scalar:
    """An argument that is a number."""

    element: str
    value: int | float


def given(element: str, values: Any) -> Buffer:
    """A buffer that the kernel reads."""
    return Buffer(element, np.asarray(values).astype(ELEMENTS[element][1]))


def wanted(element: str, values: Any, tolerance: Mapping[str, Any], before: Any = None) -> Buffer:
    """A buffer that must hold `values` after the launch; `before` it holds zeros if not said."""
    dtype = ELEMENTS[element][1]
    expected = np.asarray(values).astype(dtype)
    start = np.zeros(expected.shape, dtype) if before is None else np.asarray(before).astype(dtype)
    return Buffer(element, start, expected, tolerance)


@dataclass(frozen=True)
class Case:
    """A kernel with arguments for each of its parameters that are no constants, in their order."""

    name: str
    kernel: Any
    grid: Sequence[int]
    arguments: Mapping[str, Buffer | Scalar]
    constants: Mapping[str, Any] = field(default_factory=dict)
    warps: int = 4
    stages: int = 2


# A case is made when it is asked for, of the target and of random numbers that are its own.
Maker = Callable[[str, np.random.Generator], Case]


@dataclass(frozen=True)
class Entry:
    """A case by its name, and the targets that it is for."""

    make: Maker
    targets: Sequence[str]

    def case(self, name: str, target: str) -> Case:
        """The case, the same whenever it is made."""
        return self.make(target, np.random.default_rng(zlib.crc32(name.encode())))


CASES: dict[str, Entry] = {}


def case(name: str, targets: Sequence[str] = TARGETS) -> Callable[[Maker], Maker]:
    """Files a function that makes a case under its name."""

    def file(make: Maker) -> Maker:
        CASES[name] = Entry(make, targets)
        return make

    return file


def small(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers between -1 and 1."""
    return random.uniform(-1, 1, shape).astype(np.float32)


def rounded(element: str, values: Any) -> np.ndarray:
    """The values as the element type holds them, in float64."""
    return np.asarray(values).astype(ELEMENTS[element][1]).astype(np.float64)
