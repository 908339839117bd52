"""Exceptions of this package. All of them derive from :class:`Error`."""

from __future__ import annotations


class Error(Exception):
    """The base of all exceptions of this package."""


class MissingBinary(Error):
    """Raised if the program ``flipwave`` cannot be found."""


class MissingTriton(Error):
    """Raised if a Triton kernel must be compiled and Triton is not installed."""


class WrongType(Error, TypeError):
    """Raised for a value or an array of an invalid type."""


class WrongValue(Error, ValueError):
    """Raised for an invalid shape, number or name."""


class UnknownArgument(Error, TypeError):
    """Raised for a name that matches no parameter of the kernel, or no buffer of the campaign."""


class MissingArgument(Error, TypeError):
    """Raised if an argument without a default is missing."""


class NoResults(Error):
    """Raised if results are requested before the campaign has run."""


class ProgramError(Error):
    """Raised if the program fails, with its error message.

    ``exit_code`` is the program's exit code, or the negated number of the signal that ended it. ``stderr`` is
    everything that the program and a judge of severity wrote to standard error.
    """

    def __init__(self, text: str, exit_code: int, stderr: str = "") -> None:
        super().__init__(text)
        self.exit_code = exit_code
        self.stderr = stderr

    @property
    def text(self) -> str:
        """The program's error message."""
        return str(self.args[0])


class UnexpectedOutput(ProgramError):
    """Raised if the golden run differs from the expected outputs."""
