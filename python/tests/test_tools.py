"""Instrumentation tools: tables, batches, parameters and errors."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

import flipwave

ROOT = Path(__file__).parents[2]
VECTOR_ADD = ROOT / "examples" / "campaigns" / "vector_add.yaml"


def test_table_of_a_shipped_tool_has_numbers() -> None:
    table = flipwave.Tool("opcode-histogram").run(VECTOR_ADD)
    assert list(table.columns) == ["dispatch", "kernel", "operation", "executions"]
    counts = table.set_index("operation")["executions"]
    assert counts["global_load_dword"] == 2 * counts["global_store_dword"] > 0
    assert counts["s_endpgm"] == 64


def test_batches_have_all_rows_of_the_table() -> None:
    tool = flipwave.Tool(ROOT / "examples" / "tools" / "memory_trace.c", records=128)
    table = tool.run(VECTOR_ADD)
    batches = list(tool.batches(VECTOR_ADD, 1000))
    assert all(len(batch) <= 1000 for batch in batches) and len(batches) > 2
    addresses = numpy.concatenate([batch["address"].astype("uint64") for batch in batches])
    assert sorted(addresses) == sorted(table["address"].astype("uint64"))
    assert table["lane"].isna().any() and table["lane"].notna().any()


def test_parameters_are_passed_to_the_tool(tmp_path: Path) -> None:
    narrow = flipwave.Tool("memory-efficiency", {"line": 64}).run(VECTOR_ADD)
    wide = flipwave.Tool("memory-efficiency", {"line": 4096}).run(VECTOR_ADD)
    assert narrow["transferred_bytes"].sum() < wide["transferred_bytes"].sum()
    assert (narrow["efficiency"] <= 1).all()


def test_campaign_of_this_process_can_be_instrumented(make_campaign: object) -> None:
    table = flipwave.Tool("thread-count").run(make_campaign())  # type: ignore[operator]
    assert table["lanes"].sum() > table["waves"].sum() > 0


def test_wrong_tools_are_errors(tmp_path: Path) -> None:
    with pytest.raises(flipwave.ProgramError, match="unknown tool `no-tool`"):
        flipwave.Tool("no-tool").run(VECTOR_ADD)
    with pytest.raises(flipwave.ProgramError, match="unknown parameter `size`"):
        flipwave.Tool("memory-efficiency", {"size": 64}).run(VECTOR_ADD)
    with pytest.raises(flipwave.WrongType, match="takes an integer or a text"):
        flipwave.Tool("memory-efficiency", {"line": 1.5})
    with pytest.raises(flipwave.WrongValue, match="at least one record"):
        flipwave.Tool("memory-trace", records=0)
    with pytest.raises(flipwave.WrongType, match="an application and its arguments"):
        flipwave.Tool("memory-trace").run(7)  # type: ignore[arg-type]
    wrong = tmp_path / "wrong.c"
    wrong.write_text("#include <flipwave.h>\nint nothing\n")
    with pytest.raises(flipwave.ProgramError, match=r"wrong.c:"):
        flipwave.Tool(wrong).run(VECTOR_ADD)
