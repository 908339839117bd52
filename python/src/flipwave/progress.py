"""Progress of a campaign as a tqdm bar, in terminals and notebooks."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

#: Seconds before the bar appears.
_DELAY = 0.5


class Bar:
    """Counts the rows of a growing results.csv. Shows nothing if tqdm is not installed, or not wanted."""

    def __init__(self, name: str, results: Path, wanted: bool) -> None:
        self._name = name
        self._results = results
        self._read = 0
        self._lines_seen = 0
        self._bar: Any = None
        self._tqdm: Any = None
        if wanted:
            try:
                with warnings.catch_warnings():
                    # In a notebook without widgets, the bar is text; this needs no warning.
                    warnings.simplefilter("ignore")
                    from tqdm.auto import tqdm
            except ImportError:
                return
            self._tqdm = tqdm

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._count()
            self._bar.close()

    def look(self, lines: list[str]) -> None:
        """Updates the bar from the program's standard error and from its rows."""
        if self._tqdm is None:
            return
        while self._bar is None and self._lines_seen < len(lines):
            injecting = re.match(r"injecting (\d+) faults", lines[self._lines_seen])
            self._lines_seen += 1
            if injecting:
                self._bar = self._tqdm(total=int(injecting[1]), desc=self._name, unit=" faults", delay=_DELAY)
        if self._bar is not None:
            self._count()

    def _count(self) -> None:
        """Counts new lines. The first line of the file is the header."""
        try:
            with self._results.open("rb") as file:
                file.seek(self._read)
                rows = 0
                while block := file.read(1 << 20):
                    rows += block.count(b"\n") - (self._read == 0)
                    self._read += len(block)
        except FileNotFoundError:
            return
        self._bar.update(rows)
