"""What a test kernel is: a Triton function, what it is called with, and what must come out."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from flipwave import Campaign, Kernel
from flipwave.element import ElementType

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")

# How far an element of an output may be from what numpy computes, as `compare` of a campaign takes it.
EXACT = {"exact": True}
F32 = {"absolute": 1e-5, "relative": 1e-5}
F16 = {"absolute": 2e-3, "relative": 2e-3}
BF16 = {"absolute": 1e-2, "relative": 1e-2}

# What Triton's launcher finds out of an argument: addresses and numbers that 16 divides, and buffers
# below 2 GiB, to which offsets have 32 bits.
SMALL_BUFFER = {"divisibility": 16, "pointer_range": 32}
DIVISIBLE = {"divisibility": 16}


@dataclass(frozen=True)
class Buffer:
    """An argument that is a pointer to elements of one of Triton's types, with what the memory holds
    before the launch, and of an output what it must hold afterwards."""

    element: str
    values: np.ndarray
    expected: np.ndarray | None = None
    tolerance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scalar:
    """An argument that is a number of one of Triton's types."""

    element: str
    value: int | float


def dtype(element: str) -> np.dtype:
    """What numpy has for one of Triton's types."""
    return ElementType.of_triton(element, element).dtype


def given(element: str, values: Any) -> Buffer:
    """A buffer that the kernel reads."""
    return Buffer(element, np.asarray(values).astype(dtype(element)))


def wanted(element: str, values: Any, tolerance: Mapping[str, Any], before: Any = None) -> Buffer:
    """A buffer that must hold `values` after the launch; `before` it holds zeros if not said."""
    expected = np.ascontiguousarray(values).astype(dtype(element))
    start = np.zeros_like(expected) if before is None else np.asarray(before).astype(expected.dtype)
    return Buffer(element, start, expected, tolerance)


@dataclass(frozen=True)
class Case:
    """A kernel with arguments for each of its parameters that are no constants."""

    name: str
    kernel: Any
    grid: Sequence[int]
    arguments: Mapping[str, Buffer | Scalar]
    constants: Mapping[str, Any] = field(default_factory=dict)
    warps: int = 4
    stages: int = 2

    def compiled(self, target: str) -> Kernel:
        """The kernel for a target, as Triton compiles it where it is launched."""
        signature = {}
        attributes = {}
        for name, argument in self.arguments.items():
            if isinstance(argument, Buffer):
                signature[name] = "*" + argument.element
                attributes[name] = SMALL_BUFFER
            else:
                signature[name] = argument.element
                if isinstance(argument.value, int) and argument.value % 16 == 0:
                    attributes[name] = DIVISIBLE
        return Kernel.from_triton(
            self.kernel, signature, self.constants, target, self.warps, self.stages, attributes
        )

    def write(self, target: str, folder: Path) -> None:
        """Writes a campaign to a folder, with all files that it names."""
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


# A case is made when it is asked for, of the target and of random numbers that are its own.
Maker = Callable[[str, np.random.Generator], Case]


@dataclass(frozen=True)
class Entry:
    """How a case is made, and the targets that it is for."""

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


def exact(buffer: Buffer) -> np.ndarray:
    """What a buffer holds, in double precision."""
    return buffer.values.astype(np.float64)
