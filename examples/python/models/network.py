"""A model as launches of Triton kernels, beside the same in numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy
import triton

import flipwave

HALF = numpy.float16

#: How Triton calls the types of buffers.
TYPES = {"float16": "*fp16", "float32": "*fp32", "int32": "*i32"}


@dataclass
class Step:
    """One kernel of a model: what it reads, what it writes, and what numpy computes for it.

    ``inputs`` has weights, which are arrays, what other steps write, by name, and ``None`` for a pointer to
    nothing.
    """

    label: str
    kernel: triton.JITFunction
    grid: tuple[int, ...]
    inputs: dict[str, str | numpy.ndarray | None]
    out: str
    shape: tuple[int, ...]
    constants: dict[str, object]
    reference: Callable[..., numpy.ndarray]
    #: Whether what it writes may be restricted: all but the last step.
    restrictable: bool = True


@dataclass
class Network:
    """Steps from ``given``, the model's input, to ``logits``."""

    name: str
    given: numpy.ndarray
    steps: list[Step]
    #: The smallest and the largest number that each step has written to calibration inputs.
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    def activations(self, given: numpy.ndarray) -> dict[str, numpy.ndarray]:
        """What numpy computes, step by step, for an input."""
        values = {"given": given}
        for step in self.steps:
            inputs = {name: values[one] if isinstance(one, str) else one for name, one in step.inputs.items()}
            values[step.out] = step.reference(**inputs).astype(HALF)
        return values

    def calibrate(self, given: numpy.ndarray) -> None:
        """Notes the range of each step over inputs."""
        values = self.activations(given)
        self.ranges = {
            step.out: (float(values[step.out].min()), float(values[step.out].max())) for step in self.steps
        }

    def campaign(
        self, target: str, restricted: bool, faults: dict[str, object], severity: object
    ) -> flipwave.Campaign:
        """A campaign on all kernels; those of ``restricted`` write nothing outside of their ranges."""
        values = self.activations(self.given)
        arrays = {name: numpy.zeros_like(value, order="C") for name, value in values.items()} | {
            "given": self.given
        }
        buffers = {name: flipwave.Buffer(name, array) for name, array in arrays.items()}
        launches = [self._launch(step, buffers, target, restricted) for step in self.steps]
        return flipwave.Campaign(
            launches=launches,
            outputs=["logits"],
            expected={"logits": values["logits"]},
            compare={"logits": {"absolute": 0.02, "relative": 0.01}},
            faults=faults,
            severity=severity,
            name=f"{self.name}_{'restricted' if restricted else 'plain'}",
            seed=1,
        )

    def _launch(
        self, step: Step, buffers: dict[str, flipwave.Buffer], target: str, restricted: bool
    ) -> flipwave.Launch:
        arguments: dict[str, object] = {"out": buffers[step.out]}
        for name, one in step.inputs.items():
            if isinstance(one, str):
                arguments[name] = buffers[one]
            else:
                arguments[name] = None if one is None else flipwave.Buffer(f"{step.out}_{name}", one)
        signature = {
            name: "*fp16" if one is None else TYPES[one.array.dtype.name] for name, one in arguments.items()
        }
        constants = dict(step.constants)
        if "RESTRICT" in step.kernel.arg_names:
            arguments["low"], arguments["high"] = self.ranges[step.out]
            signature |= {"low": "fp32", "high": "fp32"}
            constants["RESTRICT"] = restricted and step.restrictable
        kernel = flipwave.Kernel.from_triton(step.kernel, signature, constants, target)
        return flipwave.Launch(kernel, step.grid, arguments, label=step.label)


def fit(features: numpy.ndarray, classes: numpy.ndarray, count: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Weights and biases of the last layer by least squares: 8 for the class that is right, 0 for others.

    ``features`` are rows of numbers, ``classes`` what each is, of ``count``.
    """
    rows = numpy.concatenate([features.astype(numpy.float64), numpy.ones((len(features), 1))], axis=1)
    wanted = 8.0 * numpy.eye(count)[classes]
    solved = numpy.linalg.solve(rows.T @ rows + 1e-2 * numpy.eye(rows.shape[1]), rows.T @ wanted)
    return solved[:-1].astype(HALF), solved[-1].astype(numpy.float32)
