"""How bad a fault in the language model is: critical where it writes something else."""

import numpy

VOCABULARY = 260


def another_text(golden, outputs):
    """Of the program's own runs: whether the text is another; and how far off logits are at most."""
    logits, wrong = golden["logits.f32"], outputs["logits.f32"]
    off = numpy.abs(logits - wrong).max() if len(logits) == len(wrong) else numpy.inf
    return {"critical": bytes(golden["stdout"]) != bytes(outputs["stdout"]), "measures": {"off": off}}


def another_token(golden, outputs):
    """Of recorded runs, where the host reads the logits of one token after the other: how many tokens are others."""
    changed = 0
    for name, bytes_read in golden.items():
        if bytes_read.nbytes == VOCABULARY * 4:
            right, wrong = (one.view(numpy.float32) for one in (bytes_read, outputs[name]))
            changed += int(numpy.argmax(right) != numpy.argmax(wrong))
    return {"critical": changed > 0, "measures": {"changed": changed}}
