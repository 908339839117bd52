"""Checks that the examples of the documentation give the results that it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def outputs(cell: Any) -> list[str]:
    """Text outputs of a cell, without progress output and pictures, which differ between runs."""
    return [
        output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
        for output in cell.get("outputs", [])
        if output.get("name") != "stderr" and "image/png" not in output.get("data", {})
    ]


def figures(cell: Any) -> int:
    return sum("image/png" in output.get("data", {}) for output in cell.get("outputs", []))


def test_notebook_reproduces_its_outputs() -> None:
    pytest.importorskip("triton")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("matplotlib")
    shown = nbformat.read(DOCS / "triton.ipynb", as_version=4)
    run = nbformat.read(DOCS / "triton.ipynb", as_version=4)
    for cell in run.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    nbclient.NotebookClient(run, timeout=300, kernel_name="python3").execute()
    for cell, again in zip(shown.cells, run.cells, strict=True):
        assert outputs(cell) == outputs(again), cell.source
        assert figures(cell) == figures(again), cell.source
    assert sum(map(figures, run.cells)) == 2 and any(map(outputs, run.cells))
    ten_lines = next(cell for cell in run.cells if "from_triton" in cell.source)
    assert figures(ten_lines) == 1


def test_python_page_prints_what_it_shows(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    text = (DOCS / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    # Triton reads the source of kernels from a file.
    (tmp_path / "page.py").write_text("\n".join(blocks))
    for name, content in re.findall(r"^```python file=(\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(content)
    command = [sys.executable, "page.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = "".join(re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    printed = iter(done.stdout.splitlines())
    for line in shown.splitlines():
        assert line in printed, f"`{line}` is not printed (any more):\n{done.stdout}"


def test_table_of_errors_is_complete() -> None:
    import flipwave

    text = (DOCS / "python.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    names = {
        name
        for name in flipwave.__all__
        if isinstance(getattr(flipwave, name), type) and issubclass(getattr(flipwave, name), flipwave.Error)
    }
    assert listed & names == names - {"Error"}
