"""Checks and conversions of values that users pass. Each mistake raises a :class:`flipwave.Error`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy

from .element import Array
from .errors import WrongType, WrongValue

#: Names of the targets that the program knows.
TARGETS = tuple(
    """
    gfx600 gfx601 gfx602 gfx700 gfx701 gfx702 gfx703 gfx704 gfx705 gfx801 gfx802 gfx803 gfx805 gfx810 gfx900
    gfx902 gfx904 gfx906 gfx908 gfx909 gfx90c gfx90a gfx940 gfx941 gfx942 gfx950 gfx9-generic gfx9-4-generic
    gfx1010 gfx1011 gfx1012 gfx1013 gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 gfx10-1-generic
    gfx10-3-generic gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx11-generic gfx1200
    gfx1201 gfx12-generic gfx1250 gfx1251 sm_75 sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_90a sm_100 sm_100a
    sm_103 sm_103a sm_110 sm_110a sm_120 sm_120a sm_121 sm_121a
    """.split()
)


def target(given: Any, where: str) -> str | None:
    """Checks the name of a target; it may be followed by settings such as ``:xnack-``.

    >>> target("gfx90a:xnack-", "Kernel")
    'gfx90a:xnack-'
    """
    if given is None:
        return None
    if not isinstance(given, str):
        raise WrongType(f"{where}: the target is {type(given).__name__}; expected a name such as 'gfx90a'")
    if given.split(":")[0] not in TARGETS:
        raise WrongValue(f"{where}: unknown target `{given}`; expected one of {', '.join(TARGETS)}")
    return given


def path(given: Any, where: str) -> Path:
    """Converts a path.

    >>> path("kernels/add.cl", "source")
    PosixPath('kernels/add.cl')
    """
    if isinstance(given, (str, os.PathLike)):
        try:
            return Path(given)
        except TypeError:
            # A path of bytes.
            pass
    raise WrongType(f"{where} is {type(given).__name__}; expected a path, as a string or a pathlib.Path")


def text(given: Any, where: str) -> str:
    """Checks a string."""
    if not isinstance(given, str):
        raise WrongType(f"{where} is {type(given).__name__}; expected a string")
    return given


def integer(given: Any, where: str) -> int:
    """Converts a whole number of Python or numpy.

    >>> integer(numpy.int64(3), "count"), integer(4.0, "count")
    (3, 4)
    """
    if isinstance(given, numpy.generic):
        given = given.item()
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if isinstance(given, float) and given.is_integer():
        return int(given)
    raise WrongType(f"{where} is {given!r}; expected a whole number")


def mapping(given: Any, where: str) -> dict[str, Any]:
    """Checks a mapping with names as keys."""
    if not isinstance(given, Mapping):
        raise WrongType(f"{where} is {type(given).__name__}; expected a dict")
    for key in given:
        if not isinstance(key, str):
            raise WrongType(f"{where} has the key {key!r}; expected names")
    return dict(given)


def has_array(value: Any) -> bool:
    """Returns ``True`` for arrays and for tensors of other libraries that numpy can read."""
    return isinstance(value, numpy.ndarray) or (
        hasattr(value, "__array__") and not isinstance(value, (numpy.generic, type))
    )


def array(value: Any, where: str) -> Array:
    """Converts a tensor to an array, without a copy where its library allows this."""
    if isinstance(value, numpy.ma.MaskedArray):
        raise WrongType(
            f"{where} is a masked array, and memory has no mask; pass .filled(...) of it, or its .data"
        )
    if isinstance(value, numpy.ndarray):
        return value
    if not has_array(value):
        raise WrongType(f"{where} is {type(value).__name__}; expected a numpy array")
    try:
        return array(numpy.asarray(value), where)
    except (TypeError, ValueError, RuntimeError) as error:
        raise WrongType(
            f"{where} is {type(value).__name__}, which numpy cannot read ({error}); pass a numpy array"
        ) from error


def plain(value: Any, where: str) -> Any:
    """Converts a value to the types of YAML: numbers of numpy become numbers of Python.

    >>> plain({"count": numpy.int64(5), "groups": ("valu",)}, "faults")
    {'count': 5, 'groups': ['valu']}
    """
    if isinstance(value, (numpy.bool_, numpy.integer, numpy.floating)):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return str(path(value, where))
    if isinstance(value, Mapping):
        return {key: plain(item, f"{where}.{key}") for key, item in mapping(value, where).items()}
    if isinstance(value, numpy.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple, range)):
        return [plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    raise WrongType(
        f"{where} is {type(value).__name__}; expected a number, a string, a list or a dict, as in a campaign "
        "file"
    )
