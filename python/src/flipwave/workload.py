"""The workload of a campaign: kernel launches, and the buffers that they share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy

from . import values
from .element import Array, ElementType, to_bytes, write
from .errors import MissingArgument, UnknownArgument, WrongType, WrongValue
from .kernel import Kernel

#: A grid in workgroups (Triton's programs), or a function of the kernel's constants that returns it.
Grid: TypeAlias = int | Sequence[int] | Callable[[Mapping[str, Any]], int | Sequence[int]]


@dataclass(frozen=True, eq=False)
class Buffer:
    """An array with a chosen buffer name. By default, a buffer has the name of the first parameter that
    points to it."""

    name: str
    array: Array


@dataclass(frozen=True, eq=False)
class Pointers:
    """A table of addresses, as grouped and batched kernels take it.

    ``arrays`` lists an array, a :class:`Buffer`, ``None`` for a null pointer, or a pair of an array and the
    distance from its start in bytes, for each address.
    """

    arrays: Sequence[Any]


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel with its grid and its arguments.

    ``args`` maps names of parameters to numpy arrays for pointers, numbers for scalars, ``None`` for a null
    pointer, :class:`Pointers` for a pointer to a table of addresses, and ``bytes`` or a structured scalar of
    numpy for a struct that is passed by value. Tensors of other libraries are accepted if numpy can read them (``__array__``). Launches
    that receive the same array share it.
    """

    kernel: Kernel
    #: Workgroups in one to three dimensions.
    grid: Grid
    args: Mapping[str, Any]
    #: The part of the model that the launch belongs to, such as ``layer0.attention``, for grouping results.
    label: str | None = None
    #: Work-items of a workgroup; not needed for Triton kernels.
    workgroup: int | Sequence[int] | None = None
    #: Bytes of dynamic LDS; not needed for Triton kernels.
    local_memory: int | None = None


@dataclass(eq=False)
class _Shared:
    """A buffer of the workload, and the parameters that point to it."""

    name: str
    array: Array
    element: ElementType
    parameters: set[str] = field(default_factory=set)
    is_named: bool = False
    #: The object that the array was converted from; some libraries copy a tensor for each conversion.
    origin: Any = None


@dataclass(eq=False)
class _Table:
    """A buffer of addresses: buffers and the distances from their starts."""

    name: str
    given: Pointers
    pointers: list[tuple[_Shared, int] | None]


