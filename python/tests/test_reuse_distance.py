"""The shipped analysis of memory traces."""

import importlib.util
import random
from collections.abc import Iterator
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "tools" / "reuse_distance.py"


def by_definition(lines: list[int]) -> Iterator[int | None]:
    for time, line in enumerate(lines):
        before = [earlier for earlier in range(time) if lines[earlier] == line]
        yield len(set(lines[before[-1] + 1 : time])) if before else None


def test_reuse_distances_are_those_of_the_definition() -> None:
    spec = importlib.util.spec_from_file_location("reuse_distance", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for seed in range(20):
        numbers = random.Random(seed)
        lines = [numbers.randrange(12) for _ in range(60)]
        expected = list(by_definition(lines))
        assert list(script.distances(lines)) == expected
        # Negative control: another order has other distances.
        assert list(script.distances(sorted(lines))) != expected
