"""Faults into GPU kernels from Python: a kernel of Triton's, OpenCL's or HIP's, arrays of numpy, and
tables of what comes of each fault. Everything is done by the program ``flipwave``."""

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
from .workload import Buffer, Launch

__all__ = [
    "Buffer",
    "Campaign",
    "Error",
    "Judgement",
    "Kernel",
    "Launch",
    "MissingArgument",
    "MissingBinary",
    "MissingTriton",
    "NoResults",
    "ProgramError",
    "UnexpectedOutput",
    "UnknownArgument",
    "WrongType",
    "WrongValue",
    "checks",
    "compare",
    "measures",
]