class Workload:
    """Launches, their buffers, and the buffers that hold results. The constructor validates all arguments."""

    def __init__(
        self,
        launches: Sequence[Launch],
        outputs: Iterable[Any],
        detectors: Iterable[Any] = (),
        expected: Mapping[str, Any] | None = None,
    ) -> None:
        if not launches:
            raise MissingArgument("the campaign has no launch; expected a kernel with its grid and args")
        self.launches = list(launches)
        for number, launch in enumerate(self.launches):
            if not isinstance(launch, Launch) or not isinstance(launch.kernel, Kernel):
                raise WrongType(f"launches[{number}] is {launch!r}; expected flipwave.Launch(kernel, grid, args)")
        self.target = _target(self.launches)
        self.buffers: list[_Shared] = []
        self._tables: list[_Table] = []
        self._arguments = [self._resolve(number, launch) for number, launch in enumerate(self.launches)]
        self.outputs = [self._buffer(output, "outputs") for output in _list(outputs, "outputs")]
        self.detectors = [self._buffer(detector, "detectors") for detector in _list(detectors, "detectors")]
        if not self.outputs:
            names = ", ".join(buffer.name for buffer in self.buffers)
            raise MissingArgument(f"`outputs` is empty; expected the buffers that hold results, of {names}")
        self.expected: dict[str, Array] = {}
        for name, array in values.mapping({} if expected is None else expected, "expected").items():
            buffer = self._buffer(name, "expected")
            if buffer not in self.outputs:
                raise WrongValue(f"expected: `{name}` is not an output; add it to `outputs`")
            self.expected[buffer.name] = _checked(array, buffer, f"expected: `{name}`")

    def output(self, name: str) -> _Shared | None:
        """Returns the buffer with this name."""
        return next((buffer for buffer in self.buffers if buffer.name == name), None)

    @property
    def input_bytes(self) -> int:
        """Number of bytes that are written to files for a run."""
        arrays = [buffer.array for buffer in self.buffers] + list(self.expected.values())
        return sum(array.nbytes for array in arrays)

    def write(self, directory: Path) -> dict[str, Any]:
        """Writes code objects and arrays to a directory. Returns the `workload` of a campaign file."""
        kernels: dict[int, dict[str, Any]] = {}
        defined: set[str] = set()
        dispatches = []
        # Buffers that only tables refer to are not arguments; the tables may refer to arguments, too.
        shared = [pointer[0] for table in self._tables for pointer in table.pointers if pointer is not None]
        buffers = [self._write_argument(buffer, directory, defined) for buffer in dict.fromkeys(shared)]
        for launch, arguments in zip(self.launches, self._arguments, strict=True):
            kernel = launch.kernel
            if id(kernel) not in kernels:
                kernels[id(kernel)] = _write_kernel(kernel, directory, len(kernels))
            written = dict(kernels[id(kernel)])
            if launch.label is not None:
                written["label"] = values.text(launch.label, "label")
            written["grid"] = {"workgroups": _dimensions(launch.grid, kernel, "grid")}
            if launch.workgroup is not None:
                written["workgroup"] = _dimensions(launch.workgroup, kernel, "workgroup")
            if launch.local_memory is not None:
                written["local_memory"] = values.integer(launch.local_memory, "local_memory")
            written["args"] = [self._write_argument(argument, directory, defined) for argument in arguments]
            dispatches.append(written)
        workload: dict[str, Any] = {"buffers": buffers} if buffers else {}
        workload |= {"kernel": dispatches[0]} if len(dispatches) == 1 else {"dispatches": dispatches}
        return workload

    def _resolve(self, number: int, launch: Launch) -> list[Any]:
        """Returns a launch's arguments in order: buffers, scalars in campaign-file form, and ``None``."""
        kernel = launch.kernel
        where = f"launch {number}, kernel `{kernel.name}`"
        if not isinstance(launch.args, Mapping):
            raise WrongType(
                f"{where}: args is {type(launch.args).__name__}; expected a dict by parameter names"
            )
        parameters = kernel.parameters
        if parameters is None:
            parameters = list(launch.args)
        for name in launch.args:
            if name not in parameters:
                constant = ", a constant whose value was given to from_triton"
                raise UnknownArgument(
                    f"{where}: there is no argument `{name}`"
                    f"{constant if name in kernel.constants else ''}; expected {', '.join(parameters)}"
                )
        for name in parameters:
            if name not in launch.args:
                raise MissingArgument(
                    f"{where}: no argument `{name}`; expected an array, a number, or None for a null "
                    "pointer"
                )
        _dimensions(launch.grid, kernel, f"{where}: grid")
        if kernel.metadata is None and launch.workgroup is None:
            raise MissingArgument(
                f"{where}: no `workgroup`; expected its work-items, 256 or (16, 16) for instance"
            )
        return [self._argument(number, where, kernel, name, launch.args[name]) for name in parameters]

    def _argument(self, number: int, where: str, kernel: Kernel, name: str, value: Any) -> Any:
        kind = None if kernel.signature is None else kernel.signature[name]
        where = f"{where}: argument `{name}`"
        if value is None:
            if kind is not None and not kind.startswith("*"):
                raise WrongType(f"{where} is None, and the signature has `{kind}`; expected a number")
            return None
        if isinstance(value, Pointers):
            return self._table(number, where, name, kind, value)
        if isinstance(value, (bytes, bytearray, numpy.void)):
            content = value.tobytes() if isinstance(value, numpy.void) else bytes(value)
            return _struct(where, kind, content)
        if isinstance(value, Buffer) or values.has_array(value):
            return self._share(number, where, name, kind, value)
        if kind is not None and kind.startswith("*"):
            raise WrongType(
                f"{where} is {type(value).__name__}, and the signature has the pointer `{kind}`; expected "
                "a numpy array, or None"
            )
        return _scalar(where, kind, value)

    def _table(self, number: int, where: str, name: str, kind: str | None, given: Pointers) -> _Table:
        """Returns the buffer of a table of addresses."""
        if kind is not None and not kind.startswith("*"):
            raise WrongType(f"{where} is a table of pointers, and the signature has the number `{kind}`")
        for table in self._tables:
            if table.given is given:
                return table
        if not isinstance(given.arrays, (list, tuple)) or not given.arrays:
            raise WrongType(f"{where} is Pointers({given.arrays!r}); expected a list of arrays")
        pointers: list[tuple[_Shared, int] | None] = []
        for index, entry in enumerate(given.arrays):
            here = f"{where}[{index}]"
            array, offset = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, 0)
            if array is None:
                pointers.append(None)
                continue
            buffer = self._share(number, here, f"{name}_{index}", None, array)
            offset = values.integer(offset, f"{here}: the distance")
            bytes_in_memory = to_bytes(buffer.array, buffer.element).size
            if not 0 <= offset <= bytes_in_memory:
                raise WrongValue(
                    f"{here}: the distance is {offset} bytes; expected 0 to {bytes_in_memory}, the size"
                )
            pointers.append((buffer, offset))
        taken = {table.name for table in self._tables} | {buffer.name for buffer in self.buffers}
        chosen = f"{name}_{number}" if name in taken else name
        if chosen in taken:
            raise WrongValue(f"{where}: the buffer name `{chosen}` already belongs to another buffer")
        self._tables.append(_Table(chosen, given, pointers))
        return self._tables[-1]

    def _share(self, number: int, where: str, name: str, kind: str | None, value: Any) -> _Shared:
        given_name = value.name if isinstance(value, Buffer) else None
        origin = value.array if isinstance(value, Buffer) else value
        if kind is not None and not kind.startswith("*"):
            raise WrongType(f"{where} is an array, and the signature has the number `{kind}`")
        if isinstance(value, Buffer) and not values.has_array(origin):
            raise WrongType(f"{where} is a Buffer of {type(origin).__name__}; expected a numpy array")
        array = values.array(origin, where)
        if array.size == 0:
            raise WrongValue(f"{where} has no elements; pass None for a null pointer")
        if not array.flags.c_contiguous:
            raise WrongValue(f"{where} is not contiguous in memory; pass numpy.ascontiguousarray of it")
        element = ElementType.of_dtype(array.dtype, where)
        if kind is not None:
            meant = ElementType.of_triton(kind.removeprefix("*"), where)
            if meant != element:
                raise WrongType(
                    f"{where} has the dtype {array.dtype}, and the signature has `{kind}`; expected "
                    f"{meant.dtype}, as of .astype({_spelled(meant)})"
                )
        for buffer in self.buffers:
            if origin is buffer.origin or _is_same(buffer.array, array):
                if given_name is not None and given_name != buffer.name:
                    raise WrongValue(
                        f"{where}: the array of the buffer `{given_name}` already has the name "
                        f"`{buffer.name}`"
                    )
                buffer.parameters.add(name)
                return buffer
            if numpy.may_share_memory(buffer.array, array):
                raise WrongValue(
                    f"{where} overlaps the buffer `{buffer.name}` in memory without being the same array; "
                    "launches share whole arrays only: pass the same one, or a copy"
                )
        taken = {buffer.name for buffer in self.buffers} | {table.name for table in self._tables}
        chosen = given_name or (f"{name}_{number}" if name in taken else name)
        if chosen in taken:
            raise WrongValue(
                f"{where}: the buffer name `{chosen}` already belongs to another array; choose another name"
            )
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", values.text(chosen, f"{where}: the buffer name")):
            raise WrongValue(f"{where}: invalid buffer name `{chosen}`; expected letters, digits, _ - .")
        buffer = _Shared(chosen, array, element, {name}, given_name is not None, origin)
        self.buffers.append(buffer)
        return buffer

    def _buffer(self, given: Any, where: str) -> _Shared:
        """Finds the buffer for a name, an array or a :class:`Buffer`."""
        origin = given.array if isinstance(given, Buffer) else given
        if values.has_array(origin):
            array = values.array(origin, where)
            for buffer in self.buffers:
                if origin is buffer.origin or _is_same(buffer.array, array):
                    return buffer
            raise UnknownArgument(f"{where}: no launch receives this array; expected one of the args")
        alike = [buffer for buffer in self.buffers if buffer.name == given or given in buffer.parameters]
        if not alike:
            names = ", ".join(buffer.name for buffer in self.buffers)
            raise UnknownArgument(f"{where}: no buffer `{given}`; expected one of {names}")
        if len(alike) > 1 and not any(buffer.is_named and buffer.name == given for buffer in alike):
            names = ", ".join(buffer.name for buffer in alike)
            raise WrongValue(
                f"{where}: `{given}` is a parameter of several launches, with different arrays ({names}); "
                "give the array itself, or name it with flipwave.Buffer"
            )
        return next((buffer for buffer in alike if buffer.name == given), alike[0])

    def _write_argument(self, argument: Any, directory: Path, defined: set[str]) -> Any:
        if isinstance(argument, _Table):
            if argument.name in defined:
                return {"buffer": argument.name}
            defined.add(argument.name)
            addresses = [
                None if pointer is None else f"{pointer[0].name} + {pointer[1]}"
                for pointer in argument.pointers
            ]
            return {"buffer": argument.name, "init": {"pointers": addresses}}
        if not isinstance(argument, _Shared):
            return argument
        if argument.name in defined:
            return {"buffer": argument.name}
        defined.add(argument.name)
        count = argument.array.size
        if argument.element.is_packed and count % 2 != 0:
            raise WrongValue(
                f"buffer `{argument.name}` has {count} elements of four bits; expected an even number"
            )
        written: dict[str, Any] = {"buffer": argument.name, "type": argument.element.name, "count": count}
        if to_bytes(argument.array, argument.element).any():
            written["init"] = {"file": _write_array(directory / "inputs", argument, argument.array)}
        if argument in self.detectors:
            written["detector"] = True
        if argument in self.outputs:
            written["output"] = True
            if argument.array.ndim > 0:
                written["shape"] = _shape(argument.array.shape)
            if argument.name in self.expected:
                array = self.expected[argument.name]
                written["expected"] = _write_array(directory / "expected", argument, array)
        return written


