"""Tests that campaigns from Python behave like those of the program."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest
import yaml

import flipwave
from flipwave import program

REPOSITORY = Path(__file__).parents[2]


def test_golden_run_computes_the_sum(make_campaign: Any, vectors: dict[str, Any]) -> None:
    total = vectors["x"] + vectors["y"]
    golden = make_campaign(expected={"out": total}).golden()
    assert list(golden) == ["out"]
    numpy.testing.assert_array_equal(golden["out"], total)
    everything = make_campaign().golden(all=True)
    assert sorted(everything) == ["out", "x", "y"]
    numpy.testing.assert_array_equal(everything["x"], vectors["x"])
    with pytest.raises(flipwave.UnexpectedOutput, match="out") as caught:
        make_campaign(expected={"out": total + 1}).golden()
    assert caught.value.exit_code == 1


def test_table_matches_the_csv_file(make_campaign: Any, tmp_path: Path) -> None:
    table = make_campaign(count=300).run(out=tmp_path / "out")
    with (tmp_path / "out" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(table) == 300
    assert list(table.columns) == list(rows[0])
    for name in table.columns:
        for written, value in zip((row[name] for row in rows), table[name], strict=True):
            if pandas.isna(value):
                assert written == ""
            elif name in ("pc", "flip_mask", "before", "after"):
                assert int(written, 16) == value
            elif name in ("weight", "max_abs_error", "max_rel_error"):
                assert float(written) == value
            elif name == "timing_changed":
                assert written == str(value).lower()
            else:
                assert written == str(value), name
    assert table["lane"].dtype == "Int16" and table["flip_mask"].dtype == "UInt64"
    assert list(table["outcome"].cat.categories) == ["masked", "sdc", "due", "detected"]
    assert table.attrs["done"]["sdc"] == (table["outcome"] == "sdc").sum() > 0
    assert table.attrs["results"] == str(tmp_path / "out")


def test_table_depends_on_the_seed_only(make_campaign: Any) -> None:
    first = make_campaign(seed=3).run(workers=1)
    pandas.testing.assert_frame_equal(first, make_campaign(seed=3).run(workers=2))
    assert not first["site"].equals(make_campaign(seed=4).run()["site"])


def test_replay_accepts_index_row_and_site(make_campaign: Any) -> None:
    campaign = make_campaign()
    table = campaign.run()
    row = table[table["outcome"] == "sdc"].iloc[0]
    by_number = campaign.replay(int(row["injection"]))
    assert by_number.equals(campaign.replay(row)) and by_number.equals(campaign.replay(row["site"]))
    for name in ("outcome", "before", "after", "flip_mask", "elements_wrong", "max_abs_error"):
        assert by_number[name] == row[name], name
    with pytest.raises(flipwave.WrongValue, match="0 to 199"):
        campaign.replay(200)


def test_rates_match_the_rows(make_campaign: Any, tmp_path: Path) -> None:
    campaign = make_campaign()
    table = campaign.run()
    counts = table["outcome"].value_counts()
    summary = campaign.summary()
    everything = summary[(summary["scope"] == "all") & summary["cause"].isna()].set_index("outcome")
    assert everything["count"].to_dict() == counts.to_dict()
    by_group = campaign.rates("group").set_index(["value", "outcome"])["count"]
    for (group, outcome), rows in table.groupby(["group", "outcome"], observed=True):
        assert by_group[group, outcome] == len(rows)
    assert "cause" in campaign.rates("group", causes=True)
    with pytest.raises(flipwave.WrongValue, match="opcode"):
        campaign.rates("phase of the moon")
    assert "<html" in campaign.report(tmp_path / "page.html").read_text()


def test_profile_counts_the_fault_space(make_campaign: Any) -> None:
    campaign = make_campaign()
    profile = campaign.profile()
    assert profile["sites"].sum() == campaign.run(count=10).attrs["fault_space"]["sites"]
    assert profile["instruction"].str.contains("v_add_f32").any()


def test_compare_shows_the_effect_of_a_tolerance(make_campaign: Any, tmp_path: Path) -> None:
    a, b = make_campaign(), make_campaign(compare={"out": {"relative": 0.01}})
    first_table, _ = a.run(), b.run()
    everything = flipwave.compare(first_table, b, page=tmp_path / "page.html")
    sdc = everything[(everything["scope"] == "all") & (everything["outcome"] == "sdc")].iloc[0]
    assert sdc["count_a"] > sdc["count_b"], "a tolerance leaves less SDC"
    assert (tmp_path / "page.html").exists()
    same = flipwave.compare(a, a.results)
    assert (same["difference"] == 0).all()


def test_launches_share_the_same_array(add: flipwave.Kernel, vectors: dict[str, Any]) -> None:
    x, y, between, out = vectors["x"], vectors["y"], numpy.zeros(1000, "f4"), numpy.zeros(1000, "f4")
    launches = [
        flipwave.Launch(add, 4, {"x": x, "y": y, "out": between, "n": 1000}, label="first"),
        flipwave.Launch(add, 4, {"x": between, "y": y, "out": out, "n": 1000}, label="second"),
    ]
    campaign = flipwave.Campaign(
        launches=launches, outputs=[out], faults={"model": "flip_one_bit", "count": 100}
    )
    golden = campaign.golden()
    numpy.testing.assert_array_equal(golden["out_1"], (x + y) + y)
    assert set(campaign.run()["label"]) == {"first", "second"}
    # A copy of an array is another buffer.
    launches[1] = flipwave.Launch(add, 4, {"x": between.copy(), "y": y, "out": out, "n": 1000})
    copied = flipwave.Campaign(launches=launches, outputs=[flipwave.Buffer("ignored", out)]).golden()
    numpy.testing.assert_array_equal(copied["out_1"], y)


def test_buffers_may_have_chosen_names(make_campaign: Any, vectors: dict[str, Any]) -> None:
    args = {**vectors, "out": flipwave.Buffer("sum", vectors["out"])}
    assert list(make_campaign(args=args, outputs=["sum"]).golden()) == ["sum"]
    # The name of the parameter is accepted as well.
    assert list(make_campaign(args=args, outputs=["out"]).golden()) == ["sum"]


def test_written_campaign_gives_the_same_results(make_campaign: Any, tmp_path: Path) -> None:
    campaign = make_campaign(seed=5, name="sum", compare={"out": {"relative": 1e-6}})
    path = campaign.to_yaml(tmp_path / "folder")
    assert path == tmp_path / "folder" / "campaign.yaml"
    written = yaml.safe_load(path.read_text())
    assert written["workload"]["kernel"]["grid"] == {"workgroups": [4]}
    # The folder can be moved.
    (tmp_path / "folder").rename(tmp_path / "moved")
    again = flipwave.Campaign.from_yaml(tmp_path / "moved" / "campaign.yaml")
    pandas.testing.assert_frame_equal(campaign.run(), again.run())
    assert again.golden()["out"].shape == (1000,)
    reseeded = flipwave.Campaign.from_yaml(tmp_path / "moved" / "campaign.yaml", seed=6)
    assert not campaign.run()["site"].equals(reseeded.run()["site"])


def test_campaign_files_of_the_repository_run_unchanged() -> None:
    examples = REPOSITORY / "examples" / "campaigns"
    campaign = flipwave.Campaign.from_yaml(examples / "vector_add.yaml")
    assert len(campaign.run(count=50)) == 50
    golden = campaign.golden(all=True)
    numpy.testing.assert_array_equal(golden["sum"], golden["a"] + golden["b"])


def test_kernels_from_source_and_code_objects_run(
    add: flipwave.Kernel, vectors: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "add.hsaco").write_bytes(add.code_object or b"")
    (tmp_path / "add.json").write_text(add.metadata or "")
    again = flipwave.Kernel.from_code_object(
        tmp_path / "add.hsaco", target="gfx90a", metadata=tmp_path / "add.json", signature=add.signature
    )
    compiled, loaded = (
        flipwave.Campaign(kernel, 4, vectors, outputs=["out"], faults={"model": "flip_one_bit", "count": 50})
        for kernel in (add, again)
    )
    pandas.testing.assert_frame_equal(compiled.run(), loaded.run())
    text = """
    #include <hip/hip_runtime.h>
    extern "C" __global__ void twice(float *out, const float *x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) out[i] = 2 * x[i];
    }
    """
    text = text.replace('extern "C"', "template <typename T>").replace("float", "T")
    text += "template __global__ void twice<float>(float *, const float *, int);\n"
    twice = flipwave.Kernel.from_source(text, "twice<float>", options=["-O2"])
    args = {"out": vectors["out"], "x": vectors["x"], "n": numpy.int32(1000)}
    campaign = flipwave.Campaign(twice, 4, args, workgroup=256, outputs=["out"])
    numpy.testing.assert_array_equal(campaign.golden()["out"], 2 * vectors["x"])
    assert campaign.name == "twice_float" and len(campaign.run(count=10)) == 10


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_kernels_run_as_ptx(add: flipwave.Kernel, vectors: dict[str, Any], target: str) -> None:
    kernels = pytest.importorskip("small_kernels")
    kernel = flipwave.Kernel.from_triton(kernels.add, add.signature or {}, {"BLOCK": 256}, target)
    assert b".target " + target.encode() in (kernel.code_object or b"")
    faults = {"model": "flip_one_bit", "count": 100}
    campaign = flipwave.Campaign(kernel, 4, vectors, outputs=["out"], faults=faults)
    numpy.testing.assert_array_equal(campaign.golden()["out"], vectors["x"] + vectors["y"])
    table = campaign.run()
    assert len(table) == 100 and (table["outcome"] == "sdc").any()
    # Lines are those of the Triton function.
    assert table["line"].str.contains("small_kernels.py").any()
    text = """extern "C" __global__ void twice(float *out, const float *x) {
        out[threadIdx.x] = 2 * x[threadIdx.x];
    }"""
    twice = flipwave.Kernel.from_source(text, "twice", target)
    args = {"out": numpy.zeros(64, numpy.float32), "x": vectors["x"][:64]}
    golden = flipwave.Campaign(twice, 1, args, workgroup=64, outputs=["out"]).golden()
    numpy.testing.assert_array_equal(golden["out"], 2 * args["x"])


def test_results_are_replaced_only_with_force(make_campaign: Any, tmp_path: Path) -> None:
    make_campaign(seed=1).run(out=tmp_path)
    with pytest.raises(flipwave.ProgramError, match="--force") as caught:
        make_campaign(seed=2).run(out=tmp_path)
    assert caught.value.exit_code == 2
    assert len(make_campaign(seed=2).run(out=tmp_path, force=True)) == 200


SCRIPT = """
    import sys
    import flipwave
    campaign = flipwave.Campaign.from_yaml(sys.argv[1])
    try:
        campaign.run(out=sys.argv[2], count=100_000_000, progress=False)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["notebook", "terminal"])
