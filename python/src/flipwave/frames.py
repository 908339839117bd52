"""Conversion of the program's tables to pandas.

pandas is imported in the functions that use it, because judges of severity, of which each worker starts one,
do not need it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import WrongValue

if TYPE_CHECKING:
    import pandas

#: Columns of results.csv with integers in decimal, and their dtypes.
_NUMBERS = {
    "injection": "Int64",
    "dispatch": "Int32",
    "wave": "Int32",
    "lane": "Int16",
    "occurrence": "Int64",
    "words": "Int64",
    "elements_wrong": "Int64",
    "nan_elements": "Int64",
    "inf_elements": "Int64",
    "instructions": "Int64",
}
_TEXTS = ("site", "workgroup", "location", "measures")
_HEXADECIMAL = ("pc", "flip_mask", "before", "after")
_FLOATS = ("weight", "max_abs_error", "max_rel_error")
_CATEGORIES: dict[str, list[str] | None] = {
    "kernel": None,
    "label": None,
    "opcode": None,
    "group": None,
    "line": None,
    "stratum": None,
    "cause": None,
    "error_pattern": None,
    "outcome": ["masked", "sdc", "due", "detected"],
    "severity": ["tolerable", "critical"],
}
_TYPES = {
    **_NUMBERS,
    **dict.fromkeys(_FLOATS, "float64"),
    **dict.fromkeys((*_TEXTS, *_HEXADECIMAL, *_CATEGORIES), "str"),
    "timing_changed": "boolean",
}


def read(path: Path) -> pandas.DataFrame:
    """Reads a CSV file of the program. Only empty cells are missing values: a kernel may be named `NA`."""
    import pandas

    frame = pandas.read_csv(path, keep_default_na=False, na_values=[""])
    return _with_numbers(frame)


def _with_numbers(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Converts columns with hexadecimal digits to integers."""
    import pandas

    for name in frame.columns.intersection(list(_HEXADECIMAL)):
        numbers = [None if pandas.isna(text) else int(text, 16) for text in frame[name]]
        frame[name] = pandas.array(numbers, dtype="UInt64")
    return frame


def read_results(folder: Path) -> pandas.DataFrame:
    """Reads the rows of `results.csv`, with nullable integers, and words as categories.

    `attrs` contains the data of `run.json`, and the folder as `results`.
    """
    import pandas

    # The columns of a parameter sweep have no entry in _TYPES; pandas infers their types.
    frame = _with_numbers(
        pandas.read_csv(folder / "results.csv", dtype=_TYPES, keep_default_na=False, na_values=[""])
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
    """Returns the measures of a judge of severity: one column per measure, with the same rows as the table.

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

    if "measures" not in frame:
        raise WrongValue("measures: the table has no column `measures`; expected a table of .run()")
    return pandas.DataFrame([parsed(text) for text in frame["measures"]], index=frame.index)


def facts(text: str) -> pandas.Series[Any]:
    """Parses the output of `flipwave replay` into values by name."""
    import pandas

    # Indented lines belong to the fault above.
    lines = (line for line in text.splitlines() if not line.startswith(" "))
    pairs = (line.partition(":") for line in lines)
    return pandas.Series({name.strip(): _value(name.strip(), value.strip()) for name, _, value in pairs})


def _value(name: str, text: str) -> Any:
    if name in _HEXADECIMAL:
        return int(text, 16)
    if name in _NUMBERS:
        return int(text)
    if name in _FLOATS:
        return float(text)
    return {"true": True, "false": False}.get(text, text) if name == "timing_changed" else text