def _list(given: Iterable[Any], where: str) -> list[Any]:
    if isinstance(given, (str, Buffer)) or values.has_array(given):
        return [given]
    try:
        return list(given)
    except TypeError:
        raise WrongType(f"{where} is {type(given).__name__}; expected a list of names or arrays") from None


def _target(launches: Sequence[Launch]) -> str | None:
    targets = {launch.kernel.target for launch in launches} - {None}
    if len(targets) > 1:
        raise WrongValue(
            f"the kernels are for different GPUs, {', '.join(sorted(filter(None, targets)))}; expected one"
        )
    return next(iter(targets), None)


def _is_same(left: Array, right: Array) -> bool:
    """Returns ``True`` if two arrays are the same, or differ only in their shape."""
    return left is right or (
        left.nbytes == right.nbytes > 0
        and left.dtype == right.dtype
        and left.__array_interface__["data"][0] == right.__array_interface__["data"][0]
    )


def _spelled(element: ElementType) -> str:
    module = "numpy" if hasattr(numpy, element.dtype.name) else "ml_dtypes"
    return f"{module}.{element.dtype.name}"


def _checked(array: Any, buffer: _Shared, where: str) -> Array:
    """Checks an array that is compared with a buffer, and makes it contiguous."""
    array = values.array(array, where)
    if array.dtype != buffer.array.dtype:
        raise WrongType(
            f"{where} has the dtype {array.dtype}, and the buffer has {buffer.array.dtype}; expected the "
            f"same, as of .astype({_spelled(buffer.element)})"
        )
    if array.shape != buffer.array.shape:
        raise WrongValue(
            f"{where} has the shape {array.shape}, and the buffer has {buffer.array.shape}; expected the same"
        )
    return numpy.ascontiguousarray(array)


