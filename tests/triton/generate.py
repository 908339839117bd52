"""Compiles the Triton kernels of this folder for a target and writes a campaign for each.

    generate.py --target gfx90a [--kernel NAME ...] --out DIR
    generate.py --list

DIR/NAME contains campaign.yaml and its files. --list prints each kernel with its targets.
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
    arguments = parser.parse_args()
    for kind in KINDS:
        importlib.import_module(kind)
    if arguments.list:
        for name, entry in CASES.items():
            print(name, *entry.targets)
        return
    if arguments.target is None or arguments.out is None:
        parser.error("expected --list, or --target and --out")
    for name in arguments.kernel or CASES:
        if name not in CASES:
            parser.error(f"there is no kernel {name}; expected one of {', '.join(CASES)}")
        entry = CASES[name]
        if arguments.target in entry.targets:
            entry.case(name, arguments.target).write(arguments.target, arguments.out / name)


main()
