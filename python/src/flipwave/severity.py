"""``python -m flipwave.severity FILE FUNCTION``: a judge of severity for campaigns on the command line.

The program starts it for ``severity: {python: "FILE:FUNCTION"}``, with a socket as standard input.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
import traceback
from pathlib import Path

from .errors import UnknownArgument, WrongType, WrongValue
from .judge import Judge, Judgement, serve

__all__ = ["Judge", "Judgement", "load", "main"]


def load(file: str | Path, function: str) -> Judge:
    """Loads a function from a Python file. The file may import modules from its folder."""
    path = Path(file).resolve()
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None or not path.is_file():
        raise WrongValue(f"{path} is not a Python file; expected the file with the function `{function}`")
    sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    judge = getattr(module, function, None)
    if judge is None:
        raise UnknownArgument(f"{path} has no `{function}`; expected a function (golden, outputs)")
    if not callable(judge):
        raise WrongType(
            f"{path}: `{function}` is {type(judge).__name__}; expected a function (golden, outputs)"
        )
    return judge  # type: ignore[no-any-return]


def main(arguments: list[str]) -> int:
    """Serves the judge on standard input. Returns the exit code, 2 if standard input is not a socket."""
    if len(arguments) != 2:
        print("usage: python -m flipwave.severity FILE FUNCTION", file=sys.stderr)
        return 2
    file, function = arguments
    try:
        connection = socket.socket(fileno=os.dup(0))
    except OSError:
        print(
            "flipwave.severity: standard input is not a socket; the program flipwave starts this module",
            file=sys.stderr,
        )
        return 2
    serve(connection, lambda: load(file, function), traceback.print_exception)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
