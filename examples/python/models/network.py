"""A model as launches of Triton kernels, with a reference in numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy
import triton

import flipwave

HALF = numpy.float16

#: Triton's names of buffer types.
TYPES = {"float16": "*fp16", "float32": "*fp32", "int32": "*i32"}


@dataclass
class Step:
    """One kernel of a model: inputs, output, and a reference in numpy.

    ``inputs`` maps parameters to weights (arrays), to outputs of other steps (names), or to ``None`` for a
    null pointer.
    """

    label: str
    kernel: triton.JITFunction
    grid: tuple[int, ...]
    inputs: dict[str, str | numpy.ndarray | None]
    out: str
    shape: tuple[int, ...]
    constants: dict[str, object]
    reference: Callable[..., numpy.ndarray]
    #: Whether range restriction applies: to all but the last step.
    restrictable: bool = True


@dataclass
class Network:
    """Steps from the model's input, ``given``, to ``logits``."""

    name: str
    given: numpy.ndarray
    steps: list[Step]
    #: Minimum and maximum result of each step for calibration inputs.
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    def activations(self, given: numpy.ndarray) -> dict[str, numpy.ndarray]:
        """Results of all steps for an input, computed with numpy."""
        values = {"given": given}
        for step in self.steps:
            inputs = {
                name: values[source] if isinstance(source, str) else source
                for name, source in step.inputs.items()
            }
            values[step.out] = step.reference(**inputs).astype(HALF)
        return values

    def calibrate(self, given: numpy.ndarray) -> None:
        """Sets the range of each step to that of its results for an input."""
        values = self.activations(given)
        self.ranges = {
            step.out: (float(values[step.out].min()), float(values[step.out].max())) for step in self.steps
        }

    def campaign(
        self, target: str, restricted: bool, faults: dict[str, object], severity: object
    ) -> flipwave.Campaign:
        """A campaign on all kernels, with results restricted to their ranges if ``restricted``."""
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
        for name, source in step.inputs.items():
            if isinstance(source, str):
                arguments[name] = buffers[source]
            else:
                arguments[name] = None if source is None else flipwave.Buffer(f"{step.out}_{name}", source)
        signature = {
            name: "*fp16" if buffer is None else TYPES[buffer.array.dtype.name]
            for name, buffer in arguments.items()
        }
        constants = dict(step.constants)
        if "RESTRICT" in step.kernel.arg_names:
            arguments["low"], arguments["high"] = self.ranges[step.out]
            signature |= {"low": "fp32", "high": "fp32"}
            constants["RESTRICT"] = restricted and step.restrictable
        kernel = flipwave.Kernel.from_triton(step.kernel, signature, constants, target)
        return flipwave.Launch(kernel, step.grid, arguments, label=step.label)


def fit(features: numpy.ndarray, classes: numpy.ndarray, count: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Fits weights and biases of the last layer by least squares: 8 for the right class, 0 for others.

    ``features`` are rows of numbers, ``classes`` their classes out of ``count``.
    """
    rows = numpy.concatenate([features.astype(numpy.float64), numpy.ones((len(features), 1))], axis=1)
    wanted = 8.0 * numpy.eye(count)[classes]
    solved = numpy.linalg.solve(rows.T @ rows + 1e-2 * numpy.eye(rows.shape[1]), rows.T @ wanted)
    return solved[:-1].astype(HALF), solved[-1].astype(numpy.float32)
