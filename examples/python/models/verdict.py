"""Severity: SDC is critical if the predicted class changes."""

import flipwave

another_answer = flipwave.checks.top1("logits")
