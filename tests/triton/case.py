"""Test kernels: a Triton function, its arguments, and its expected results."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from flipwave import Campaign, Kernel
from flipwave.element import ElementType

AMD = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
TARGETS = (*AMD, "sm_80", "sm_90")

# Tolerances between outputs and the results of numpy, in the format of `compare` in a campaign.
EXACT = {"exact": True}
F32 = {"absolute": 1e-5, "relative": 1e-5}
F16 = {"absolute": 2e-3, "relative": 2e-3}
BF16 = {"absolute": 1e-2, "relative": 1e-2}

# Attributes that Triton's launcher derives from an argument: addresses and numbers divisible by 16, and for
# AMD's GPUs buffers below 2 GiB, which allow 32-bit offsets.
DIVISIBLE = {"divisibility": 16}
SMALL_BUFFER = {**DIVISIBLE, "pointer_range": 32}


def supporting(*elements: str) -> Sequence[str]:
    """The targets for which Triton's compiler supports these types."""
    if any(element in ("fp8e4b8", "fp8e5b16") for element in elements):
        return AMD
    if "fp8e4nv" in elements:
        return [target for target in TARGETS if target != "sm_80"]
    return TARGETS


@dataclass(frozen=True)
class Buffer:
    """A pointer argument to elements of one of Triton's types, with the contents before the launch and, for
    an output, the expected contents afterwards."""

    element: str
    values: np.ndarray
    expected: np.ndarray | None = None
    tolerance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scalar:
    """A scalar argument of one of Triton's types."""

    element: str
    value: int | float


def dtype(element: str) -> np.dtype:
    """The numpy type for one of Triton's types."""
    return ElementType.of_triton(element, element).dtype


def given(element: str, values: Any) -> Buffer:
    """An input buffer."""
    return Buffer(element, np.asarray(values).astype(dtype(element)))


def wanted(element: str, values: Any, tolerance: Mapping[str, Any], before: Any = None) -> Buffer:
    """An output buffer with the expected `values` and the initial contents `before` (default: zeros)."""
    expected = np.ascontiguousarray(values).astype(dtype(element))
    start = np.zeros_like(expected) if before is None else np.asarray(before).astype(expected.dtype)
    return Buffer(element, start, expected, tolerance)


@dataclass(frozen=True)
class Case:
    """A kernel with arguments for all of its parameters that are not constants."""

    name: str
    kernel: Any
    grid: Sequence[int]
    arguments: Mapping[str, Buffer | Scalar]
    constants: Mapping[str, Any] = field(default_factory=dict)
    warps: int = 4
    stages: int = 2

    def compiled(self, target: str) -> Kernel:
        """The kernel compiled for a target, as Triton compiles it for a launch."""
        signature = {}
        attributes = {}
        for name, argument in self.arguments.items():
            if isinstance(argument, Buffer):
                signature[name] = "*" + argument.element
                attributes[name] = SMALL_BUFFER if target in AMD else DIVISIBLE
            else:
                signature[name] = argument.element
                if isinstance(argument.value, int) and argument.value % 16 == 0:
                    attributes[name] = DIVISIBLE
        return Kernel.from_triton(
            self.kernel, signature, self.constants, target, self.warps, self.stages, attributes
        )

    def write(self, target: str, folder: Path) -> None:
        """Writes a campaign and all of its files to a folder."""
        outputs = {
            name: argument
            for name, argument in self.arguments.items()
            if isinstance(argument, Buffer) and argument.expected is not None
        }
        campaign = Campaign(
            self.compiled(target),
            self.grid,
            {
                name: argument.values if isinstance(argument, Buffer) else argument.value
                for name, argument in self.arguments.items()
            },
            name=self.name,
            outputs=list(outputs),
            expected={name: output.expected for name, output in outputs.items()},
            compare={name: dict(output.tolerance) for name, output in outputs.items()},
        )
        campaign.to_yaml(folder)


# Creates a case on demand, for a target and with a separate random generator.
Maker = Callable[[str, np.random.Generator], Case]


@dataclass(frozen=True)
class Entry:
    """A case and its supported targets."""

    make: Maker
    targets: Sequence[str]

    def case(self, name: str, target: str) -> Case:
        """The case, which is identical in each call."""
        return self.make(target, np.random.default_rng(zlib.crc32(name.encode())))


CASES: dict[str, Entry] = {}


def case(name: str, targets: Sequence[str] = TARGETS) -> Callable[[Maker], Maker]:
    """Registers a function that creates a case under its name."""

    def file(make: Maker) -> Maker:
        CASES[name] = Entry(make, targets)
        return make

    return file


def small(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Random numbers between -1 and 1."""
    return random.uniform(-1, 1, shape).astype(np.float32)


def exact(buffer: Buffer) -> np.ndarray:
    """Contents of a buffer in double precision."""
    return buffer.values.astype(np.float64)
