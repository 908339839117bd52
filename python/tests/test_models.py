"""Tests of the example with two models: results of the kernels, and tables of faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

import flipwave

pytest.importorskip("triton")
EXAMPLE = Path(__file__).parents[2] / "examples" / "python" / "models"

FAULTS = {"model": "flip_one_bit", "count": 60}


@pytest.fixture(scope="module", params=["transformer", "cnn"])
def model(request: pytest.FixtureRequest) -> Any:
    sys.path.insert(0, str(EXAMPLE))
    try:
        return __import__(request.param).build()
    finally:
        sys.path.remove(str(EXAMPLE))


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100"])
def test_kernels_match_numpy(model: Any, target: str) -> None:
    network, accuracy = model
    assert accuracy > 0.85, "the model was not trained"
    plain, restricted = (
        network.campaign(target, is_restricted, FAULTS, None).golden() for is_restricted in (False, True)
    )
    # Without a fault, no number leaves its range.
    assert (plain["logits"] == restricted["logits"]).all()
    reference = network.activations(network.given)["logits"]
    assert (reference.argmax(-1) == plain["logits"].argmax(-1)).mean() > 0.98


def test_golden_run_detects_wrong_weights(model: Any) -> None:
    network, _ = model
    campaign = network.campaign("gfx90a", False, FAULTS, None)
    weight = network.steps[-1].inputs["weight"]
    kept = weight.copy()
    weight *= numpy.float16(1.5)
    try:
        with pytest.raises(flipwave.UnexpectedOutput, match="logits"):
            campaign.golden()
    finally:
        weight[...] = kept


def test_example_writes_tables_by_layer_and_a_figure(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    command = [sys.executable, str(EXAMPLE), "--faults", "200", "--model", "cnn", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "models.md").read_text()
    for row in ("| conv1 |", "| pool2 |", "| buffer_load_ushort |", "| sdc_critical |"):
        assert row in text
    assert "<svg" in (tmp_path / "models.svg").read_text()
    for version in ("plain", "restricted"):
        rows = flipwave.frames.read_results(tmp_path / f"cnn_{version}" / "results")
        assert len(rows) == 200 and rows["label"].notna().all()
        judged = rows["severity"].notna()
        assert (judged == (rows["outcome"] == "sdc")).all()
