#!/bin/sh
# Compares the embedded GPU with an NVIDIA GPU of this machine, and writes a report (Markdown):
#
#     tests/cuda/silicon.sh [--quick] [--target sm_80] [--out FOLDER] [--stand-in GPU] [--planted-error]
#
# 1. Outputs of the suite's programs.
# 2. Approximations of 32-bit numbers (ex2, lg2, rcp, sqrt, rsqrt, sin, cos) of all 2^32 inputs, by checksums of 65,536
#    inputs; where they differ, the largest difference. The embedded GPU takes hours for it; --quick takes a sample.
# 3. Rows of faults that hooks inject in both.
#
# --stand-in runs the other side in an application of `flipwave exec --gpu GPU`, in place of silicon, to test this
# script. --planted-error changes the other side in each of the three parts, and must be found.
#
# FLIPWAVE is the program (target/release/flipwave). The report is FOLDER/report.md (target/silicon).
#
# The exit code is 1 if something differs. If there is no GPU, a message says so and the exit code is 3.
exec python3 "$(dirname "$0")/silicon.py" "$@"
