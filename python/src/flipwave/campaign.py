"""Campaigns: fault injection into kernels, and its results."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from . import frames, values
from .element import Array, ElementType, read
from .errors import MissingArgument, NoResults, ProgramError, WrongType, WrongValue
from .judge import Server
from .kernel import Kernel
from .program import call
from .progress import Bar
from .workload import Grid, Launch, Workload

if TYPE_CHECKING:
    import pandas


class Campaign:
    """Fault injection into one or several kernel launches.

    ``Campaign(kernel, grid, args, outputs=...)`` describes one launch,
    ``Campaign(launches=[...], outputs=...)`` several. ``outputs`` names the buffers that hold results.
    ``faults``, ``compare`` and further keywords are keys of a campaign file. ``expected`` gives the contents
    that outputs must have after the golden run. Arrays are read when a method runs the program, and are never
    modified.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        grid: Grid | None = None,
        args: Mapping[str, Any] | None = None,
        *,
        launches: Sequence[Launch] | None = None,
        outputs: Iterable[Any] = (),
        faults: Mapping[str, Any] | None = None,
        compare: Mapping[str, Any] | None = None,
        expected: Mapping[str, Any] | None = None,
        severity: Any = None,
        seed: int = 0,
        name: str | None = None,
        workgroup: int | Sequence[int] | None = None,
        local_memory: int | None = None,
        detectors: Iterable[Any] = (),
        **keys: Any,
    ) -> None:
        launches = _launches(kernel, grid, args, launches, workgroup, local_memory)
        self._workload: Workload | None = Workload(launches, outputs, detectors, expected)
        # Names of C++ kernels may contain characters that campaign names must not contain.
        self.name = name or re.sub(r"[^A-Za-z0-9_.-]+", "_", launches[0].kernel.name).strip("_.")
        self._keys: dict[str, Any] = {
            "name": self.name,
            "seed": values.integer(seed, "seed"),
            "target": self._workload.target,
            "faults": _faults(faults) or {"model": "flip_one_bit", "count": 1000},
            "compare": _checked_mapping(compare, "compare"),
            **{key: values.plain(value, key) for key, value in keys.items()},
        }
        self._severity = _judge(severity)
        self._path: Path | None = None
        self._options: list[str] = []
        self._variant: str | None = None
        self._folder: Path | None = None

    @classmethod
    def from_yaml(
        cls, path: str | os.PathLike[str], *, seed: int | None = None, variant: str | None = None
    ) -> Campaign:
        """Creates the campaign of a file.

        ``seed`` replaces the file's seed, and ``variant`` selects a variant of a file with ``vary``.
        """
        campaign = cls.__new__(cls)
        campaign._workload = None
        campaign._path = values.path(path, "from_yaml: path")
        campaign._options = []
        if seed is not None:
            campaign._options += ["--seed", str(values.integer(seed, "from_yaml: seed"))]
        if variant is not None:
            campaign._options += ["--variant", values.text(variant, "from_yaml: variant")]
        campaign._variant = variant
        campaign._severity = None
        campaign._keys = {}
        campaign.name = campaign._path.stem
        campaign._folder = None
        return campaign

    def __repr__(self) -> str:
        if self._workload is None:
            variant = "" if self._variant is None else f", variant={self._variant!r}"
            return f"Campaign.from_yaml({str(self._path)!r}{variant})"
        kernels = dict.fromkeys(launch.kernel.name for launch in self._workload.launches)
        outputs = [buffer.name for buffer in self._workload.outputs]
        return (
            f"<Campaign {self.name!r}: {len(self._workload.launches)} launches of {', '.join(kernels)} on "
            f"{self._workload.target or 'the default target'}, outputs={outputs}, "
            f"faults={self._keys['faults']}>"
        )

    @property
    def results(self) -> Path:
        """The folder with the results of the last run."""
        if self._folder is None:
            raise NoResults(f"campaign `{self.name}` has no results yet; call .run() first")
        return self._folder if self._variant is None else self._folder / self._variant

    def to_yaml(self, directory: str | os.PathLike[str]) -> Path:
        """Writes ``campaign.yaml`` and the files that it names to a directory. Returns its path."""
        if callable(self._severity):
            raise WrongValue(
                f"campaign `{self.name}`: severity is a function of this process and cannot be written to a "
                'file; use severity="FILE.py:FUNCTION"'
            )
        return self._write(values.path(directory, "to_yaml: directory"), self._severity)

    def golden(self, all: bool = False) -> dict[str, Array]:
        """Executes the golden run. Returns the contents of the outputs, or of all buffers with ``all``.

        Raises :class:`UnexpectedOutput` if an output differs from ``expected``.
        """
        with self._file() as (file, scratch):
            out = scratch / "golden"
            call(["golden", file, "--out", out, *(["--all"] if all else []), *self._options])
            written = json.loads((out / "golden.json").read_text())["outputs"]
            return {output["name"]: self._output(output, out) for output in written}

    def run(
        self,
        workers: int | None = None,
        progress: bool = True,
        out: str | os.PathLike[str] | None = None,
        count: int | None = None,
        *,
        resume: bool = False,
        force: bool = False,
    ) -> pandas.DataFrame:
        """Injects the faults. Returns one row per fault, with the columns of ``results.csv``.

        ``out`` is the folder for the results; by default, they are kept until Python exits. ``count``
        replaces the campaign's number of faults. Ctrl-C stops the run; completed rows are kept in
        ``results``, and ``resume=True`` continues after them. ``force=True`` replaces existing results in
        ``out``.
        """
        if out is not None:
            self._folder = values.path(out, "run: out").absolute()
        elif self._folder is None or not resume:
            self._folder = Path(tempfile.mkdtemp(dir=_results_folder()))
        arguments: list[str | Path] = ["--out", self._folder, *self._options]
        arguments += [] if workers is None else ["--workers", str(values.integer(workers, "run: workers"))]
        arguments += [] if count is None else ["--count", str(values.integer(count, "run: count"))]
        arguments += ["--resume"] if resume else []
        arguments += ["--force"] if force else []
        with self._file() as (file, _), Bar(self.name, self.results / "results.csv", progress) as bar:
            call(["run", file, *arguments], bar.look)
        return frames.read_results(self.results)

    def replay(self, row: int | str | pandas.Series[Any]) -> pandas.Series[Any]:
        """Repeats one injection, given as a row of the results, its index, or a fault site."""
        if isinstance(row, str):
            site = row
        elif hasattr(row, "site"):
            site = str(row.site)
        else:
            table = frames.read_results(self.results)
            rows = table[table["injection"] == row]
            if rows.empty:
                raise WrongValue(
                    f"campaign `{self.name}`: no row {row}; expected 0 to {len(table) - 1}"
                )
            site = str(rows["site"].iloc[0])
        with self._file() as (file, _):
            return frames.facts(call(["replay", file, "--site", site, *self._options]))

    def summary(self) -> pandas.DataFrame:
        """Reads ``summary.csv`` or ``variants.csv``: rates of the last run with intervals."""
        variants = self.results / "variants.csv"
        return frames.read(variants if variants.exists() else self.results / "summary.csv")

    def rates(self, by: str = "kernel", causes: bool = False) -> pandas.DataFrame:
        """Computes rates of the last run with intervals, by one property of the faults.

        ``by`` is ``kernel``, ``label``, ``line``, ``opcode``, ``group``, ``register``, ``bit`` or another
        scope of reports. Each row is one outcome for one ``value`` of the property; ``part_of_sdc`` is the
        share of this value in all SDC. With ``causes``, the table also has one row per cause of an outcome;
        the cause of SDC is its severity.
        """
        with tempfile.TemporaryDirectory() as folder:
            call(["report", self.results, "--out", Path(folder) / "report.html", "--csv", folder])
            table = frames.read(Path(folder) / "aggregates.csv")
        if by not in set(table["scope"]):
            known = ", ".join(table["scope"].unique())
            raise WrongValue(f"campaign `{self.name}`: no rates by `{by}`; expected one of {known}")
        table = table[table["scope"] == by].drop(columns=["campaign", "folder", "scope"])
        if not causes:
            table = table[table["cause"].isna()].drop(columns="cause")
        return table.reset_index(drop=True)

    def report(self, path: str | os.PathLike[str] = "report.html") -> Path:
        """Writes an HTML report of the last run. Returns its path."""
        page = values.path(path, "report: path")
        call(["report", self.results, "--out", page])
        return page

    def profile(self) -> pandas.DataFrame:
        """Counts the fault space by instruction, without injecting any fault."""
        with self._file() as (file, scratch):
            table = scratch / "profile.csv"
            call(["profile", file, "--csv", table, *self._options])
            return frames.read(table)

    @contextmanager
    def _file(self) -> Iterator[tuple[Path, Path]]:
        """Provides the campaign as a file, and a temporary folder, in memory if it fits."""
        needed = 0 if self._workload is None else self._workload.input_bytes
        with tempfile.TemporaryDirectory(prefix="flipwave.", dir=_memory(needed)) as folder:
            scratch = Path(folder)
            if self._path is not None:
                yield self._path, scratch
                return
            try:
                if not callable(self._severity):
                    yield self._write(scratch, self._severity), scratch
                    return
                with Server(self._severity, scratch / "judge.socket") as server:
                    try:
                        yield self._write(scratch, {"socket": str(server.path)}), scratch
                    except ProgramError as error:
                        # The exception that the judge raised is the cause, with its traceback.
                        raise error from server.failure
            except ProgramError as error:
                _keep_named_files(error, scratch)
                raise

    def _write(self, directory: Path, severity: Any) -> Path:
        if self._workload is None:
            raise WrongValue(f"campaign `{self.name}` already is the file {self._path}")
        directory.mkdir(parents=True, exist_ok=True)
        keys = {key: value for key, value in self._keys.items() if value is not None}
        if severity is not None:
            keys["severity"] = severity
        document = {**keys, "workload": self._workload.write(directory)}
        path = directory / "campaign.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=110))
        return path

    def _output(self, written: Mapping[str, Any], folder: Path) -> Array:
        """Reads a buffer's contents after the golden run, with the dtype and shape of its array."""
        buffer = None if self._workload is None else self._workload.output(written["name"])
        element = ElementType.named(written["type"])
        if buffer is None:
            return read(folder / written["file"], element, tuple(written["shape"] or (written["count"],)))
        array = read(folder / written["file"], element, buffer.array.shape)
        return array.view(buffer.array.dtype)


