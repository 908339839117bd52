"""Severity of faults in the language model: critical if the text changes."""

import numpy

VOCABULARY = 260


def another_text(golden, outputs):
    """Severity for runs of the program: whether the text differs, and the maximum error of the logits."""
    logits, wrong = golden["logits.f32"], outputs["logits.f32"]
    off = numpy.abs(logits - wrong).max() if len(logits) == len(wrong) else numpy.inf
    return {"critical": bytes(golden["stdout"]) != bytes(outputs["stdout"]), "measures": {"off": off}}


def another_token(golden, outputs):
    """Severity for captured runs, in which the host reads the logits of each token: number of changed tokens."""
    changed = 0
    for name, bytes_read in golden.items():
        if bytes_read.nbytes == VOCABULARY * 4:
            right, wrong = (logits.view(numpy.float32) for logits in (bytes_read, outputs[name]))
            changed += int(numpy.argmax(right) != numpy.argmax(wrong))
    return {"critical": changed > 0, "measures": {"changed": changed}}