def _scalar(where: str, kind: str | None, value: Any) -> dict[str, Any]:
    if isinstance(value, (bool, int, float, complex)) and kind is None:
        raise WrongType(
            f"{where} is the Python number {value!r}, whose size is unknown because the kernel has no "
            "signature; expected a number with a size, such as numpy.int32(...) or numpy.float32(...)"
        )
    if not isinstance(value, (bool, int, float, numpy.generic)):
        raise WrongType(
            f"{where} is {type(value).__name__}; expected a numpy array, a number, or None for a null "
            "pointer"
        )
    if kind is None:
        element = ElementType.of_dtype(numpy.asarray(value).dtype, where)
    else:
        element = ElementType.of_triton(kind, where)
    number = value.item() if isinstance(value, numpy.generic) else value
    if not isinstance(number, (bool, int, float)):
        try:
            # Scalars of ml_dtypes. Text is not a number, although it can be converted.
            if isinstance(number, (str, bytes)):
                raise TypeError
            number = float(number)
        except (TypeError, ValueError):
            raise WrongType(
                f"{where} is {value!r} of {type(value).__name__}; expected a number"
            ) from None
    if element.is_float:
        try:
            return {"scalar": float(number), "type": element.name}
        except OverflowError:
            raise WrongValue(f"{where} is {number}, which no floating-point type can represent") from None
    if not math.isfinite(number) or number != int(number):
        raise WrongType(f"{where} is {value!r}, and its type is {element.name}; expected a whole number")
    limits = numpy.iinfo(element.dtype)
    if not limits.min <= int(number) <= limits.max:
        raise WrongValue(
            f"{where} is {value!r}, and its type is {element.name}; expected {limits.min} to {limits.max}"
        )
    return {"scalar": int(number), "type": element.name}


