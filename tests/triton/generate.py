"""Compiles the Triton kernels of this folder for a target, and writes a campaign of each.

    generate.py --target gfx90a [--kernel NAME ...] --out DIR
    generate.py --list

DIR/NAME has campaign.yaml and the files that it names. --list prints each kernel with its targets.
"""

import argparse
import importlib
from pathlib import Path

from case import CASES, TARGETS

KINDS = (
    "elementwise",
    "conversions",
    "reductions",
    "normalisation",
    "matmuls",
    "attention",
    "convolutions",
    "scans_and_sorts",
    "atomics",
    "layouts",
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--kernel", nargs="+", metavar="NAME")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    for kind in KINDS:
        importlib.import_module(kind)
    if asked.list:
        for name, entry in CASES.items():
            print(name, *entry.targets)
        return
    if asked.target is None or asked.out is None:
        parser.error("expected --list, or --target and --out")
    for name in asked.kernel or CASES:
        if name not in CASES:
            parser.error(f"there is no kernel {name}; expected one of {', '.join(CASES)}")
        entry = CASES[name]
        if asked.target in entry.targets:
            entry.case(name, asked.target).write(asked.target, asked.out / name)


main()