def test_ctrl_c_stops_the_program_and_keeps_rows(tmp_path: Path, send: Any) -> None:
    """Checks Ctrl-C from a notebook (to Python), from a terminal (to all processes), and to the program."""
    file = REPOSITORY / "examples" / "campaigns" / "vector_add.yaml"
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(file), str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as python:
        results = tmp_path / "out" / "results.csv"
        while not (results.exists() and results.stat().st_size > 10_000):
            assert python.poll() is None
            time.sleep(0.05)
        send(python.pid, signal.SIGINT)
        try:
            assert python.communicate(timeout=60)[0] == "interrupted\n"
        finally:
            python.kill()
    assert yaml.safe_load((tmp_path / "out" / "run.json").read_text())["status"] == "interrupted"
    assert not (tmp_path / "out" / "flipwave.lock").exists(), "the program has ended"


def test_bar_counts_the_rows(make_campaign: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flipwave import progress

    bars = []

    class Bar:
        def __init__(self, total: int, **_: Any) -> None:
            self.total, self.rows = total, 0
            bars.append(self)

        def update(self, rows: int) -> None:
            self.rows += rows

        def close(self) -> None:
            pass

    tqdm = pytest.importorskip("tqdm.auto")
    monkeypatch.setattr(tqdm, "tqdm", Bar)
    make_campaign(count=5000).run()
    assert [(bar.total, bar.rows) for bar in bars] == [(5000, 5000)]
    make_campaign().run(progress=False)
    assert len(bars) == 1
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert len(make_campaign().run()) == 200, "without tqdm there is no bar"
    assert progress.Bar("x", tmp_path, True)._tqdm is None


def test_parameter_sweep_gives_one_table(tmp_path: Path) -> None:
    kernel = REPOSITORY / "examples" / "campaigns" / "kernels" / "vector_add.cl"
    text = (REPOSITORY / "examples" / "campaigns" / "vector_add.yaml").read_text()
    text = text.replace("kernels/vector_add.cl", str(kernel)).replace("count: 1000", "count: 20")
    (tmp_path / "varied.yaml").write_text(text + "\nvary:\n  seed: [1, 2]\n")
    sweep = flipwave.Campaign.from_yaml(tmp_path / "varied.yaml")
    table = sweep.run()
    assert len(table) == 40 and set(table["seed"]) == {1, 2}
    assert set(sweep.summary()["variant"]) == set(table["variant"])
    variant = flipwave.Campaign.from_yaml(tmp_path / "varied.yaml", variant=table["variant"].iloc[0])
    assert variant.run()["site"].tolist() == table["site"].tolist()[:20]
    assert len(variant.summary()) > 0 and variant.replay(3)["outcome"] == table["outcome"].iloc[3]


def test_program_runs_in_another_process_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the program would receive Ctrl-C twice, and the second one would end it immediately."""
    (tmp_path / "flipwave").write_text(f"#!{sys.executable}\nimport os\nprint(os.getpgrp())\n")
    (tmp_path / "flipwave").chmod(0o755)
    monkeypatch.setenv("FLIPWAVE", str(tmp_path / "flipwave"))
    assert int(program.call([])) != os.getpgrp()


class Tensor:
    """A tensor of another library, which numpy can read."""

    def __init__(self, array: Any, *, copies: bool) -> None:
        self.array = array
        self.copies = copies

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array.copy() if self.copies else self.array


class DeviceTensor:
    """A tensor in the memory of a GPU."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("cannot convert a tensor of the device")


@pytest.mark.parametrize("copies", [False, True])
def test_tensors_that_numpy_can_read_are_accepted(
    make_campaign: Any, vectors: dict[str, Any], copies: bool
) -> None:
    tensors = {
        name: Tensor(value, copies=copies) if name != "n" else value for name, value in vectors.items()
    }
    expected = make_campaign().golden()["out"]
    by_name = make_campaign(args=tensors).golden()["out"]
    by_tensor = make_campaign(args=tensors, outputs=[tensors["out"]]).golden()["out"]
    numpy.testing.assert_array_equal(by_name, expected)
    numpy.testing.assert_array_equal(by_tensor, expected)
    with pytest.raises(flipwave.WrongType, match="`x`.*DeviceTensor.*cannot convert"):
        make_campaign(args={**vectors, "x": DeviceTensor()})


def test_launches_share_a_tensor_that_is_copied_for_each_conversion(
    add: flipwave.Kernel, vectors: dict[str, Any]
) -> None:
    out = Tensor(vectors["out"], copies=True)
    last = numpy.zeros_like(vectors["out"])
    launches = [
        flipwave.Launch(add, 4, {**vectors, "out": out}),
        flipwave.Launch(add, 4, {**vectors, "x": out, "out": last}),
    ]
    golden = flipwave.Campaign(launches=launches, outputs=[last]).golden()
    found = next(iter(golden.values()))
    numpy.testing.assert_array_equal(found, vectors["x"] + vectors["y"] + vectors["y"])


def test_numpy_numbers_are_accepted_everywhere(make_campaign: Any, vectors: dict[str, Any]) -> None:
    plain = make_campaign(count=7, seed=3).run(progress=False, workers=1)
    faults = {"model": "flip_one_bit", "count": numpy.int64(7), "lanes": numpy.arange(64)}
    campaign = make_campaign(
        grid=numpy.int32(4),
        seed=numpy.uint8(3),
        args={**vectors, "n": numpy.int64(1000)},
        faults=faults,
        compare={"out": {"relative": numpy.float64(1e-6)}},
    )
    rows = campaign.run(progress=False, workers=numpy.int64(1), count=numpy.int64(5))
    assert len(rows) == 5 and len(plain) == 7
    assert make_campaign(seed=numpy.int64(3), count=7).run(progress=False)["site"].equals(plain["site"])


def test_repr_of_a_campaign_names_kernels_and_outputs(make_campaign: Any, tmp_path: Path) -> None:
    text = repr(make_campaign(count=5))
    for word in ("'add'", "gfx90a", "['out']", "'count': 5"):
        assert word in text, text
    file = make_campaign().to_yaml(tmp_path)
    assert repr(flipwave.Campaign.from_yaml(file)) == f"Campaign.from_yaml({str(file)!r})"


GROUPED = REPOSITORY / "examples/campaigns/grouped/gemm.hip"


def grouped(**changes: Any) -> tuple[flipwave.Campaign, dict[str, Any]]:
    """Three matrix products in one launch, with tables of pointers and a struct; and what to expect."""
    generator = numpy.random.default_rng(3)
    left = generator.standard_normal((3, 16, 16)).astype(numpy.float32)
    first, second = generator.standard_normal((2, 16, 16)).astype(numpy.float32)
    first, second = first.copy(), second.copy()
    products = [numpy.zeros((16, 16), numpy.float32) for _ in range(3)]
    shape = numpy.array((16, 16, 16, 0.5), "i4,i4,i4,f4")
    args = {
        "left": flipwave.Pointers([left, (left, 1024), (left, 2048)]),
        "right": flipwave.Pointers([first, second, first]),
        "product": flipwave.Pointers(products),
        "shape": shape[()],
        **changes,
    }
    kernel = flipwave.Kernel.from_source(GROUPED, "grouped_gemm")
    campaign = flipwave.Campaign(kernel, (1, 3), args, workgroup=(256, 1), outputs=products)
    return campaign, {"left": left, "right": [first, second, first], "products": products}


def test_tables_of_pointers_and_structs_reach_the_kernel() -> None:
    campaign, data = grouped()
    golden = campaign.golden()
    assert list(golden) == ["product_0", "product_1", "product_2"]
    for index, product in enumerate(golden.values()):
        expected = 0.5 * data["left"][index].astype(float) @ data["right"][index].astype(float)
        numpy.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-5)
    # The same struct as bytes, and a negative control with another factor.
    same, _ = grouped(shape=numpy.int32([16, 16, 16]).tobytes() + numpy.float32(0.5).tobytes())
    other, _ = grouped(shape=numpy.int32([16, 16, 16]).tobytes() + numpy.float32(0.25).tobytes())
    numpy.testing.assert_array_equal(same.golden()["product_1"], golden["product_1"])
    numpy.testing.assert_allclose(2 * other.golden()["product_1"], golden["product_1"], rtol=1e-6)