def _struct(where: str, kind: str | None, content: bytes) -> dict[str, Any]:
    if kind is not None:
        raise WrongType(f"{where} is a struct of {len(content)} bytes, and the signature has `{kind}`")
    if not content:
        raise WrongValue(f"{where} has no bytes")
    return {"bytes": content.hex(" ")}


def _dimensions(given: Any, kernel: Kernel, where: str) -> list[int]:
    if callable(given):
        given = given(kernel.constants)
    if isinstance(given, (int, numpy.integer)):
        given = (given,)
    try:
        numbers = [values.integer(number, where) for number in given]
    except TypeError:
        raise WrongType(f"{where} is {given!r}; expected a whole number, or one to three of them") from None
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise WrongValue(f"{where} is {given!r}; expected one to three numbers from 1 up")
    return numbers


def _shape(shape: tuple[int, ...]) -> list[int]:
    """Reduces a shape to at most three dimensions by merging all but the last two."""
    first = shape[:-2]
    return [math.prod(first), *shape[-2:]] if len(shape) > 3 else list(shape)


def _write_array(folder: Path, buffer: _Shared, array: Array) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / f"{buffer.name}.bin"
    write(path, array, buffer.element)
    return f"{folder.name}/{path.name}"


def _suffix(source: str, target: str | None) -> str:
    """The end of the name of a file with this source text."""
    if "__global__" not in source:
        return ".cl"
    return ".cu" if (target or "").startswith("sm_") else ".hip"


def _write_kernel(kernel: Kernel, directory: Path, number: int) -> dict[str, Any]:
    """Writes a kernel's files. Returns the keys of a launch that name them."""
    folder = directory / "kernels"
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", kernel.name)[:60]
    stem = plain if number == 0 else f"{plain}_{number}"

    def written(suffix: str, content: bytes | str) -> str:
        folder.mkdir(exist_ok=True)
        content = content.encode() if isinstance(content, str) else content
        (folder / f"{stem}{suffix}").write_bytes(content)
        return f"{folder.name}/{stem}{suffix}"

    if kernel.code_object is not None:
        suffix = ".hsaco" if kernel.code_object.startswith(b"\x7fELF") else ".ptx"
        keys: dict[str, Any] = {"code_object": written(suffix, kernel.code_object)}
        if kernel.metadata is not None:
            keys["metadata"] = written(".json", kernel.metadata)
    elif isinstance(kernel.source, Path):
        # The file stays in place, next to the files that it includes.
        keys = {"source": str(kernel.source)}
    else:
        text = kernel.source or ""
        keys = {"source": written(_suffix(text, kernel.target), text)}
    if kernel.options is not None:
        keys["options"] = list(kernel.options)
    keys["name"] = kernel.name
    return keys
