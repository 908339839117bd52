"""Fault injection into GPU kernels from Python.

The package takes Triton, OpenCL and HIP kernels and numpy arrays, calls the program ``flipwave``, and returns
pandas tables with the outcome of each fault.
"""

from . import checks
from .campaign import Campaign, compare
from .errors import (
    Error,
    MissingArgument,
    MissingBinary,
    MissingTriton,
    NoResults,
    ProgramError,
    UnexpectedOutput,
    UnknownArgument,
    WrongType,
    WrongValue,
)
from .frames import measures
from .judge import Judgement
from .kernel import Kernel
from .tool import Incomplete, Tool
from .workload import Buffer, Launch, Pointers

__all__ = [
    "Buffer",
    "Campaign",
    "Error",
    "Incomplete",
    "Judgement",
    "Kernel",
    "Launch",
    "MissingArgument",
    "MissingBinary",
    "MissingTriton",
    "NoResults",
    "Pointers",
    "ProgramError",
    "Tool",
    "UnexpectedOutput",
    "UnknownArgument",
    "WrongType",
    "WrongValue",
    "checks",
    "compare",
    "measures",
]
