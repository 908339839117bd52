"""Campaigns: faults into kernels, and what comes of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from .errors import MissingArgument, WrongType
from .kernel import Kernel
from .workload import Grid, Launch, Workload


class Campaign:
    """Faults into one launch of a kernel, or into several.

    ``Campaign(kernel, grid, args, outputs=...)`` is one launch, ``Campaign(launches=[...], outputs=...)``
    several. ``outputs`` names the buffers that hold results; ``faults``, ``compare`` and further keywords
    are keys of a campaign file. ``expected`` has what outputs must hold without a fault. Arrays are read
    when something is run, and never written to.
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
        self._workload = Workload(launches, outputs, detectors, expected)
        self.name = name or launches[0].kernel.name
        self._keys = {
            "name": self.name,
            "seed": int(seed),
            "target": self._workload.target,
            "faults": dict(faults or {"model": "flip_one_bit", "count": 1000}),
            "compare": None if compare is None else dict(compare),
            "severity": severity,
            **keys,
        }

    def to_yaml(self, directory: str | os.PathLike[str]) -> Path:
        """Writes ``campaign.yaml`` and the files that it names to a directory; returns its path."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        keys = {key: value for key, value in self._keys.items() if value is not None}
        document = {**keys, "workload": self._workload.write(directory)}
        path = directory / "campaign.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=110))
        return path


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
            raise WrongType("Campaign: both `launches` and a launch; expected `launches`, or `kernel, grid, args`")
        return launches
    if not isinstance(kernel, Kernel):
        raise WrongType(
            f"Campaign: the kernel is {type(kernel).__name__}; expected a flipwave.Kernel, as of "
            "Kernel.from_triton, or `launches`"
        )
    if grid is None or args is None:
        raise MissingArgument(f"Campaign: kernel `{kernel.name}` without `grid` and `args`")
    return [Launch(kernel, grid, args, None, workgroup, local_memory)]
