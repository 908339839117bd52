"""Tests of judges of severity, in this process and in processes of the program."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

import flipwave
from flipwave.judge import judgement


def test_function_of_this_process_judges_each_sdc(make_campaign: Any, vectors: dict[str, Any]) -> None:
    total, judged = vectors["x"] + vectors["y"], []

    def judge(golden: Any, outputs: Any) -> dict[str, Any]:
        numpy.testing.assert_array_equal(golden["out"], total)
        error = float(numpy.nanmax(numpy.abs(outputs["out"] - total)))
        judged.append(error)
        return {"critical": error > 0.5, "measures": {"error": error}}

    table = make_campaign(severity=judge).run()
    sdc = table[table["outcome"] == "sdc"]
    assert len(judged) >= len(sdc) > 0
    assert table["severity"].notna().sum() == len(sdc)
    errors = flipwave.measures(sdc)["error"]
    finite = numpy.isfinite(sdc["max_abs_error"])
    # Compared with the error that the program computed for the same outputs.
    numpy.testing.assert_allclose(errors[finite], sdc["max_abs_error"][finite])
    assert ((errors > 0.5) == (sdc["severity"] == "critical")).all()
    assert set(sdc["severity"]) == {"critical", "tolerable"}
    # Another judge changes the severity of the same faults.
    tolerant = make_campaign(severity=lambda golden, outputs: False).run()
    assert set(tolerant["severity"].dropna()) == {"tolerable"}
    assert tolerant["site"].equals(table["site"]) and tolerant["measures"].isna().all()


def test_results_do_not_depend_on_the_number_of_workers(make_campaign: Any) -> None:
    campaign = make_campaign(severity=flipwave.checks.cosine(limit=0.999))
    pandas.testing.assert_frame_equal(campaign.run(workers=1), campaign.run(workers=2))
    row = campaign.run().query("severity == 'critical'").iloc[0]
    again = campaign.replay(row)
    assert (again["severity"], again["measures"]) == ("critical", row["measures"])


JUDGE = """
import numpy
import settings

def judge(golden, outputs):
    return numpy.abs(outputs["out"] - golden["out"]).max() > settings.LIMIT

def broken(golden, outputs):
    raise ArithmeticError("one too many")

limit = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "settings.py").write_text("LIMIT = 0.5\n")
    (tmp_path / "judge.py").write_text(JUDGE)
    return tmp_path / "judge.py"


def test_function_of_a_file_matches_function_of_this_process(
    make_campaign: Any, file: Path, tmp_path: Path
) -> None:
    campaign = make_campaign(severity=f"{file}:judge")
    in_program = campaign.run()
    assert {"critical", "tolerable"} <= set(in_program["severity"].dropna())
    in_process = make_campaign(
        severity=lambda golden, outputs: numpy.abs(outputs["out"] - golden["out"]).max() > 0.5
    ).run()
    assert in_program["severity"].equals(in_process["severity"])
    # The campaign can be written to a file and run from there.
    again = flipwave.Campaign.from_yaml(campaign.to_yaml(tmp_path / "written"))
    assert again.run()["severity"].equals(in_program["severity"])


def test_function_of_this_process_cannot_be_written(make_campaign: Any, tmp_path: Path) -> None:
    with pytest.raises(flipwave.WrongValue, match="FILE.py:FUNCTION"):
        make_campaign(severity=lambda golden, outputs: True).to_yaml(tmp_path)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("broken", "ArithmeticError: one too many"),
        ("missing", "has no `missing`"),
        ("limit", "`limit` is int"),
    ],
)
def test_invalid_judge_in_a_file_fails_the_campaign(
    make_campaign: Any, file: Path, function: str, words: str
) -> None:
    with pytest.raises(flipwave.ProgramError, match=words) as caught:
        make_campaign(severity=f"{file}:{function}").run()
    assert caught.value.exit_code == 2


def test_exception_of_a_judge_is_the_cause(make_campaign: Any) -> None:
    def judge(golden: Any, outputs: Any) -> bool:
        return bool(outputs["logits"])

    campaign = make_campaign(severity=judge)
    with pytest.raises(flipwave.ProgramError, match="KeyError: 'logits'") as caught:
        campaign.run()
    cause = caught.value.__cause__
    assert isinstance(cause, KeyError) and cause.__traceback__ is not None
    assert (campaign.results / "run.json").exists()


@pytest.mark.parametrize(
    "result",
    [
        None,
        "critical",
        1.0,
        {"measures": {}},
        {"critical": True, "severity": 1},
        {"critical": 2},
        numpy.zeros(2, bool),
    ],
)
def test_invalid_return_value_is_reported(result: Any) -> None:
    with pytest.raises(flipwave.WrongType, match="the judge returned"):
        judgement(result)


def test_judgement_has_several_forms() -> None:
    yes = flipwave.Judgement(True)
    assert all(
        judgement(result) == yes
        for result in (True, numpy.True_, numpy.array(True), yes, {"critical": numpy.True_})
    )


def test_non_finite_measures_are_kept(make_campaign: Any) -> None:
    measures = {"a": math.nan, "b": numpy.float32("-inf"), "c": True, "d": numpy.int64(3), "e": 0.1}
    table = make_campaign(severity=lambda *_: {"critical": True, "measures": measures}).run()
    assert set(table["measures"].dropna()) == {"a=nan b=-inf c=1 d=3 e=0.1"}
    row = flipwave.measures(table.dropna(subset="measures")).iloc[0]
    assert math.isnan(row["a"]) and row["b"] == -math.inf and row["e"] == 0.1
    with pytest.raises(flipwave.ProgramError, match="`e`.*expected a number"):
        make_campaign(severity=lambda *_: {"critical": True, "measures": {"e": "many"}}).run()


def test_judge_cannot_modify_golden_outputs(make_campaign: Any) -> None:
    def judge(golden: Any, outputs: Any) -> bool:
        outputs["out"][:] = 0
        golden["out"][:] = 0
        return True

    with pytest.raises(flipwave.ProgramError, match="read-only"):
        make_campaign(severity=judge).run()


def test_judge_on_the_command_line_needs_a_socket(capfd: pytest.CaptureFixture[str]) -> None:
    import subprocess

    for arguments, words in ([], "usage"), (["file.py", "judge"], "not a socket"):
        command = [sys.executable, "-m", "flipwave.severity", *arguments]
        assert subprocess.run(command, stdin=subprocess.DEVNULL).returncode == 2
        assert words in capfd.readouterr().err
