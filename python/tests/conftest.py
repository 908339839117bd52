"""Kernels and campaigns shared by tests."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import flipwave
from flipwave import program


@pytest.fixture(scope="session", autouse=True)
def binary() -> None:
    """Requires the program, which all of these tests run."""
    try:
        program.find()
    except flipwave.MissingBinary as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def add() -> flipwave.Kernel:
    """A Triton kernel that adds two vectors."""
    kernels = pytest.importorskip("small_kernels", reason="Triton is not installed")
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
    return flipwave.Kernel.from_triton(kernels.add, signature, {"BLOCK": 256})


@pytest.fixture(scope="session")
def vectors() -> dict[str, Any]:
    """Arguments of `add` for four workgroups."""
    generator = numpy.random.default_rng(1)
    x, y = generator.standard_normal((2, 1000)).astype(numpy.float32)
    return {"x": x, "y": y, "out": numpy.zeros_like(x), "n": 1000}


@pytest.fixture
def make_campaign(add: flipwave.Kernel, vectors: dict[str, Any]) -> Any:
    """Creates campaigns on `add` with additional keywords."""

    def make(**keys: Any) -> flipwave.Campaign:
        faults = {"model": "flip_one_bit", "count": keys.pop("count", 200)}
        arguments = {"outputs": ["out"], "faults": faults, **keys}
        grid, args = arguments.pop("grid", 4), arguments.pop("args", vectors)
        return flipwave.Campaign(add, grid, args, **arguments)

    return make
