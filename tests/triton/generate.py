"""Compiles Triton kernels for a target, and writes a campaign of each.

    generate.py --target gfx90a [--kernel NAME ...] --out DIR
    generate.py --list

DIR/NAME has campaign.yaml, the code object with Triton's metadata, what buffers hold before, and what
outputs must hold after the launch. --list prints each kernel with its targets.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import triton
from case import CASES, ELEMENTS, Buffer, Case
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import atomics  # noqa: F401
import attention  # noqa: F401
import conversions  # noqa: F401
import convolutions  # noqa: F401
import elementwise  # noqa: F401
import layouts  # noqa: F401
import matmuls  # noqa: F401
import normalisation  # noqa: F401
import reductions  # noqa: F401
import scans_and_sorts  # noqa: F401

# What Triton's launcher finds out of an argument: addresses and numbers that 16 divides, and buffers
# below 2 GiB, to which offsets have 32 bits.
DIVISIBLE = ["tt.divisibility", 16]
SMALL = ["tt.pointer_range", 32]


def compile_case(case: Case, target: str) -> Any:
    """The case's kernel for a target, as Triton compiles it where it is launched."""
    signature: dict[str, str] = {}
    attributes = {}
    for place, name in enumerate(case.kernel.arg_names):
        argument = case.arguments.get(name)
        if argument is None:
            signature[name] = "constexpr"
        elif isinstance(argument, Buffer):
            signature[name] = "*" + ELEMENTS[argument.element][0]
            attributes[(place,)] = [DIVISIBLE, SMALL]
        else:
            signature[name] = ELEMENTS[argument.element][0]
            if isinstance(argument.value, int) and argument.value % 16 == 0:
                attributes[(place,)] = [DIVISIBLE]
    wave = 64 if target.startswith("gfx9") else 32
    return triton.compile(
        ASTSource(case.kernel, signature, dict(case.constants), attributes),
        target=GPUTarget("hip", target, wave),
        options={"num_warps": case.warps, "num_stages": case.stages},
    )


def write(case: Case, target: str, folder: Path) -> None:
    """Writes the case's campaign to a folder, with all files that it names."""
    compiled = compile_case(case, target)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.hsaco").write_bytes(compiled.asm["hsaco"])
    (folder / "kernel.amdgcn").write_text(compiled.asm["amdgcn"])
    metadata = {
        key: getattr(compiled.metadata, key)
        for key in ("name", "num_warps", "warp_size", "num_ctas", "shared", "global_scratch_size", "profile_scratch_size")
    }
    (folder / "kernel.json").write_text(json.dumps(metadata))
    arguments = []
    compare = {}
    for name in case.kernel.arg_names:
        argument = case.arguments.get(name)
        if argument is None:
            continue
        if not isinstance(argument, Buffer):
            arguments.append({"scalar": argument.value, "type": argument.element})
            continue
        (folder / f"{name}.bin").write_bytes(argument.values.tobytes())
        entry: dict[str, Any] = {"buffer": name, "type": argument.element, "count": argument.values.size, "init": {"file": f"{name}.bin"}}
        if argument.expected is not None:
            (folder / f"{name}.expected").write_bytes(argument.expected.tobytes())
            entry |= {"output": True, "expected": f"{name}.expected"}
            compare[name] = dict(argument.tolerance)
        arguments.append(entry)
    campaign = {
        "name": case.name,
        "target": target,
        "workload": {
            "kernel": {
                "code_object": "kernel.hsaco",
                "metadata": "kernel.json",
                "grid": {"workgroups": list(case.grid)},
                "args": arguments,
            }
        },
        "faults": {"model": "flip_one_bit", "count": 1000},
        "compare": compare,
    }
    # JSON is YAML.
    (folder / "campaign.yaml").write_text(json.dumps(campaign, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--target")
    parser.add_argument("--kernel", nargs="*")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.list:
        for name, entry in CASES.items():
            print(name, *entry.targets)
        return
    for name in asked.kernel or CASES:
        entry = CASES[name]
        if asked.target in entry.targets:
            try:
                write(entry.case(name, asked.target), asked.target, asked.out / name)
            except Exception as error:
                print(f"{name}: {type(error).__name__} {error}", file=sys.stderr)


main()
