"""Compares the embedded GPU with an NVIDIA GPU; see silicon.sh."""

import argparse
import csv
import math
import os
import shutil
import struct
import subprocess
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FUNCTIONS = ["ex2", "lg2", "rcp", "sqrt", "rsqrt", "sin", "cos"]
BLOCK = 1 << 16
# Workgroups of a launch of the sweep.
LAUNCH = 4096
# Blocks whose values are compared if the sums differ.
COMPARED = 4
# Programs whose faults are compared; with --quick, only the first two.
STRUCK = ["mxm", "hotspot", "gaussian", "lud"]


class Side:
    """One of the two GPUs: runs programs of Flipwave, and adapts campaign files."""

    def __init__(self, name, prefix, device, planted_error=False):
        self.name = name
        self.prefix = prefix
        self.device = device
        self.planted_error = planted_error

    def run(self, *arguments, check=True):
        line = [*self.prefix, FLIPWAVE, *map(str, arguments)]
        variables = dict(os.environ)
        if self.prefix:
            # The stand-in takes the place of the driver.
            variables.pop("FLIPWAVE_LIBCUDA", None)
        finished = subprocess.run(line, capture_output=True, text=True, env=variables)
        if check and finished.returncode != 0:
            raise SystemExit(f"{' '.join(line)}: exit code {finished.returncode}\n{finished.stderr}")
        return finished


def campaign(text, target, device):
    """A campaign file for a target and device."""
    kept = [line for line in text.splitlines() if not line.startswith(("target:", "device:"))]
    return "\n".join([*kept, f"target: {target}", f"device: {device}", ""])


def launch(side, file, folder, *options):
    side.run("launch", file, "--out", folder, *options)
    return [path.read_bytes() for path in sorted(folder.glob("output-*.bin"))]


