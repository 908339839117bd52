"""Severity of faults in training: critical if the network does not recover."""

import re

LAST_STEPS = 3


def results(text):
    """The losses of the last steps, and the accuracy in percent."""
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+|nan|inf)", text)]
    accuracy = re.search(r"accuracy ([0-9.]+)", text)
    return losses[-LAST_STEPS:], float(accuracy[1]) if accuracy else 0.0


def not_healed(golden, outputs):
    """Critical unless the last losses are within 0.05 of the golden run's and the accuracy within 2 %."""
    (right, best), (wrong, reached) = (results(bytes(run["stdout"]).decode(errors="replace")) for run in (golden, outputs))
    off = max((abs(a - b) for a, b in zip(right, wrong)), default=float("inf"))
    healed = len(right) == len(wrong) and off <= 0.05 and abs(best - reached) <= 2
    return {"critical": not healed, "measures": {"off": off, "accuracy": reached}}
