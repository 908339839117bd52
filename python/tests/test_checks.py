"""Tests of the ready-made judges against independent calculations."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy
import pytest

import flipwave
from flipwave import checks


def outputs(*rows: Any, dtype: Any = numpy.float32) -> dict[str, Any]:
    return {"logits": numpy.array(rows, dtype)}


GOLDEN = outputs([0.0, 3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0])


def test_top1_compares_the_largest_of_each_row() -> None:
    judge = checks.top1("logits")
    same = outputs([0.0, 9.0, 2.0, 1.0], [5.0, -4.0, 3.0, 2.0])
    assert judge(GOLDEN, same) == flipwave.Judgement(False, {"top1": 1.0})
    changed = outputs([4.0, 3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0])
    assert judge(GOLDEN, changed) == flipwave.Judgement(True, {"top1": 0.5})
    # A row with a NaN has no largest number, even if the largest number became NaN.
    nan = outputs([0.0, math.nan, 2.0, 1.0], [5.0, math.nan, 3.0, 2.0])
    assert judge(GOLDEN, nan) == flipwave.Judgement(True, {"top1": 0.0})


def test_topk_searches_the_largest_among_the_first() -> None:
    second = outputs([0.0, 1.0, 3.0, 2.0], [5.0, 4.0, 3.0, 2.0])
    third = outputs([0.0, 1.0, 2.0, 3.0], [5.0, 4.0, 3.0, 2.0])
    assert checks.topk(k=2)(GOLDEN, second) == flipwave.Judgement(False, {"top2": 1.0})
    assert checks.topk(k=2)(GOLDEN, third) == flipwave.Judgement(True, {"top2": 0.5})
    with pytest.raises(flipwave.WrongValue, match="1 to 4"):
        checks.topk(k=5)(GOLDEN, GOLDEN)


def test_topk_matches_sorting() -> None:
    generator = numpy.random.default_rng(0)
    for axis in (0, 1, 2, -1, -2):
        for k in (1, 2, 3):
            # Few numbers, so that some are equal.
            golden, faulty = generator.integers(0, 4, (2, 3, 5, 4)).astype(numpy.float64)
            moved = numpy.moveaxis(golden, axis, -1), numpy.moveaxis(faulty, axis, -1)
            right, wrong = (array.reshape(-1, array.shape[-1]) for array in moved)
            first = numpy.argsort(-right, axis=-1, kind="stable")[:, :k]
            rows = [best in row for best, row in zip(wrong.argmax(-1), first, strict=True)]
            result = checks.topk(k=k, axis=axis)({"y": golden}, {"y": faulty})
            assert result == flipwave.Judgement(not all(rows), {f"top{k}": float(numpy.mean(rows))})


def test_cosine_is_that_of_the_angle() -> None:
    right, turned = outputs([1.0, 0.0]), outputs([1.0, 1.0])
    result = checks.cosine(limit=0.7)(right, turned)
    assert not result.critical and result.measures["cosine"] == pytest.approx(math.cos(math.pi / 4))
    assert checks.cosine(limit=0.8)(right, turned).critical
    # Squares of these numbers overflow or underflow.
    far = outputs([1e300, 1e-300], dtype=numpy.float64)
    assert checks.cosine()(far, far).measures["cosine"] == pytest.approx(1)
    for broken in ([math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0]):
        result = checks.cosine()(right, outputs(broken))
        assert result.critical and math.isnan(result.measures["cosine"])


def test_perplexity_uses_the_target_words() -> None:
    logits = numpy.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])
    golden = {"logits": logits + 100}
    judge = checks.perplexity(targets=[0, 2], limit=1.1)
    result = judge(golden, golden)
    assert not result.critical and result.measures["perplexity"] == pytest.approx((0.5 * 0.8) ** -0.5)
    worse = {"logits": numpy.log([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])}
    assert judge(golden, worse).critical
    assert not checks.perplexity(targets=[0, 2], limit=10)(golden, worse).critical
    assert judge(golden, {"logits": numpy.full((2, 3), math.nan)}).critical
    assert judge(golden, {"logits": numpy.array([[-math.inf, 0, 0], [0, 0, 0]])}).critical
    with pytest.raises(flipwave.WrongValue, match="2 rows with 3 targets"):
        checks.perplexity(targets=[0, 1, 2])(golden, golden)


def test_not_finite_counts_new_elements_only() -> None:
    golden = outputs([math.nan, 1.0, 2.0], dtype=ml_dtypes.bfloat16)
    faulty = outputs([math.nan, math.inf, math.nan], dtype=ml_dtypes.bfloat16)
    assert checks.not_finite()(golden, faulty) == flipwave.Judgement(True, {"not_finite": 2})
    assert checks.not_finite("logits")(golden, golden) == flipwave.Judgement(False, {"not_finite": 0})


def test_any_of_combines_judges() -> None:
    two = {"a": numpy.array([1.0, 2.0]), "b": numpy.array([1.0, 2.0])}
    turned = {"a": numpy.array([1.0, 2.0]), "b": numpy.array([2.0, 1.0])}
    judge = checks.any_of(checks.top1("a"), checks.top1("b"), lambda golden, outputs: False)
    assert judge(two, turned) == flipwave.Judgement(True, {"top1": 1.0, "top1_2": 0.0})
    assert not judge(two, two).critical  # type: ignore[union-attr]


def test_unknown_output_is_reported() -> None:
    with pytest.raises(flipwave.UnknownArgument, match="expected one of a, b"):
        checks.top1()({"a": numpy.zeros(2), "b": numpy.zeros(2)}, {"a": numpy.zeros(2), "b": numpy.zeros(2)})
    with pytest.raises(flipwave.UnknownArgument, match="expected one of logits"):
        checks.top1("scores")(GOLDEN, GOLDEN)