def number(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def distance(left, right):
    """Numbers between two numbers of 32 bits; None if only one is a NaN."""
    if math.isnan(number(left)) or math.isnan(number(right)):
        return 0 if math.isnan(number(left)) and math.isnan(number(right)) else None
    ordered = [bits if bits < 1 << 31 else (1 << 31) - bits for bits in (left, right)]
    return abs(ordered[0] - ordered[1])


class Report:
    def __init__(self):
        self.lines = []
        self.differences = 0

    def add(self, *lines):
        self.lines.extend(lines)

    def table(self, header, rows):
        self.add("", "| " + " | ".join(header) + " |", "|" + "---|" * len(header))
        self.add(*("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), "")

    def result(self, is_equal, text):
        if not is_equal:
            self.differences += 1
        return text if is_equal else f"**{text}**"


def compare_outputs(report, sides, options, work):
    report.add("## Outputs of the suite")
    rows = []
    for source in sorted((ROOT / "examples/suite").glob("*.yaml")):
        outputs = []
        for side in sides:
            file = write_campaign(work, source, options.target, "cuda", side.name)
            planted = ["--seed", 1] if side.planted_error else []
            outputs.append(launch(side, file, work / f"{source.stem}.{side.name}", *planted))
        different = sum(left != right for left, right in zip(*outputs))
        text = "equal" if different == 0 else f"different: {different}"
        size = sum(map(len, outputs[0]))
        rows.append([source.stem, len(outputs[0]), size, report.result(different == 0, text)])
    report.table(["program", "outputs", "bytes", "result"], rows)


def write_campaign(work, source, target, device, name, change=lambda text: text):
    kernels = work / "kernels"
    if not kernels.exists():
        kernels.symlink_to(ROOT / "examples/suite/kernels")
    file = work / f"{source.stem}.{name}.yaml"
    file.write_text(change(campaign(source.read_text(), target, device)))
    return file


def sweep_campaign(work, options, side, function, blocks):
    """A campaign file that computes blocks, a range."""
    name = f"{function}.{'planted' if side.planted_error else 'plain'}.ptx"
    module = (HERE / "sweep.ptx").read_text().replace("FUNCTION", f"{function}.approx.f32")
    if side.planted_error:
        # One more in the last place, in one of 65,536 results.
        planted = "setp.eq.u32 %p, %r4, 17;\n    @%p xor.b32 %r6, %r6, 1;\n    st.global"
        module = module.replace("st.global", planted, 1)
    (work / name).write_text(module)
    file = work / f"{function}.{side.name}.yaml"
    file.write_text(
        f"name: sweep\ntarget: {options.target}\ndevice: cuda\nworkload:\n  kernel:\n"
        f"    code_object: {name}\n    name: sweep\n    grid: {256 * len(blocks)}\n    workgroup: 256\n    args:\n"
        f"      - {{buffer: sums, type: u32, count: {len(blocks)}, output: true}}\n"
        f"      - {{buffer: results, type: u32, count: {BLOCK}, output: true}}\n"
        f"      - {{scalar: {blocks.start}, type: u32}}\n"
        f"      - {{scalar: {blocks.step}, type: u32}}\n"
    )
    return file


def sweep(work, options, side, function, blocks):
    file = sweep_campaign(work, options, side, function, blocks)
    sums, results = launch(side, file, work / f"{function}.{side.name}.out")
    return struct.unpack(f"<{len(blocks)}I", sums), struct.unpack(f"<{BLOCK}I", results)


def compare_sweeps(report, sides, options, work):
    report.add("## Approximations of 32-bit numbers", "")
    if options.quick:
        # Spread over all exponents, signs included.
        chosen = [range(0, 1 << 16, 4099)]
        report.add(f"A sample of {len(chosen[0]) * BLOCK:,} of 2^32 inputs.")
    else:
        chosen = [range(first, first + LAUNCH) for first in range(0, 1 << 16, LAUNCH)]
        report.add("All 2^32 inputs.")
    rows = []
    for function in FUNCTIONS:
        count, differing = 0, []
        for blocks in chosen:
            sums = zip(*(sweep(work, options, side, function, blocks)[0] for side in sides))
            count += len(blocks)
            differing += [block for block, (left, right) in zip(blocks, sums) if left != right]
        text = "equal"
        if differing:
            text = largest(work, options, sides, function, differing)
        result = report.result(not differing, text)
        rows.append([f"{function}.approx.f32", f"{count * BLOCK:,}", len(differing), result])
    report.table(["operation", "inputs", "blocks of 65,536 that differ", "result"], rows)


def largest(work, options, sides, function, differing):
    """Describes the largest difference in some of the blocks that differ."""
    step = max(1, len(differing) // COMPARED)
    most, count, example, is_nan = 0, 0, None, False
    for block in differing[::step][:COMPARED]:
        left, right = (sweep(work, options, side, function, range(block, block + 1))[1] for side in sides)
        for offset, pair in enumerate(zip(left, right)):
            if pair[0] == pair[1]:
                continue
            count += 1
            gap = distance(*pair)
            is_nan |= gap is None
            if example is None or (gap is not None and gap > most):
                most, example = gap or 0, (block * BLOCK + offset, *pair)
    if example is None:
        return "differs, but not when it is repeated"
    bits = ", ".join(f"{value:#010x}" for value in example[1:])
    text = f"largest difference {most} ulp ({count} results of the compared blocks), "
    text += f"for {example[0]:#010x}: {bits}"
    return text + ("; NaN on one side only" if is_nan else "")


def read_rows(work, options, side, program, group):
    """Rows of faults in registers that instructions of a group write."""
    count = 10 if options.quick else 200

    def change(text):
        text = text.replace("groups: [vector_register]", f"groups: [{group}]")
        return "\n".join(
            f"  count: {count}" if line.startswith("  count:") else line for line in text.splitlines()
        )

    source = ROOT / f"examples/suite/{program}.yaml"
    file = write_campaign(work, source, options.target, side.device, f"{side.name}.{group}", change)
    out = work / f"{program}.{side.name}.{group}.results"
    planted = ["--seed", 7] if side.planted_error else []
    # The embedded GPU of this program, without stand-in.
    runner = Side(side.name, [], side.device) if side.device == "embedded" else side
    runner.run("run", file, "--by", "hook", "--out", out, "--force", "--without", "dead-values", *planted)
    with open(out / "results.csv", newline="") as table:
        return list(csv.DictReader(table))


def counts(rows):
    outcomes = ("masked", "sdc", "due")
    return " ".join(f"{name} {sum(row['outcome'] == name for row in rows)}" for name in outcomes)


def compare_rows(report, sides, options, work):
    report.add("## Faults in results of 32-bit floating-point instructions")
    # Drivers do not count instructions.
    ignored = ("instructions", "timing_changed")
    rows, examples = [], []
    programs = STRUCK[:2] if options.quick else STRUCK
    for program in programs:
        tables = [read_rows(work, options, side, program, "fp32") for side in sides]
        equal = 0
        for left, right in zip(*tables):
            columns = [name for name in left if name not in ignored and left[name] != right.get(name)]
            if not columns:
                equal += 1
            elif len(examples) < 10:
                values = ", ".join(f"{name}: {left[name]} / {right.get(name)}" for name in columns[:4])
                examples.append([program, left["site"], values])
        total = max(map(len, tables))
        result = report.result(equal == total, f"{equal} of {total} equal")
        rows.append([program, *map(counts, tables), result])
    report.table(["program", *(side.name for side in sides), "rows"], rows)
    if examples:
        report.add(f"Rows that differ ({sides[0].name} / {sides[1].name}):")
        report.table(["program", "site", "values"], examples)
    report.add("## Faults in all registers")
    report.add("", "Addresses, and what lies around a buffer, are not those of the embedded GPU: outcomes may differ.")
    rows = [
        [program, *(counts(read_rows(work, options, side, program, "vector_register")) for side in sides)]
        for program in programs
    ]
    report.table(["program", *(side.name for side in sides)], rows)


def main():
    parser = argparse.ArgumentParser(prog="silicon.sh")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--out", type=Path, default=ROOT / "target/silicon")
    parser.add_argument("--stand-in", metavar="GPU")
    parser.add_argument("--planted-error", action="store_true")
    options = parser.parse_args()
    stand_in = [FLIPWAVE, "exec", "--gpu", options.stand_in or options.target, "--"]
    name = "stand-in" if options.stand_in else "silicon"
    # Launches of the embedded GPU go through its stand-in for the driver, too: the same program on both sides.
    embedded = Side("embedded", [FLIPWAVE, "exec", "--gpu", options.target, "--"], "embedded")
    other = Side(name, stand_in if options.stand_in else [], "cuda", options.planted_error)
    sides = [embedded, other]
    work = options.out / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)

    source = ROOT / "examples/suite/hotspot.yaml"
    tried = other.run("launch", write_campaign(work, source, options.target, "cuda", "first"), "--out",
                      work / "first", check=False)
    if tried.returncode != 0:
        reason = tried.stderr.strip().removeprefix("flipwave: ")
        print(f"silicon.sh: the comparison with an NVIDIA GPU was not run: {reason}", file=sys.stderr)
        return 3
    gpu = tried.stdout.split(": ", 1)[0].removeprefix("completed on ")

    report = Report()
    report.add("# Embedded GPU and NVIDIA GPU", "")
    if options.stand_in:
        report.add("**The other side is Flipwave's stand-in for NVIDIA's driver, not silicon.**", "")
    version = subprocess.run([FLIPWAVE, "--version"], capture_output=True, text=True).stdout.strip()
    report.add(f"{gpu}; code for {options.target}; {version}; {date.today()}.", "")
    compare_outputs(report, sides, options, work)
    compare_sweeps(report, sides, options, work)
    compare_rows(report, sides, options, work)
    summary = "Everything is equal." if report.differences == 0 else f"Lines that differ: {report.differences}."
    file = options.out / "report.md"
    report.lines.insert(2, f"{summary}\n")
    file.write_text("\n".join(report.lines) + "\n")
    print(f"{summary} Report: {file}")
    return 0 if report.differences == 0 else 1


FLIPWAVE = str(Path(os.environ.get("FLIPWAVE", ROOT / "target/release/flipwave")).absolute())
if __name__ == "__main__":
    sys.exit(main())
