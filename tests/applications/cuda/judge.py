"""A judge of severity that finds the output `stdout` by its name: wrong sums are critical."""

import json
import socket

messages = socket.socket(fileno=0).makefile("rwb")


def answer(line):
    messages.write(json.dumps(line).encode() + b"\n")
    messages.flush()


outputs = json.loads(messages.readline())["outputs"]
place = {output["name"]: number for number, output in enumerate(outputs)}["stdout"]
lengths = [output["bytes"] for output in outputs]
golden = [messages.read(length) for length in lengths][place]
answer({"ready": True})
while line := messages.readline():
    question = json.loads(line)
    found = [messages.read(length) for length in question.get("bytes", lengths)][place]
    is_critical = found.splitlines()[-1:] != golden.splitlines()[-1:]
    answer({"index": question["index"], "severity": "critical" if is_critical else "tolerable"})
