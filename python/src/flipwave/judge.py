"""Judges of severity, and the protocol between a campaign and its judge.

A judge is a function that decides whether silent data corruption is critical.
"""

from __future__ import annotations

import json
import math
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy

from .element import Array, ElementType, from_bytes
from .errors import WrongType

#: The version of the protocol.
VERSION = 1


@dataclass(frozen=True)
class Judgement:
    """The verdict on a run, and measured numbers by name."""

    critical: bool
    measures: Mapping[str, float] = field(default_factory=dict)


#: A function of the outputs of the golden run and of the faulty run, by name. It returns ``True`` if the
#: error is critical, or the verdict with measured values:
#: ``{"critical": True, "measures": {"cosine": 0.3}}``.
Judge: TypeAlias = Callable[
    [Mapping[str, Array], Mapping[str, Array]], "bool | numpy.bool_ | Mapping[str, Any] | Judgement"
]


def judgement(result: Any) -> Judgement:
    """Converts the return value of a judge to a :class:`Judgement`.

    >>> judgement({"critical": 0.2 > 0.1, "measures": {"error": 0.2}})
    Judgement(critical=True, measures={'error': 0.2})
    """
    if isinstance(result, Judgement):
        return result
    if isinstance(result, Mapping) and "critical" in result and set(result) <= {"critical", "measures"}:
        return Judgement(judgement(result["critical"]).critical, dict(result.get("measures") or {}))
    if isinstance(result, numpy.ndarray) and result.ndim == 0:
        result = result[()]
    if isinstance(result, (bool, numpy.bool_)):
        return Judgement(bool(result))
    raise WrongType(
        f"the judge returned {result!r}; expected True (critical) or False, or "
        '{"critical": True, "measures": {"cosine": 0.3}}'
    )


@dataclass(frozen=True)
class _Output:
    name: str
    element: ElementType
    shape: tuple[int, ...]
    size: int

    def read(self, stream: BinaryIO, size: int | None = None) -> Array:
        """Reads the output of a run.

        ``size`` is its number of bytes, if it differs from the golden run; the result then has one dimension
        with all complete elements.
        """
        size = self.size if size is None else size
        raw = numpy.empty(size, numpy.uint8)
        view = raw.data
        done = 0
        while done < size:
            read = stream.readinto(view[done:])  # type: ignore[attr-defined]
            if not read:
                raise EOFError("the campaign ended in the middle of an output")
            done += read
        if size == self.size:
            return from_bytes(raw, self.element, self.shape)
        count = size * 2 if self.element.is_packed else size // self.element.dtype.itemsize
        whole = size if self.element.is_packed else count * self.element.dtype.itemsize
        return from_bytes(raw[:whole], self.element, (count,))


def serve(
    connection: socket.socket, judge: Callable[[], Judge], failed: Callable[[BaseException], None]
) -> None:
    """Answers the questions of a campaign on a stream socket until the connection is closed.

    ``judge`` is called once and returns the function to call. ``failed`` receives any exception of either.
    """
    with connection, connection.makefile("rb") as stream:

        def answer(message: Mapping[str, Any]) -> None:
            connection.sendall(json.dumps(message, allow_nan=False).encode() + b"\n")

        try:
            greeting = json.loads(stream.readline())
            if greeting.get("flipwave_severity") != VERSION:
                raise WrongType(
                    f"the program uses version {greeting.get('flipwave_severity')} of the severity protocol, "
                    f"and this package version {VERSION}; install matching versions"
                )
            outputs = [
                _Output(
                    output["name"],
                    ElementType.named(output["type"]),
                    tuple(output["shape"] or (output["count"],)),
                    output["bytes"],
                    )
                    for output in greeting["outputs"]
            ]
            golden = {output.name: output.read(stream) for output in outputs}
            for array in golden.values():
                array.flags.writeable = False
            function = judge()
            answer({"ready": True})
            while line := stream.readline():
                question = json.loads(line)
                sizes = question.get("bytes") or [None] * len(outputs)
                faulty = {output.name: output.read(stream, size) for output, size in zip(outputs, sizes)}
                answer({"index": question["index"], **_message(judgement(function(golden, faulty)))})
        except (BrokenPipeError, ConnectionResetError, EOFError):
            # The campaign has ended normally, or was stopped.
            return
        except BaseException as error:  # noqa: BLE001 - any exception of a judge ends the campaign
            failed(error)
            try:
                answer({"error": f"{type(error).__name__}: {error}"})
            except OSError:
                return


def _message(result: Judgement) -> dict[str, Any]:
    measures = {str(name): _measure(name, value) for name, value in result.measures.items()}
    return {"severity": "critical" if result.critical else "tolerable", "measures": measures}


def _measure(name: str, value: Any) -> float | int | bool | str:
    """Converts a measure to JSON; NaN and infinities, which JSON lacks, become strings."""
    if isinstance(value, (numpy.generic, numpy.ndarray)) and numpy.ndim(value) == 0:
        value = value.item()
    if isinstance(value, (bool, int)):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise WrongType(f"the measure `{name}` is {value!r}; expected a number") from None
    return number if math.isfinite(number) else str(number)


class Server:
    """Serves a judge on a Unix socket in threads of this process, so that the judge may be a closure."""

    def __init__(self, judge: Judge, path: Path) -> None:
        self.path = path
        #: The first exception that the judge raised.
        self.failure: BaseException | None = None
        self._judge = judge
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing alone would not wake up the thread.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(
                target=serve, args=(connection, lambda: self._judge, self._failed), daemon=True
            ).start()

    def _failed(self, error: BaseException) -> None:
        self.failure = self.failure or error
