"""Severity of faults in molecular dynamics: critical if a total energy is off by 0.1 kJ/mol or more."""

import json
import re
import socket

LIMIT = 0.1

stream = socket.socket(fileno=0).makefile("rwb")


def answer(message: dict) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def energies(size: int) -> list[float]:
    """Total energies that a run printed."""
    text = stream.read(size).decode(errors="replace")
    return [float(number) for number in re.findall(r"total (\S+)", text)]


size = json.loads(stream.readline())["outputs"][0]["bytes"]
golden = energies(size)
answer({"ready": True})
while line := stream.readline():
    found = energies(json.loads(line).get("bytes", [size])[0])
    off = max((abs(a - b) for a, b in zip(golden, found)), default=float("inf"))
    # NaN is not less than the limit.
    critical = len(found) != len(golden) or not off < LIMIT
    measure = off if off == off and off != float("inf") else str(off)
    answer({"severity": "critical" if critical else "tolerable", "measures": {"off": measure}})
