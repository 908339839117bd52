"""Each mistake raises one exception, which states the problem, its location, and what is expected."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import pandas
import pytest

import flipwave
from flipwave import program, values


def expect(kind: type[Exception], *words: str) -> Any:
    """Expects an exception whose text contains all words."""
    pattern = "".join(f"(?=[\\s\\S]*{word})" for word in words)
    return pytest.raises(kind, match=pattern)


ZEROS = numpy.zeros(1000, numpy.float32)
ARGUMENTS = [
    (
        {"x": ZEROS.astype(numpy.float64)},
        flipwave.WrongType,
        ["`x`", "float64", r"\*fp32", r"astype\(numpy.float32"],
    ),
    ({"x": ZEROS.astype(ml_dtypes.bfloat16)}, flipwave.WrongType, ["`x`", "bfloat16", "float32"]),
    ({"x": ZEROS.astype(complex)}, flipwave.WrongType, ["`x`", "complex128", "no type"]),
    ({"x": ZEROS.astype(">f4")}, flipwave.WrongType, ["`x`", ">f4"]),
    ({"x": ZEROS.tolist()}, flipwave.WrongType, ["`x`", "list", "numpy array"]),
    ({"x": 3.0}, flipwave.WrongType, ["`x`", "float", "numpy array"]),
    (
        {"x": numpy.zeros((1000, 2), "f4")[:, 0]},
        flipwave.WrongValue,
        ["`x`", "contiguous", "ascontiguousarray"],
    ),
    ({"n": ZEROS}, flipwave.WrongType, ["`n`", "array", "`i32`"]),
    ({"n": 1.5}, flipwave.WrongType, ["`n`", "1.5", "whole number"]),
    ({"n": float("nan")}, flipwave.WrongType, ["`n`", "nan", "whole number"]),
    ({"n": numpy.float32("inf")}, flipwave.WrongType, ["`n`", "inf", "whole number"]),
    ({"n": numpy.complex64(1j)}, flipwave.WrongType, ["`n`", "complex64", "number"]),
    ({"n": numpy.str_("7")}, flipwave.WrongType, ["`n`", "str_", "number"]),
    ({"x": numpy.ma.masked_array(ZEROS, ZEROS == 0)}, flipwave.WrongType, ["`x`", "mask", r"\.filled"]),
    ({"x": ZEROS[:0]}, flipwave.WrongValue, ["`x`", "no elements"]),
    ({"x": flipwave.Buffer(3, ZEROS)}, flipwave.WrongType, ["`x`", "buffer name", "int"]),  # type: ignore[arg-type]
    ({"n": 2**31}, flipwave.WrongValue, ["`n`", "2147483648", "-2147483648 to 2147483647"]),
    ({"n": "1000"}, flipwave.WrongType, ["`n`", "str", "number"]),
    ({"n": None}, flipwave.WrongType, ["`n`", "None", "i32"]),
    ({"BLOCK": 256}, flipwave.UnknownArgument, ["`BLOCK`", "constant", "x, y, out, n"]),
    ({"z": ZEROS}, flipwave.UnknownArgument, ["`z`", "x, y, out, n"]),
    ({"x": flipwave.Buffer("a/b", ZEROS)}, flipwave.WrongValue, ["a/b", "letters"]),
    (
        {"x": flipwave.Buffer("y", ZEROS), "y": flipwave.Buffer("y", ZEROS + 1)},
        flipwave.WrongValue,
        ["`y`", "another array"],
    ),
    (
        {"x": flipwave.Buffer("a", ZEROS), "y": flipwave.Buffer("b", ZEROS)},
        flipwave.WrongValue,
        ["`b`", "already has the name `a`"],
    ),
]


@pytest.mark.parametrize(("wrong", "kind", "words"), ARGUMENTS)
def test_invalid_argument_is_reported(
    make_campaign: Any, vectors: dict[str, Any], wrong: Any, kind: Any, words: Any
) -> None:
    with expect(kind, "launch 0, kernel `add`", *words):
        make_campaign(args={**vectors, **wrong})


def test_missing_argument_is_reported(make_campaign: Any, vectors: dict[str, Any]) -> None:
    for name in vectors:
        words = ("launch 0, kernel `add`", f"`{name}`", "None for a null pointer")
        with expect(flipwave.MissingArgument, *words):
            make_campaign(args={key: value for key, value in vectors.items() if key != name})
    assert make_campaign() is not None


CAMPAIGNS = [
    ({"outputs": []}, flipwave.MissingArgument, ["outputs", "x, y, out"]),
    ({"outputs": ["sum"]}, flipwave.UnknownArgument, ["outputs", "`sum`", "x, y, out"]),
    ({"outputs": [ZEROS]}, flipwave.UnknownArgument, ["outputs", "no launch"]),
    ({"outputs": 3}, flipwave.WrongType, ["outputs", "int"]),
    ({"grid": 0}, flipwave.WrongValue, ["grid", "from 1"]),
    ({"grid": (1, 1, 1, 1)}, flipwave.WrongValue, ["grid", "one to three"]),
    ({"grid": "many"}, flipwave.WrongType, ["grid", "many"]),
    ({"args": [1, 2]}, flipwave.WrongType, ["args", "list", "dict"]),
    ({"expected": {"out": ZEROS[:10]}}, flipwave.WrongValue, ["expected", "`out`", r"\(10,\)", r"\(1000,\)"]),
    (
        {"expected": {"out": ZEROS.astype("f8")}},
        flipwave.WrongType,
        ["expected", "float64", r"astype\(numpy.float32"],
    ),
    ({"expected": {"out": [0.0]}}, flipwave.WrongType, ["expected", "list"]),
    ({"expected": {"x": ZEROS}}, flipwave.WrongValue, ["`x`", "outputs"]),
    ({"expected": {"sum": ZEROS}}, flipwave.UnknownArgument, ["`sum`", "x, y, out"]),
    ({"severity": "judge.py"}, flipwave.WrongType, ["severity", "FILE.py:FUNCTION"]),
    ({"grid": 1.5}, flipwave.WrongType, ["grid", "1.5"]),
    ({"grid": float("nan")}, flipwave.WrongType, ["grid", "nan"]),
    ({"seed": "one"}, flipwave.WrongType, ["seed", "'one'", "whole number"]),
    ({"faults": 3}, flipwave.WrongType, ["faults", "int", "dict"]),
    ({"faults": {"model": object()}}, flipwave.WrongType, [r"faults\.model", "object"]),
    ({"faults": {3: 4}}, flipwave.WrongType, ["faults", "key 3"]),
    ({"compare": ["out"]}, flipwave.WrongType, ["compare", "list", "dict"]),
    ({"expected": [ZEROS]}, flipwave.WrongType, ["expected", "list", "dict"]),
    ({"allow": {1, 2}}, flipwave.WrongType, ["allow", "set"]),
]


@pytest.mark.parametrize(("wrong", "kind", "words"), CAMPAIGNS)
def test_invalid_campaign_is_reported(make_campaign: Any, wrong: Any, kind: Any, words: Any) -> None:
    with expect(kind, *words):
        make_campaign(**wrong)


def test_invalid_launches_are_reported(add: flipwave.Kernel, vectors: dict[str, Any]) -> None:
    with expect(flipwave.WrongType, "NoneType", "Kernel.from_triton"):
        flipwave.Campaign(outputs=["out"])
    with expect(flipwave.MissingArgument, "no launch"):
        flipwave.Campaign(launches=[], outputs=["out"])
    for wrong in (3, "add", flipwave.Launch(add, 4, vectors)):
        with expect(flipwave.WrongType, "launches", type(wrong).__name__, "list"):
            flipwave.Campaign(launches=wrong, outputs=["out"])  # type: ignore[arg-type]
    with expect(flipwave.WrongType, r"launches\[0\]", "3", "Launch"):
        flipwave.Campaign(launches=[3], outputs=["out"])  # type: ignore[list-item]
    with expect(flipwave.WrongType, "both"):
        flipwave.Campaign(add, 4, vectors, launches=[flipwave.Launch(add, 4, vectors)], outputs=["out"])
    with expect(flipwave.MissingArgument, "`add`", "grid"):
        flipwave.Campaign(add, outputs=["out"])
    # A part of another launch's array cannot be a buffer.
    x = vectors["x"]
    launches = [flipwave.Launch(add, 4, vectors), flipwave.Launch(add, 1, {**vectors, "x": x[10:]})]
    with expect(flipwave.WrongValue, "launch 1", "`x`", "overlaps", "copy"):
        flipwave.Campaign(launches=launches, outputs=["out"])
    half = flipwave.Kernel.from_code_object(b"", "half", "gfx90a", {}, {"x": "*fp16"})
    with expect(flipwave.WrongType, "launch 1, kernel `half`", "`x`", "float32", "float16"):
        flipwave.Campaign(launches=[launches[0], flipwave.Launch(half, 1, {"x": x})], outputs=["out"])
    launches[1] = flipwave.Launch(add, 4, {**vectors, "out": x.copy()})
    with expect(flipwave.WrongValue, "`out`", "out, out_1", "flipwave.Buffer"):
        flipwave.Campaign(launches=launches, outputs=["out"])
    other = flipwave.Kernel.from_code_object(b"", "add", "gfx942", {"name": "add"}, add.signature)
    with expect(flipwave.WrongValue, "gfx90a, gfx942"):
        flipwave.Campaign(launches=[launches[0], flipwave.Launch(other, 4, vectors)], outputs=["x"])


def test_invalid_kernels_are_reported(tmp_path: Path) -> None:
    kernels = pytest.importorskip("small_kernels")
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
    compile = flipwave.Kernel.from_triton
    with expect(flipwave.WrongType, "triton.jit"):
        compile(lambda x: x, signature)
    with expect(flipwave.UnknownArgument, "`z`", "x, y, out, n, BLOCK"):
        compile(kernels.add, {**signature, "z": "i32"}, {"BLOCK": 4})
    with expect(flipwave.MissingArgument, "`BLOCK`", "constants"):
        compile(kernels.add, signature)
    with expect(flipwave.WrongValue, "`n`", "one of them"):
        compile(kernels.add, signature, {"BLOCK": 4, "n": 4})
    with expect(flipwave.UnknownArgument, "attributes", "`BLOCK`"):
        compile(kernels.add, signature, {"BLOCK": 4}, attributes={"BLOCK": {"divisibility": 16}})
    with expect(flipwave.MissingArgument, "name"):
        flipwave.Kernel.from_code_object(b"")
    with expect(flipwave.WrongValue, "nothing.cl"):
        flipwave.Kernel.from_source("nothing.cl", "x")
    with expect(flipwave.WrongType, "`float32`", "`fp32`", "`x`"):
        compile(kernels.add, {**signature, "x": "*float32"}, {"BLOCK": 4})
    with expect(flipwave.WrongType, "float32", "fp32"):
        flipwave.Kernel.from_code_object(b"", "add", signature={"x": "*float32"})
    with expect(flipwave.WrongType, "signature", "`x`", "3"):
        flipwave.Kernel.from_code_object(b"", "add", signature={"x": 3})  # type: ignore[dict-item]
    with expect(flipwave.WrongType, "signature", "list"):
        flipwave.Kernel.from_code_object(b"", "add", signature=["*fp32"])  # type: ignore[arg-type]
    for target in ("gfx9999", "sm_8", "gfx90"):
        with expect(flipwave.WrongValue, target, "gfx90a, "):
            compile(kernels.add, signature, {"BLOCK": 4}, target)
        with expect(flipwave.WrongValue, target, "gfx90a, "):
            flipwave.Kernel.from_code_object(b"", "add", target)
    with expect(flipwave.WrongType, "target", "int"):
        flipwave.Kernel.from_code_object(b"", "add", 90)  # type: ignore[arg-type]
    with expect(flipwave.WrongValue, "nothing.hsaco", "No such file"):
        flipwave.Kernel.from_code_object(tmp_path / "nothing.hsaco", "add")
    (tmp_path / "metadata.json").write_text("{")
    with expect(flipwave.WrongValue, "metadata.json", "JSON"):
        flipwave.Kernel.from_code_object(b"", metadata=tmp_path / "metadata.json")
    (tmp_path / "metadata.json").write_text("[]")
    with expect(flipwave.WrongType, "metadata.json", "list", "dict"):
        flipwave.Kernel.from_code_object(b"", metadata=tmp_path / "metadata.json")
    with expect(flipwave.WrongType, "source", "int"):
        flipwave.Kernel.from_source(3, "x")  # type: ignore[arg-type]
    with expect(flipwave.WrongType, "name", "NoneType"):
        flipwave.Kernel.from_source("kernel void f() {}\n", None)  # type: ignore[arg-type]
    with expect(flipwave.WrongType, "options", "-O3", "list"):
        flipwave.Kernel.from_source("kernel void f() {}\n", "f", options="-O3")
    with expect(flipwave.WrongValue, "`broken`", "does not compile"):
        compile(kernels.broken, {"x": "*fp32"})


def test_attributes_select_the_compiled_code() -> None:
    kernels = pytest.importorskip("small_kernels")
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
    pointers = {name: {"divisibility": 16, "pointer_range": 32} for name in ("x", "y", "out")}
    default, explicit, without, with_number = (
        flipwave.Kernel.from_triton(kernels.add, signature, {"BLOCK": 1024}, attributes=attributes)
        for attributes in (None, pointers, {}, {**pointers, "n": {"divisibility": 16}})
    )
    assert default.code_object == explicit.code_object
    assert len({kernel.code_object for kernel in (default, without, with_number)}) == 3


def test_kernel_without_signature_needs_sized_numbers() -> None:
    kernel = flipwave.Kernel.from_source("kernel void f(global float *x, int n) { x[0] = n; }\n", "f")
    x = numpy.zeros(64, numpy.float32)
    with expect(flipwave.WrongType, "`n`", "3", "numpy.int32"):
        flipwave.Campaign(kernel, 1, {"x": x, "n": 3}, workgroup=64, outputs=["x"])
    with expect(flipwave.MissingArgument, "workgroup", "256"):
        flipwave.Campaign(kernel, 1, {"x": x, "n": numpy.int32(3)}, outputs=["x"])
    campaign = flipwave.Campaign(kernel, 1, {"x": x, "n": numpy.int32(3)}, workgroup=64, outputs=["x"])
    assert campaign.golden()["x"][0] == 3


def test_results_need_a_run(make_campaign: Any) -> None:
    campaign = make_campaign()
    for ask in (
        campaign.summary,
        campaign.rates,
        campaign.report,
        lambda: campaign.replay(0),
        lambda: flipwave.compare(campaign, campaign),
    ):
        with expect(flipwave.NoResults, "`add`", r"\.run\(\)"):
            ask()


def test_known_targets_are_those_of_the_program(tmp_path: Path) -> None:
    file = tmp_path / "campaign.yaml"
    keys = "workload: {kernel: {source: a.cl, name: a, grid: 1, workgroup: 1}}"
    for target in (*values.TARGETS, "gfx0", "gfx90a:xnack-"):
        file.write_text(f"name: a\ntarget: {target}\n{keys}\n")
        with pytest.raises(flipwave.ProgramError) as caught:
            flipwave.Campaign.from_yaml(file).golden()
        # The source is missing, but the target is accepted.
        assert ("is not a known" in caught.value.text) == (target == "gfx0"), target


def test_invalid_paths_and_numbers_of_methods_are_reported(make_campaign: Any) -> None:
    campaign = make_campaign(count=5)
    for call in (
        lambda: campaign.run(out=3),
        lambda: campaign.run(workers="two"),
        lambda: campaign.run(count=1.5),
        lambda: campaign.to_yaml(None),
        lambda: flipwave.Campaign.from_yaml(3),
        lambda: flipwave.Campaign.from_yaml("a.yaml", seed="x"),
        lambda: flipwave.Campaign.from_yaml("a.yaml", variant=2),
    ):
        with pytest.raises(flipwave.WrongType, match="expected a"):
            call()
    with expect(flipwave.WrongValue, "compare", "table"):
        flipwave.compare(3, campaign)
    with expect(flipwave.WrongValue, "measures"):
        flipwave.measures(pandas.DataFrame({"x": [1]}))


def test_files_named_in_errors_exist(make_campaign: Any, tmp_path: Path) -> None:
    """Campaigns are written to temporary files; the error names one that the user can open."""
    with pytest.raises(flipwave.ProgramError) as caught:
        make_campaign(faults={"model": "flip_one_bot", "count": 1}).run()
    file, line, column = caught.value.text.split(": ")[0].split(":")
    assert "flip_one_bot" in Path(file).read_text().splitlines()[int(line) - 1][int(column) - 1 :]
    assert file in caught.value.stderr
    # A kernel that does not compile.
    source = "kernel void f(global float *x) {\n    x[0] = y;\n}\n"
    kernel = flipwave.Kernel.from_source(source, "f")
    x = numpy.zeros(64, numpy.float32)
    with pytest.raises(flipwave.ProgramError) as caught:
        flipwave.Campaign(kernel, 1, {"x": x}, workgroup=64, outputs=["x"]).golden()
    found = re.search(r"(/\S+\.cl) does not compile", caught.value.text)
    assert found is not None and Path(found.group(1)).read_text() == source, caught.value.text


def test_program_errors_are_raised(make_campaign: Any, tmp_path: Path) -> None:
    with expect(flipwave.ProgramError, "campaign.yaml:", "flip_one_bot", "flip_one_bit") as caught:
        make_campaign(faults={"model": "flip_one_bot", "count": 1}).run()
    assert caught.value.exit_code == 2 and caught.value.text in str(caught.value)
    with expect(flipwave.ProgramError, "unknown key `sede`"):
        make_campaign(sede=3).run()
    with expect(flipwave.ProgramError, "nothing.yaml"):
        flipwave.Campaign.from_yaml(tmp_path / "nothing.yaml").run()


def test_missing_triton_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with expect(flipwave.MissingTriton, "pip install triton", "from_code_object"):
        flipwave.Kernel.from_triton(None, {})


def test_program_is_found_in_order_of_precedence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make_campaign: Any
) -> None:
    campaign = make_campaign()
    monkeypatch.setenv("FLIPWAVE", str(tmp_path / "nothing"))
    with expect(flipwave.MissingBinary, "FLIPWAVE", "nothing"):
        campaign.golden()
    monkeypatch.delenv("FLIPWAVE")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(program, "__file__", str(tmp_path / "a" / "b" / "c" / "program.py"))
    with expect(flipwave.MissingBinary, "PATH", "cargo build"):
        campaign.golden()
    # All places are searched; later ones in this list take precedence.
    places = [tmp_path / "target" / "release", tmp_path / "path", tmp_path / "scripts", tmp_path / "variable"]
    monkeypatch.setattr(program, "__file__", str(tmp_path / "python" / "src" / "flipwave" / "program.py"))
    monkeypatch.setenv("PATH", str(places[1]))
    monkeypatch.setattr(sys, "executable", str(places[2] / "python"))
    for place in places:
        place.mkdir(parents=True)
        (place / "flipwave").write_text("#!/bin/sh\n")
        (place / "flipwave").chmod(0o755)
        if place.name == "variable":
            monkeypatch.setenv("FLIPWAVE", str(place / "flipwave"))
        assert program.find() == place / "flipwave"


def test_all_exceptions_derive_from_error() -> None:
    kinds = [getattr(flipwave, name) for name in flipwave.__all__]
    errors = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
    exceptions = [kind for kind in errors if not issubclass(kind, Warning)]
    assert len(exceptions) == 10 and all(issubclass(kind, flipwave.Error) for kind in exceptions)
    assert issubclass(flipwave.WrongType, TypeError) and issubclass(flipwave.WrongValue, ValueError)
