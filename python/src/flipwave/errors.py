"""What can go wrong, as exceptions. All of them are :class:`Error`."""

from __future__ import annotations


class Error(Exception):
    """The base of all exceptions of this package."""


class MissingBinary(Error):
    """The program ``flipwave`` is nowhere to be found."""


class MissingTriton(Error):
    """A kernel of Triton's is to be compiled, and Triton is not installed."""


class WrongType(Error, TypeError):
    """A value or an array of a type that cannot be meant."""


class WrongValue(Error, ValueError):
    """A shape, a number or a name that cannot be meant."""


class UnknownArgument(Error, TypeError):
    """A name that is none of the kernel's parameters, or of the campaign's buffers."""


class MissingArgument(Error, TypeError):
    """Something that has no default is not given."""


class NoResults(Error):
    """Results are asked for before the campaign has run."""


class ProgramError(Error):
    """The program did not do as asked.

    Its words are the exception's; ``exit_code`` is its exit code, negative for the number of the signal
    that ended it, and ``stderr`` all that it and a judge of severity wrote to standard error.
    """

    def __init__(self, text: str, exit_code: int, stderr: str = "") -> None:
        super().__init__(text)
        self.exit_code = exit_code
        self.stderr = stderr

    @property
    def text(self) -> str:
        """The program's words."""
        return str(self.args[0])


class UnexpectedOutput(ProgramError):
    """A run without a fault computes something else than the campaign expects."""
