"""Judges of severity: functions that say how bad silent data corruption is, and the protocol by which a
campaign asks them."""

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
    """How bad a run is, and what was measured for that: numbers by name."""

    critical: bool
    measures: Mapping[str, float] = field(default_factory=dict)


#: What the outputs hold without the fault, and with it, by name. Returns whether that is critical,
#: alone or with what was measured: ``{"critical": True, "measures": {"cosine": 0.3}}``.
Judge: TypeAlias = Callable[
    [Mapping[str, Array], Mapping[str, Array]], "bool | numpy.bool_ | Mapping[str, Any] | Judgement"
]


def judgement(said: Any) -> Judgement:
    """What a judge has said, in one form.

    >>> judgement({"critical": 0.2 > 0.1, "measures": {"error": 0.2}})
    Judgement(critical=True, measures={'error': 0.2})
    """
    if isinstance(said, Judgement):
        return said
    if isinstance(said, Mapping) and "critical" in said and set(said) <= {"critical", "measures"}:
        return Judgement(judgement(said["critical"]).critical, dict(said.get("measures") or {}))
    if isinstance(said, numpy.ndarray) and said.ndim == 0:
        said = said[()]
    if isinstance(said, (bool, numpy.bool_)):
        return Judgement(bool(said))
    raise WrongType(
        f"the judge returned {said!r}; expected True (critical) or False, or "
        '{"critical": True, "measures": {"cosine": 0.3}}'
    )


@dataclass(frozen=True)
class _Output:
    name: str
    element: ElementType
    shape: tuple[int, ...]
    size: int

    def read(self, stream: BinaryIO, size: int | None = None) -> Array:
        """What the run left, ``size`` bytes of it where they are others than without the fault: all whole
        elements of these then, in one dimension."""
        size = self.size if size is None else size
        raw = numpy.empty(size, numpy.uint8)
        view = raw.data
        done = 0
        while done < size:
            read = stream.readinto(view[done:])  # type: ignore[attr-defined]
            if not read:
                raise EOFError("the campaign has ended in the middle of an output")
            done += read
        if size == self.size:
            return from_bytes(raw, self.element, self.shape)
        count = size * 2 if self.element.is_packed else size // self.element.dtype.itemsize
        whole = size if self.element.is_packed else count * self.element.dtype.itemsize
        return from_bytes(raw[:whole], self.element, (count,))


def serve(
    connection: socket.socket, judge: Callable[[], Judge], failed: Callable[[BaseException], None]
) -> None:
    """Answers a campaign at one end of a stream socket until it asks nothing more.

    ``judge`` is called once, for the function to ask; ``failed`` is told what it or the function raises.
    """
    with connection, connection.makefile("rb") as stream:

        def answer(message: Mapping[str, Any]) -> None:
            connection.sendall(json.dumps(message, allow_nan=False).encode() + b"\n")

        try:
            greeting = json.loads(stream.readline())
            if greeting.get("flipwave_severity") != VERSION:
                raise WrongType(
                    f"the program speaks version {greeting.get('flipwave_severity')} of the protocol of "
                    f"severity, and this package {VERSION}; install both of one version"
                )
            outputs = [
                _Output(
                    one["name"],
                    ElementType.named(one["type"]),
                    tuple(one["shape"] or (one["count"],)),
                    one["bytes"],
                )
                for one in greeting["outputs"]
            ]
            golden = {one.name: one.read(stream) for one in outputs}
            for array in golden.values():
                array.flags.writeable = False
            function = judge()
            answer({"ready": True})
            while line := stream.readline():
                question = json.loads(line)
                sizes = question.get("bytes") or [None] * len(outputs)
                given = {one.name: one.read(stream, size) for one, size in zip(outputs, sizes)}
                answer({"index": question["index"], **_message(judgement(function(golden, given)))})
        except (BrokenPipeError, ConnectionResetError, EOFError):
            # The campaign has ended, by itself or because it was asked to.
            return
        except BaseException as error:  # noqa: BLE001 - whatever a judge raises ends the campaign
            failed(error)
            try:
                answer({"error": f"{type(error).__name__}: {error}"})
            except OSError:
                return


def _message(said: Judgement) -> dict[str, Any]:
    measures = {str(name): _measure(name, value) for name, value in said.measures.items()}
    return {"severity": "critical" if said.critical else "tolerable", "measures": measures}


def _measure(name: str, value: Any) -> float | int | bool | str:
    """A measure as JSON has it, which has no number for NaN and infinities."""
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
    """A judge at a Unix socket, in threads of this process. What it closes over works as anywhere."""

    def __init__(self, judge: Judge, path: Path) -> None:
        self.path = path
        #: The first exception that the judge has raised.
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
        # Closing alone would leave the thread where it waits.
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
