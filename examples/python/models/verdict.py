"""What is critical."""

import flipwave

another_answer = flipwave.checks.top1("logits")