def test_invalid_tables_and_structs_are_reported(add: flipwave.Kernel, vectors: dict[str, Any]) -> None:
    array = numpy.zeros(4, numpy.float32)
    for wrong, kind, words in [
        (flipwave.Pointers([]), flipwave.WrongType, "list of arrays"),
        (flipwave.Pointers(array), flipwave.WrongType, "list of arrays"),
        (flipwave.Pointers([3]), flipwave.WrongType, r"left`\[0\] is int"),
        (flipwave.Pointers([(array, 17)]), flipwave.WrongValue, "17 bytes; expected 0 to 16"),
        (flipwave.Pointers([(array, 0.5)]), flipwave.WrongType, "0.5"),
    ]:
        with pytest.raises(kind, match=words):
            grouped(left=wrong)
    with pytest.raises(flipwave.WrongValue, match="no bytes"):
        grouped(shape=b"")
    with pytest.raises(flipwave.WrongType, match="`n` is a struct of 4 bytes.*`i32`"):
        flipwave.Campaign(add, 4, {**vectors, "n": b"1234"}, outputs=["out"])
    with pytest.raises(flipwave.ProgramError, match="12 bytes is given, 16 bytes are expected"):
        grouped(shape=bytes(12))[0].golden()


def test_files_of_fault_models_are_relative_to_the_working_directory(
    make_campaign: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = "uint32_t flipwave_fault_word(uint32_t value, flipwave_fault fault) { return value ^ 0x30; }\n"
    (tmp_path / "model.c").write_text(model)
    monkeypatch.chdir(tmp_path)
    for file in ["model.c", Path("model.c")]:
        table = make_campaign(faults={"model": {"c": file}, "groups": ["valu"], "count": 20}).run()
        wide = table[table.location != "scc"]
        assert set(wide.flip_mask) == {0x30}
    with pytest.raises(flipwave.Error, match=r"faults\.model\.c.*none\.c"):
        make_campaign(faults={"model": {"c": "none.c"}, "count": 20}).run()
