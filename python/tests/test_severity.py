"""Judges of severity, in this process and in processes of the program."""

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


def test_a_function_of_this_process_is_asked_about_each_sdc(campaign: Any, vectors: dict[str, Any]) -> None:
    total, asked = vectors["x"] + vectors["y"], []

    def judge(golden: Any, outputs: Any) -> dict[str, Any]:
        numpy.testing.assert_array_equal(golden["out"], total)
        error = float(numpy.nanmax(numpy.abs(outputs["out"] - total)))
        asked.append(error)
        return {"critical": error > 0.5, "measures": {"error": error}}

    table = campaign(severity=judge).run()
    sdc = table[table["outcome"] == "sdc"]
    assert len(asked) >= len(sdc) > 0
    assert table["severity"].notna().sum() == len(sdc)
    errors = flipwave.measures(sdc)["error"]
    finite = numpy.isfinite(sdc["max_abs_error"])
    # What the program has computed of the same outputs.
    numpy.testing.assert_allclose(errors[finite], sdc["max_abs_error"][finite])
    assert ((errors > 0.5) == (sdc["severity"] == "critical")).all()
    assert set(sdc["severity"]) == {"critical", "tolerable"}
    # Another judge says something else of the same faults.
    other = campaign(severity=lambda golden, outputs: False).run()
    assert set(other["severity"].dropna()) == {"tolerable"}
    assert other["site"].equals(table["site"]) and other["measures"].isna().all()


def test_results_do_not_depend_on_how_many_ask(campaign: Any) -> None:
    own = campaign(severity=flipwave.checks.cosine(limit=0.999))
    pandas.testing.assert_frame_equal(own.run(workers=1), own.run(workers=2))
    row = own.run().query("severity == 'critical'").iloc[0]
    again = own.replay(row)
    assert (again["severity"], again["measures"]) == ("critical", row["measures"])


JUDGE = """
import numpy
import beside

def judge(golden, outputs):
    return numpy.abs(outputs["out"] - golden["out"]).max() > beside.LIMIT

def broken(golden, outputs):
    raise ArithmeticError("one too many")

limit = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("LIMIT = 0.5\n")
    (tmp_path / "judge.py").write_text(JUDGE)
    return tmp_path / "judge.py"


def test_a_function_of_a_file_says_the_same(campaign: Any, file: Path, tmp_path: Path) -> None:
    own = campaign(severity=f"{file}:judge")
    in_program = own.run()
    assert {"critical", "tolerable"} <= set(in_program["severity"].dropna())
    in_process = campaign(
        severity=lambda golden, outputs: numpy.abs(outputs["out"] - golden["out"]).max() > 0.5
    ).run()
    assert in_program["severity"].equals(in_process["severity"])
    # It can be written, and runs from the file.
    again = flipwave.Campaign.from_yaml(own.to_yaml(tmp_path / "written"))
    assert again.run()["severity"].equals(in_program["severity"])


def test_a_function_of_this_process_cannot_be_written(campaign: Any, tmp_path: Path) -> None:
    with pytest.raises(flipwave.WrongValue, match="FILE.py:FUNCTION"):
        campaign(severity=lambda golden, outputs: True).to_yaml(tmp_path)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("broken", "ArithmeticError: one too many"),
        ("missing", "has no `missing`"),
        ("limit", "`limit` is int"),
    ],
)
def test_a_file_without_a_judgement_ends_the_campaign(
    campaign: Any, file: Path, function: str, words: str
) -> None:
    with pytest.raises(flipwave.ProgramError, match=words) as caught:
        campaign(severity=f"{file}:{function}").run()
    assert caught.value.exit_code == 2


def test_what_a_judge_raises_is_the_reason(campaign: Any) -> None:
    def judge(golden: Any, outputs: Any) -> bool:
        return bool(outputs["logits"])

    own = campaign(severity=judge)
    with pytest.raises(flipwave.ProgramError, match="KeyError: 'logits'") as caught:
        own.run()
    cause = caught.value.__cause__
    assert isinstance(cause, KeyError) and cause.__traceback__ is not None
    assert (own.results / "run.json").exists()


@pytest.mark.parametrize(
    "said",
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
def test_what_is_no_judgement_is_said_to_be_none(said: Any) -> None:
    with pytest.raises(flipwave.WrongType, match="the judge returned"):
        judgement(said)


def test_judgements_come_in_several_forms() -> None:
    yes = flipwave.Judgement(True)
    assert all(
        judgement(said) == yes
        for said in (True, numpy.True_, numpy.array(True), yes, {"critical": numpy.True_})
    )


def test_numbers_that_json_lacks_arrive(campaign: Any) -> None:
    measures = {"a": math.nan, "b": numpy.float32("-inf"), "c": True, "d": numpy.int64(3), "e": 0.1}
    table = campaign(severity=lambda *_: {"critical": True, "measures": measures}).run()
    assert set(table["measures"].dropna()) == {"a=nan b=-inf c=1 d=3 e=0.1"}
    row = flipwave.measures(table.dropna(subset="measures")).iloc[0]
    assert math.isnan(row["a"]) and row["b"] == -math.inf and row["e"] == 0.1
    with pytest.raises(flipwave.ProgramError, match="`e`.*expected a number"):
        campaign(severity=lambda *_: {"critical": True, "measures": {"e": "many"}}).run()


def test_the_judge_cannot_change_the_run_without_a_fault(campaign: Any) -> None:
    def judge(golden: Any, outputs: Any) -> bool:
        outputs["out"][:] = 0
        golden["out"][:] = 0
        return True

    with pytest.raises(flipwave.ProgramError, match="read-only"):
        campaign(severity=judge).run()


def test_the_judge_of_the_command_line_needs_a_socket(capfd: pytest.CaptureFixture[str]) -> None:
    import subprocess

    for arguments, words in ([], "usage"), (["file.py", "judge"], "not a socket"):
        command = [sys.executable, "-m", "flipwave.severity", *arguments]
        assert subprocess.run(command, stdin=subprocess.DEVNULL).returncode == 2
        assert words in capfd.readouterr().err
