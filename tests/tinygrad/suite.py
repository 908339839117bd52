"""Runs a file of tinygrad's own tests, with a time limit per test, and prints the counts of results.

    suite.py FILE [SECONDS [NAME...]]

Without names, all tests run. The exit code is 1 if a test failed; slow tests are no failures.
"""
import importlib.util
import signal
import sys
import time
import unittest


class TooSlow(BaseException):
    """Raised in a test that exceeds the time limit. Not an `Exception`, which tests might catch."""


def expired(*_: object) -> None:
    raise TooSlow


def load(path: str) -> list[unittest.TestCase]:
    """All tests of a file, in order."""
    spec = importlib.util.spec_from_file_location("tested", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tested"] = module
    spec.loader.exec_module(module)
    tests: list[unittest.TestCase] = []
    pending: list[unittest.TestSuite | unittest.TestCase] = [unittest.defaultTestLoader.loadTestsFromModule(module)]
    while pending:
        first = pending.pop(0)
        if isinstance(first, unittest.TestSuite):
            pending[:0] = list(first)
        else:
            tests.append(first)
    return tests


def run(test: unittest.TestCase, seconds: int) -> tuple[str, str]:
    """The outcome of a test, and the last line of its error."""
    result = unittest.TestResult()
    signal.alarm(seconds)
    try:
        test.run(result)
    except TooSlow:
        return "too slow", ""
    finally:
        signal.alarm(0)
    if result.skipped:
        return "skipped", ""
    errors = result.errors + result.failures
    if errors:
        return "failed", errors[0][1].strip().splitlines()[-1]
    return "passed", ""


def main(path: str, seconds: int, names: list[str]) -> int:
    signal.signal(signal.SIGALRM, expired)
    counts = dict.fromkeys(["passed", "failed", "too slow", "skipped"], 0)
    for test in load(path):
        name = test.id().removeprefix("tested.")
        if names and name.split(".")[-1] not in names:
            continue
        start = time.monotonic()
        outcome, error = run(test, seconds)
        counts[outcome] += 1
        if outcome in ("failed", "too slow"):
            print(f"{outcome}: {name} ({time.monotonic() - start:.1f} s) {error}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()), flush=True)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    limit = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    sys.exit(main(sys.argv[1], limit, sys.argv[3:]))