def compare(
    a: Campaign | pandas.DataFrame | str | os.PathLike[str],
    b: Campaign | pandas.DataFrame | str | os.PathLike[str],
    page: str | os.PathLike[str] | None = None,
) -> pandas.DataFrame:
    """Computes how the rates of ``b`` differ from those of ``a``, with intervals: ``compare.csv``.

    ``a`` and ``b`` are campaigns that have run, tables of their results, or folders. ``page`` is the path for
    an HTML page.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "compare.html" if page is None else values.path(page, "compare: page")
        call(["compare", _results(a), _results(b), "--out", out, "--csv", folder])
        return frames.read(Path(folder) / "compare.csv")


def _results(given: Campaign | pandas.DataFrame | str | os.PathLike[str]) -> Path:
    if isinstance(given, Campaign):
        return given.results
    if isinstance(given, (str, os.PathLike)):
        return Path(given)
    if "results" not in getattr(given, "attrs", {}):
        raise WrongValue(
            "compare: the table does not come from .run(); expected such a table, a campaign, or a folder"
        )
    return Path(given.attrs["results"])


def _checked_mapping(given: Any, where: str) -> dict[str, Any] | None:
    """Checks a mapping of a campaign file, and converts its values."""
    if given is None:
        return None
    checked: dict[str, Any] = values.plain(values.mapping(given, where), where)
    return checked


def _faults(given: Any) -> dict[str, Any] | None:
    """Checks the faults, and makes the path of the model's file absolute, since the campaign file is written
    elsewhere."""
    if isinstance(given, Mapping) and isinstance(model := given.get("model"), Mapping):
        is_path = ("c", "drawn_values", "flip_drawn_mask")
        absolute = {
            key: str(Path(value).absolute())
            if key in is_path and isinstance(value, (str, os.PathLike))
            else value
            for key, value in model.items()
        }
        given = {**given, "model": absolute}
    return _checked_mapping(given, "faults")


def _keep_named_files(error: ProgramError, scratch: Path) -> None:
    """Copies the files that an error names from a temporary folder to one that exists until Python exits."""
    if str(scratch) not in error.text + error.stderr:
        return
    kept = Path(tempfile.mkdtemp(prefix="failed.", dir=_results_folder()))
    for file in scratch.rglob("*"):
        # Kernels and the campaign are small; arrays are kept only if the error is about them.
        is_named = str(file) in error.text or file.name == "campaign.yaml" or file.parent.name == "kernels"
        if file.is_file() and is_named:
            copy = kept / file.relative_to(scratch)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    error.args = (error.text.replace(str(scratch), str(kept)),)
    error.stderr = error.stderr.replace(str(scratch), str(kept))


@functools.cache
def _results_folder() -> str:
    """Creates the folder for results without ``out``. It is removed when Python exits."""
    folder = tempfile.TemporaryDirectory(prefix="flipwave.")
    atexit.register(folder.cleanup)
    return folder.name


def _memory(needed: int) -> str | None:
    """Returns a folder in memory with room for ``needed`` bytes of inputs and twice as many other bytes, or
    ``None`` to use the default folder for temporary files."""
    folder = "/dev/shm"
    try:
        has_room = os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 3 * needed + (64 << 20)
    except OSError:
        return None
    return folder if has_room else None


def _judge(severity: Any) -> Any:
    """Converts ``severity`` to its form in a campaign file; a function is returned unchanged."""
    if severity is None or callable(severity) or isinstance(severity, Mapping):
        return severity
    if isinstance(severity, str) and severity.count(":") >= 1:
        file, _, function = severity.rpartition(":")
        return {"python": f"{Path(file).absolute()}:{function}"}
    raise WrongType(
        f"severity is {severity!r}; expected a function (golden, outputs), a string FILE.py:FUNCTION, or a "
        "mapping as in a campaign file, such as {'command': [...]}"
    )


def _launches(
    kernel: Kernel | None,
    grid: Grid | None,
    args: Mapping[str, Any] | None,
    launches: Sequence[Launch] | None,
    workgroup: int | Sequence[int] | None,
    local_memory: int | None,
) -> Sequence[Launch]:
    if launches is not None:
        if kernel is not None or grid is not None or args is not None:
            raise WrongType(
                "Campaign: both `launches` and a launch; expected `launches`, or `kernel, grid, args`"
            )
        if isinstance(launches, (Launch, str)) or not isinstance(launches, Sequence):
            raise WrongType(
                f"Campaign: launches is {type(launches).__name__}; expected a list of flipwave.Launch"
            )
        return launches
    if not isinstance(kernel, Kernel):
        raise WrongType(
            f"Campaign: the kernel is {type(kernel).__name__}; expected a flipwave.Kernel, for example from "
            "Kernel.from_triton, or `launches`"
        )
    if grid is None or args is None:
        raise MissingArgument(f"Campaign: kernel `{kernel.name}` without `grid` and `args`")
    return [Launch(kernel, grid, args, None, workgroup, local_memory)]
