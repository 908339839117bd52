"""Ready-made judges of severity.

Each function returns a judge for ``Campaign(severity=...)``. ``output`` is the name of the output to check;
it may be omitted if there is only one.

>>> import numpy
>>> golden = {"logits": numpy.array([[0.1, 0.7, 0.2]])}
>>> faulty = {"logits": numpy.array([[0.9, 0.7, 0.2]])}
>>> top1("logits")(golden, faulty)
Judgement(critical=True, measures={'top1': 0.0})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from .element import Array
from .errors import UnknownArgument, WrongValue
from .judge import Judge, Judgement, judgement

Outputs = Mapping[str, Array]


def top1(output: str | None = None, axis: int = -1) -> Judge:
    """Critical if, in any row, the position of the largest number along ``axis`` differs or there is a NaN.

    The measure ``top1`` is the fraction of rows in which the position is the same.
    """
    return topk(output, 1, axis)


def topk(output: str | None = None, k: int = 5, axis: int = -1) -> Judge:
    """Critical if, in any row, the largest number of the faulty run is not among the ``k`` largest of the
    golden run: SDC-k of G. Li et al., SC 2017.

    The measure ``topk``, for example ``top5``, is the fraction of rows in which it is among them.
    """

    def judge(golden: Outputs, outputs: Outputs) -> Judgement:
        right, wrong = _numbers(golden, output), _numbers(outputs, output)
        if not 1 <= k <= right.shape[axis]:
            raise WrongValue(
                f"checks: k is {k}; expected 1 to {right.shape[axis]}, the numbers along the axis"
            )
        best = numpy.expand_dims(numpy.argmax(wrong, axis), axis)
        value = numpy.take_along_axis(right, best, axis)
        # Among equal numbers, the first counts as the largest, as in argmax.
        places = numpy.expand_dims(
            numpy.arange(right.shape[axis]), tuple(range(1, right.ndim - axis % right.ndim))
        )
        ahead = (right > value) | ((right == value) & (places < best))
        same = (ahead.sum(axis) < k) & ~numpy.isnan(wrong).any(axis)
        return Judgement(not same.all(), {f"top{k}": float(same.mean())})

    return judge


def cosine(output: str | None = None, limit: float = 0.99) -> Judge:
    """Critical if the cosine of the angle between the outputs is less than ``limit``, or not a number.

    The measure is ``cosine``.
    """

    def judge(golden: Outputs, outputs: Outputs) -> Judgement:
        right, wrong = _numbers(golden, output).ravel(), _numbers(outputs, output).ravel()
        with numpy.errstate(all="ignore"):
            # Scale both vectors, so that no square overflows or underflows.
            right, wrong = (vector / numpy.abs(vector).max(initial=0) for vector in (right, wrong))
            value = float(right @ wrong / numpy.sqrt((right @ right) * (wrong @ wrong)))
        return Judgement(not value >= limit, {"cosine": value})

    return judge


def perplexity(output: str | None = None, *, targets: Any, limit: float = 1.1) -> Judge:
    """Critical if the perplexity is more than ``limit`` times that of the golden run, or not finite.

    The output contains logits, with the vocabulary along its last axis; ``targets`` are the correct words,
    one per row. The measure is ``perplexity``.
    """
    words = numpy.asarray(targets).ravel()

    def perplexity_of(outputs: Outputs) -> float:
        logits = _numbers(outputs, output)
        logits = logits.reshape(-1, logits.shape[-1])
        if len(words) != len(logits):
            raise WrongValue(
                f"checks: perplexity of {len(logits)} rows with {len(words)} targets; expected as many"
            )
        with numpy.errstate(all="ignore"):
            logits = logits - logits.max(-1, keepdims=True)
            likely = logits[numpy.arange(len(words)), words] - numpy.log(numpy.exp(logits).sum(-1))
            return float(numpy.exp(-likely.mean()))

    def judge(golden: Outputs, outputs: Outputs) -> Judgement:
        value = perplexity_of(outputs)
        is_close = numpy.isfinite(value) and value <= limit * perplexity_of(golden)
        return Judgement(not is_close, {"perplexity": value})

    return judge


def not_finite(output: str | None = None) -> Judge:
    """Critical if an element that is finite in the golden run is NaN or infinite, in ``output`` or, by
    default, in any output.

    The measure ``not_finite`` is the number of these elements.
    """

    def judge(golden: Outputs, outputs: Outputs) -> Judgement:
        names = outputs if output is None else [output]
        count = sum(
            int((~numpy.isfinite(_numbers(outputs, name)) & numpy.isfinite(_numbers(golden, name))).sum())
            for name in names
        )
        return Judgement(count > 0, {"not_finite": count})

    return judge


def any_of(*judges: Judge) -> Judge:
    """Critical if any of the judges says so.

    The result has the measures of all judges. A name that occurs again gets a number, for example
    ``cosine_2``.
    """

    def judge(golden: Outputs, outputs: Outputs) -> Judgement:
        judgements = [judgement(member(golden, outputs)) for member in judges]
        measures: dict[str, float] = {}
        for number, verdict in enumerate(judgements, 1):
            for name, value in verdict.measures.items():
                measures[name if name not in measures else f"{name}_{number}"] = value
        return Judgement(any(verdict.critical for verdict in judgements), measures)

    return judge


def _numbers(outputs: Outputs, name: str | None) -> Array:
    """Converts an output to double precision."""
    if name is None and len(outputs) == 1:
        name = next(iter(outputs))
    if name is None or name not in outputs:
        raise UnknownArgument(f"checks: the output is {name}; expected one of {', '.join(outputs)}")
    return outputs[name].astype(numpy.float64)
