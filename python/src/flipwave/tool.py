"""Instrumentation tools: C files with hooks that run in GPU kernels, and the tables that they produce."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .campaign import Campaign
from .errors import UnexpectedOutput, WrongType, WrongValue
from .program import call

if TYPE_CHECKING:
    import numpy
    import pandas

    Program = Campaign | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Incomplete(UserWarning):
    """The table of a tool lacks records, or numbers that could not be counted."""


class Tool:
    """A tool: a C file, or the name of a shipped one such as ``"memory-trace"``.

    ``params`` sets its parameters, ``records`` is the capacity of each stream in records per dispatch, and
    ``kernel`` restricts it to one kernel.
    """

    def __init__(
        self,
        file: str | os.PathLike[str],
        params: Mapping[str, Any] | None = None,
        *,
        records: int | None = None,
        kernel: str | None = None,
    ) -> None:
        self._file = os.fspath(file)
        self._options: list[str] = []
        for name, value in (params or {}).items():
            if isinstance(value, bool):
                value = int(value)
            if not isinstance(value, (int, str)):
                raise WrongType(f"parameter `{name}` of a tool takes an integer or a text, not {value!r}")
            self._options += ["--set", f"{name}={value}"]
        if records is not None:
            if int(records) < 1:
                raise WrongValue(f"a stream needs space for at least one record, not {records}")
            self._options += ["--records", str(int(records))]
        if kernel is not None:
            self._options += ["--kernel", kernel]

    def run(self, program: Program, *, gpu: str | None = None) -> pandas.DataFrame:
        """Runs a program once with the tool in its kernels. Returns the tool's table.

        ``program`` is a :class:`Campaign` or the path of a campaign file, whose faults are ignored, or a list
        with an application and its arguments. ``gpu`` is the target of the application's GPU. Cells that could
        not be counted are missing values; a warning states the reason.
        """
        import pandas

        with self._table(program, gpu) as table:
            if table is None:
                return pandas.DataFrame()
            frame: pandas.DataFrame = pandas.read_csv(table, **_OPTIONS)
            return frame

    def batches(
        self, program: Program, size: int = 1 << 16, *, gpu: str | None = None
    ) -> Iterator[numpy.recarray[Any, Any]]:
        """Like :meth:`run`, but yields numpy record arrays of at most ``size`` rows, for large traces."""
        import pandas

        with self._table(program, gpu) as table:
            if table is None:
                return
            with pandas.read_csv(table, chunksize=size, **_OPTIONS) as chunks:
                for chunk in chunks:
                    yield chunk.to_records(index=False)

    @contextmanager
    def _table(self, program: Program, gpu: str | None) -> Iterator[Path | None]:
        with tempfile.TemporaryDirectory(prefix="flipwave.") as folder:
            table = Path(folder) / "table.csv"
            options = [*self._options, "--out", str(table)]
            if isinstance(program, Campaign):
                with program._file() as (file, _):
                    self._call([self._file, file, *program._options, *options])
            elif isinstance(program, (str, os.PathLike)):
                self._call([self._file, Path(program), *options])
            elif isinstance(program, Sequence) and program:
                if gpu is not None:
                    options += ["--gpu", gpu]
                words = [os.fspath(word) for word in program]
                self._call([self._file, *options, "--", *words])
            else:
                raise WrongType(
                    "a tool runs a Campaign, the path of a campaign file, or a list with an application and its "
                    f"arguments, not {program!r}"
                )
            has_rows = table.exists() and table.stat().st_size > 0
            yield table if has_rows else None

    def _call(self, arguments: Sequence[str | Path]) -> None:
        stderr: list[str] = []

        def watch(lines: list[str]) -> None:
            nonlocal stderr
            stderr = lines

        try:
            call(["tool", *arguments], watch)
        except UnexpectedOutput as error:
            # The table is complete except for what could not be counted.
            if "the table is incomplete" not in str(error):
                raise
            warnings.warn(error.stderr.strip(), Incomplete, stacklevel=5)
            return
        lost = [line.strip() for line in stderr if "records lost" in line]
        if lost:
            warnings.warn("\n".join(lost), Incomplete, stacklevel=5)

    def __repr__(self) -> str:
        return f"Tool({self._file!r})"


#: Options of pandas. A kernel may be named `NA`.
_OPTIONS: dict[str, Any] = {"keep_default_na": False, "na_values": ["", "not counted"], "dtype_backend": "numpy_nullable"}
