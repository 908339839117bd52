"""Tables of the program as pandas has them.

pandas is imported where it is used: judges of severity, of which each worker starts one, do without it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

#: Columns of results.csv that are whole numbers, written in decimal or in hexadecimal.
_NUMBERS = {
    "index": "Int64",
    "dispatch": "Int32",
    "wave": "Int32",
    "lane": "Int16",
    "occurrence": "Int64",
    "words": "Int64",
    "elements_wrong": "Int64",
    "nan": "Int64",
    "inf": "Int64",
    "instructions": "Int64",
}
_HEXADECIMAL = ("pc", "mask", "before", "after")
_FLOATS = ("weight", "max_abs_error", "max_rel_error")
_CATEGORIES: dict[str, list[str] | None] = {
    "kernel": None,
    "label": None,
    "opcode": None,
    "group": None,
    "line": None,
    "stratum": None,
    "cause": None,
    "shape": None,
    "outcome": ["masked", "sdc", "due", "detected"],
    "severity": ["tolerable", "critical"],
}


def read(path: Path) -> pandas.DataFrame:
    """A CSV file of the program. Only what is empty is missing: a kernel may be called `NA`."""
    import pandas

    frame = pandas.read_csv(path, keep_default_na=False, na_values=[""])
    return _with_numbers(frame)


def _with_numbers(frame: pandas.DataFrame) -> pandas.DataFrame:
    """The same with numbers in place of hexadecimal digits."""
    import pandas

    for name in frame.columns.intersection(list(_HEXADECIMAL)):
        numbers = [None if pandas.isna(text) else int(text, 16) for text in frame[name]]
        frame[name] = pandas.array(numbers, dtype="UInt64")
    return frame


def read_results(folder: Path) -> pandas.DataFrame:
    """The rows of `results.csv`, whole numbers as pandas' nullable ones, words as categories.

    `attrs` has what `run.json` says, and the folder as `results`.
    """
    import pandas

    columns = pandas.read_csv(folder / "results.csv", nrows=0).columns
    types = {
        name: _NUMBERS.get(name, "float64" if name in _FLOATS else "str") for name in columns
    } | {"timing_changed": "boolean"}
    frame = _with_numbers(
        pandas.read_csv(folder / "results.csv", dtype=types, keep_default_na=False, na_values=[""])
    )
    for name in frame.columns.intersection(list(_CATEGORIES)):
        frame[name] = frame[name].astype(
            pandas.CategoricalDtype(_CATEGORIES[name], ordered=name == "severity")
        )
    record = folder / "run.json"
    if record.exists():
        frame.attrs.update(json.loads(record.read_text()))
    frame.attrs["results"] = str(folder)
    return frame


def measures(frame: pandas.DataFrame) -> pandas.DataFrame:
    """What a judge of severity has measured, a column for each measure, for the same rows.

    >>> import pandas
    >>> measures(pandas.DataFrame({"measures": ["cosine=0.5 top1=0", None, "cosine=nan"]}))
       cosine  top1
    0     0.5   0.0
    1     NaN   NaN
    2     NaN   NaN
    """
    import pandas

    def parsed(text: Any) -> dict[str, float]:
        words = [] if pandas.isna(text) else str(text).split()
        return {name: float(value) for name, value in (word.split("=") for word in words)}

    return pandas.DataFrame([parsed(text) for text in frame["measures"]], index=frame.index)


def facts(text: str) -> pandas.Series[Any]:
    """What `flipwave replay` prints, by name."""
    import pandas

    pairs = (line.partition(":") for line in text.splitlines())
    return pandas.Series({name.strip(): _value(name.strip(), value.strip()) for name, _, value in pairs})


def _value(name: str, text: str) -> Any:
    if name in _HEXADECIMAL:
        return int(text, 16)
    if name in _NUMBERS:
        return int(text)
    if name in _FLOATS:
        return float(text)
    return {"true": True, "false": False}.get(text, text) if name == "timing_changed" else text
