"""Location and execution of the program ``flipwave``."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from .errors import MissingBinary, ProgramError, UnexpectedOutput

#: Environment variable with the path of the program.
VARIABLE = "FLIPWAVE"

#: Seconds between two checks of a running program.
_PERIOD = 0.05


def find() -> Path:
    """Finds the program: ``$FLIPWAVE``, otherwise next to this Python, in ``PATH``, or in the source tree.

    Raises :class:`MissingBinary` if there is none.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise MissingBinary(f"${VARIABLE} is `{wanted}`, which is not a program; correct or unset it")
        return Path(found)
    # Wheels install it there. Unlike resolved links, `sys.executable` is inside a virtual environment.
    scripts = Path(sys.executable).parent
    tree = Path(__file__).parents[3] / "target" / "release"
    for folder in (str(scripts), None, str(tree)):
        found = shutil.which("flipwave", path=folder)
        if found is not None:
            return Path(found)
    raise MissingBinary(
        f"the program flipwave is neither in ${VARIABLE}, nor in {scripts}, nor in PATH, nor in {tree}; "
        "install the package as a wheel, or build it with `cargo build --release --package flipwave-cli`"
    )


class _Lines:
    """Reads a stream to its end in a thread, so that the program never blocks on a full pipe."""

    def __init__(self, stream: IO[str]) -> None:
        self.lines: list[str] = []
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            self.lines.extend(iter(self._stream.readline, ""))

    def text(self) -> str:
        self._thread.join()
        return "".join(self.lines)


def call(arguments: Sequence[str | Path], watch: Callable[[list[str]], None] | None = None) -> str:
    """Calls the program. Returns its standard output.

    ``watch`` is called periodically with the lines of standard error so far. Ctrl-C stops the program as in a
    terminal, with completed rows on disk; a second Ctrl-C ends it immediately.

    Raises :class:`ProgramError` with the program's error message if it fails.
    """
    environment = {**os.environ}
    # Judges of severity run in the Python installation that has this package.
    environment.setdefault("FLIPWAVE_PYTHON", sys.executable)
    process = subprocess.Popen(
        [find(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=environment,
        # A terminal's Ctrl-C only reaches this process, which passes it on once; a second signal would end
        # the program immediately.
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    stdout, stderr = _Lines(process.stdout), _Lines(process.stderr)
    with _Ending(process) as ending:
        try:
            while not ending.within(_PERIOD):
                if watch is not None:
                    watch(stderr.lines)
        except BaseException:
            ending.stop()
            raise
    if process.returncode != 0:
        raise _failure(process.returncode, stderr.text())
    return stdout.text()


class _Ending:
    """Waits for the end of a process in a thread.

    ``Popen.wait`` in the main thread may keep its lock forever if it is interrupted by Ctrl-C; other threads
    receive no Ctrl-C.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        # A pipe whose other end is closed when the process has ended.
        self._ended, end = os.pipe()
        threading.Thread(target=self._wait, args=(end,), daemon=True).start()

    def _wait(self, end: int) -> None:
        self._process.wait()
        os.close(end)

    def within(self, seconds: float | None) -> bool:
        """Returns ``True`` if the process ends within ``seconds``; ``None`` waits without a limit."""
        readable, _, _ = select.select([self._ended], [], [], seconds)
        return bool(readable)

    def stop(self) -> None:
        """Stops the program and waits for its end."""
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                if self.within(0):
                    return
                self._process.send_signal(signal.SIGINT)
                self.within(None)

    def __enter__(self) -> _Ending:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._ended)


def _failure(code: int, stderr: str) -> ProgramError:
    lines = stderr.splitlines()
    messages = [number for number, line in enumerate(lines) if line.startswith("flipwave: ")]
    text = "\n".join(lines[messages[-1] :] if messages else lines).removeprefix("flipwave: ").strip()
    if code < 0:
        text = f"the program was ended by {signal.Signals(-code).name}" + (f": {text}" if text else "")
    kind = UnexpectedOutput if code == 1 else ProgramError
    return kind(text or f"the program ended with exit code {code}", code, stderr)
