"""Element types: their names in campaign files and in Triton, and their numpy dtypes.

Small types use ``ml_dtypes``. In GPU memory, two 4-bit elements share a byte, the first one in its low half;
numpy uses one byte per element.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy

from .errors import WrongType

Array = numpy.ndarray[Any, Any]

_DTYPES: dict[str, numpy.dtype[Any]] = {
    name: numpy.dtype(dtype)
    for name, dtype in {
        "u4": ml_dtypes.uint4,
        "i4": ml_dtypes.int4,
        "f4": ml_dtypes.float4_e2m1fn,
        "u8": numpy.uint8,
        "i8": numpy.int8,
        "f8e4m3_ocp": ml_dtypes.float8_e4m3fn,
        "f8e4m3_fnuz": ml_dtypes.float8_e4m3fnuz,
        "f8e5m2_ocp": ml_dtypes.float8_e5m2,
        "f8e5m2_fnuz": ml_dtypes.float8_e5m2fnuz,
        "u16": numpy.uint16,
        "i16": numpy.int16,
        "f16": numpy.float16,
        "bf16": ml_dtypes.bfloat16,
        "u32": numpy.uint32,
        "i32": numpy.int32,
        "f32": numpy.float32,
        "u64": numpy.uint64,
        "i64": numpy.int64,
        "f64": numpy.float64,
    }.items()
}

_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

#: Triton's names of scalar types and of the types that pointers refer to. ``i1`` is a byte in memory.
_TRITON = {
    "i8": "i8",
    "u8": "u8",
    "i1": "u8",
    "u1": "u8",
    "i16": "i16",
    "u16": "u16",
    "i32": "i32",
    "u32": "u32",
    "i64": "i64",
    "u64": "u64",
    "fp16": "f16",
    "bf16": "bf16",
    "fp32": "f32",
    "f32": "f32",
    "fp64": "f64",
    "fp8e4nv": "f8e4m3_ocp",
    "fp8e4b8": "f8e4m3_fnuz",
    "fp8e5": "f8e5m2_ocp",
    "fp8e5b16": "f8e5m2_fnuz",
}


@dataclass(frozen=True)
class ElementType:
    """An element type, by its name in campaign files."""

    name: str

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The numpy dtype."""
        return _DTYPES[self.name]

    @property
    def is_packed(self) -> bool:
        """``True`` if two elements share a byte."""
        return self.name in ("u4", "i4", "f4")

    @property
    def is_float(self) -> bool:
        """``True`` for a floating-point type."""
        return self.name.startswith(("f", "bf"))

    @staticmethod
    def named(name: str) -> ElementType:
        """Returns the type with this name.

        >>> ElementType.named("bf16").dtype
        dtype(bfloat16)
        """
        if name not in _DTYPES:
            raise WrongType(f"unknown element type `{name}`; expected one of {', '.join(_DTYPES)}")
        return ElementType(name)

    @staticmethod
    def of_dtype(dtype: numpy.dtype[Any], where: str) -> ElementType:
        """Returns the type for a numpy dtype. ``where`` describes the array in error messages.

        >>> ElementType.of_dtype(numpy.dtype("float16"), "x")
        ElementType(name='f16')
        """
        if dtype == numpy.bool_:
            return ElementType("u8")
        name = _NAMES.get(dtype)
        if name is None or not dtype.isnative:
            raise WrongType(
                f"{where} has the dtype {dtype}, for which GPU code has no type; "
                f"expected one of {', '.join(str(dtype) for dtype in _NAMES)}"
            )
        return ElementType(name)

    @staticmethod
    def of_triton(name: str, where: str) -> ElementType:
        """Returns the type with this name in Triton, without the asterisk of a pointer.

        >>> ElementType.of_triton("fp8e4b8", "x").dtype
        dtype(float8_e4m3fnuz)
        """
        if name not in _TRITON:
            # The first name of Triton for the dtype of this name.
            alike = [kind for kind, element in _TRITON.items() if _DTYPES[element].name == name]
            hint = f" (numpy's {name} is `{alike[0]}` there)" if alike else ""
            raise WrongType(
                f"{where} has the type `{name}` in the signature{hint}; expected one of "
                f"{', '.join(_TRITON)}, or a pointer to one, such as `*fp32`"
            )
        return ElementType(_TRITON[name])


def to_bytes(array: Array, element: ElementType) -> Array:
    """Converts an array to bytes in the GPU's layout, without a copy if numpy uses the same layout."""
    raw = array.reshape(-1).view(numpy.uint8)
    if not element.is_packed:
        return raw
    padded = numpy.append(raw, numpy.zeros(raw.size % 2, numpy.uint8)) & 0xF
    return numpy.asarray(padded[0::2] | (padded[1::2] << 4), numpy.uint8)


def from_bytes(raw: Array, element: ElementType, shape: tuple[int, ...]) -> Array:
    """Converts the result of :func:`to_bytes` back to an array of the given shape."""
    if element.is_packed:
        unpacked = numpy.empty((raw.size, 2), numpy.uint8)
        unpacked[:, 0] = raw & 0xF
        unpacked[:, 1] = raw >> 4
        raw = unpacked.reshape(-1)[: int(numpy.prod(shape))]
    return raw.view(element.dtype).reshape(shape)


def write(path: Path, array: Array, element: ElementType) -> None:
    """Writes an array to a file in the format that campaigns read."""
    to_bytes(array, element).tofile(path)


def read(path: Path, element: ElementType, shape: tuple[int, ...]) -> Array:
    """Maps the array in a file into memory; pages are read on first access.

    Writing to the array does not change the file. The file may be removed while the array exists.
    """
    if path.stat().st_size == 0:
        return numpy.empty(shape, element.dtype)
    mapped = numpy.memmap(path, numpy.uint8, mode="c")
    return from_bytes(mapped.view(numpy.ndarray), element, shape)
