#!/bin/sh
# Runs clinfo and an OpenCL program with AMD's OpenCL on the embedded GPU, in a root file system created by root.sh:
#
#     tests/rocm/opencl.sh DIR GPU
#
# Installs the required packages into the root file system first. The exit code is 1 if clinfo does not find the GPU or
# the program does not pass.
set -eu

if [ $# != 2 ]; then
    echo "usage: $0 DIR GPU" >&2
    exit 2
fi
here=$(dirname "$0")
"$here/root.sh" "$(cat "$1/.flipwave-root")" "$1" rocm-opencl-icd clinfo ocl-icd-opencl-dev gcc libc6-dev >&2
exec "$here/in.sh" "$1" sh -euc '
    built=/var/cache/flipwave-opencl
    mkdir -p $built
    gcc -O2 -o $built/opencl /mnt/tests/rocm/opencl.c -lOpenCL
    flipwave exec --gpu "$1" -- clinfo 2>&1 | grep -q "Device Name *$1" || {
        echo "clinfo does not find $1"
        exit 1
    }
    for options in "" --strict; do
        text=$(flipwave exec --gpu "$1" $options -- $built/opencl 2>&1) || true
        [ "$(echo "$text" | tail -n 1)" = passed ] || {
            echo "opencl.c${options:+ with }$options: $text"
            exit 1
        }
    done' sh "$2"
