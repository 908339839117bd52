#!/bin/sh
# Makes the fuzzer's first inputs in corpus/read from the kernels of the tests.
set -eu
cd "$(dirname "$0")"
corpus=corpus/read
sources=../tests/sources
mkdir -p "$corpus"

opencl() {
  clang-19 -x cl -Xclang -finclude-default-header -cl-std=CL2.0 -O2 -nogpulib \
    -target amdgcn-amd-amdhsa "$@"
}

opencl -mcpu=gfx90a -gdwarf-4 $sources/kernels.cl -o $corpus/dwarf4.co
opencl -mcpu=gfx1100 -gdwarf-5 $sources/kernels.cl -o $corpus/dwarf5.co
opencl -mcpu=gfx906 -gline-tables-only -gz=zlib -mcode-object-version=4 $sources/kernels.cl \
  -o $corpus/zlib.co
opencl -mcpu=gfx1030 -g -gz=zstd -mcode-object-version=6 $sources/kernels.cl -o $corpus/zstd.co
clang-19 -x assembler -target amdgcn-amd-amdhsa -mcpu=gfx90a -Wl,--unresolved-symbols=ignore-all \
  $sources/relocations.s -o $corpus/relocations.co

bundle() {
  clang-offload-bundler-19 -type=o \
    -targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx90a \
    -input=/dev/null -input=$corpus/relocations.co "$@"
}

bundle -output=$corpus/plain.bundle
bundle -compress -output=$corpus/compressed.bundle
host=$(mktemp)
printf '.section .hip_fatbin,"a",@progbits\n.incbin "%s"\n' $corpus/plain.bundle > "$host"
clang-19 -target x86_64-linux-gnu -c -x assembler "$host" -o $corpus/host.o
rm "$host"
