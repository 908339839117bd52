#!/bin/sh
# Creates seed inputs for a libFuzzer target in libfuzzer/corpus from files of the tests and the
# examples. `capture` needs none, because it creates a capture from almost any input.
set -eu
target=$1
cd "$(dirname "$0")"
corpus=libfuzzer/corpus/$target
sources=../hal/amdgpu/codeobj/tests/sources
mkdir -p "$corpus"

opencl() {
  clang-22 -x cl -Xclang -finclude-default-header -cl-std=CL2.0 -O2 -nogpulib \
    -target amdgcn-amd-amdhsa "$@"
}

code_objects() {
  opencl -mcpu=gfx90a -gdwarf-4 $sources/kernels.cl -o "$1/dwarf4.co"
  opencl -mcpu=gfx1100 -gdwarf-5 $sources/kernels.cl -o "$1/dwarf5.co"
  opencl -mcpu=gfx906 -gline-tables-only -gz=zlib -mcode-object-version=4 $sources/kernels.cl \
    -o "$1/zlib.co"
  opencl -mcpu=gfx1030 -g -gz=zstd -mcode-object-version=6 $sources/kernels.cl -o "$1/zstd.co"
  clang-22 -x assembler -target amdgcn-amd-amdhsa -mcpu=gfx90a \
    -Wl,--unresolved-symbols=ignore-all $sources/relocations.s -o "$1/relocations.co"
}

bundle() {
  clang-offload-bundler-22 -type=o \
    -targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx90a \
    -input=/dev/null -input="$corpus/relocations.co" "$@"
}

site() {
  at='dispatch=1 workgroup=0,0,0 wave=0 pc=0x40 occurrence=0'
  window='window=100 rate=0x80000000 key=0x00001234'
  printf '%s' "$at lane=17 register=v4 flip=0x00000400" > "$corpus/register"
  printf '%s' "$at $window register=m0 set=0x00000001" > "$corpus/intermittent"
  printf '%s' "$at lanes=active register=a0 relative_f64=-0.25" > "$corpus/relative"
  printf '%s' "$at buffer=3 offset=0x100000000 stuck_at_zero=0x00000001" > "$corpus/memory"
  printf '%s' 'opcode=v_fma_f32 units=104 unit=103 simd=3 slot=15 destination=1' \
    ' stuck_at_one=0x00000001' > "$corpus/permanent"
}

ptx() {
  for kernel in ../examples/suite/kernels/*.cl; do
    clang-22 -x cl -Xclang -finclude-default-header -cl-std=CL2.0 -O1 -gline-tables-only \
      --target=nvptx64-nvidia-nvcl -march=sm_80 -Xclang -target-feature -Xclang +ptx78 -S \
      "$kernel" -o "$corpus/$(basename "$kernel" .cl).ptx"
  done
}

# Prints a number as little-endian bytes: number, bytes.
number() {
  rest=$1
  for _ in $(seq "$2"); do
    printf "\\$(printf %03o $((rest & 255)))"
    rest=$((rest >> 8))
  done
}

# Prints a fat binary with PTX for sm_80: file, flags of the compression, size of the text.
container() {
  bytes=$(wc -c < "$1")
  number 0xba55ed50 4; number 0x100001 4; number $((64 + bytes)) 8
  number 0x1010001 4; number 64 4; number "$bytes" 8
  number $(($2 ? bytes : 0)) 4; number 0 8; number 80 4; number 0 8
  number "$2" 8; number 0 8; number "$3" 8
  cat "$1"
}

# Fat binaries with a text, a block of literals of LZ4, and a raw block of Zstandard.
fat_binary() {
  text='.version 8.0 .target sm_80 .address_size 64 .entry k() { ret; }'
  content=$(mktemp)
  printf '%s' "$text" > "$content"
  container "$content" 0 0 > "$corpus/text"
  { number 0xf0 1; number $((${#text} - 15)) 1; printf '%s' "$text"; } > "$content"
  container "$content" 0x2000 ${#text} > "$corpus/lz4"
  { number 0xfd2fb528 4; number 0x20 1; number ${#text} 1; number $((${#text} << 3 | 1)) 3
    printf '%s' "$text"; } > "$content"
  container "$content" 0x8000 ${#text} > "$corpus/zstd"
  rm "$content"
}

case $target in
site) site ;;
ptx) ptx ;;
fat_binary) fat_binary ;;
campaign) cp ../examples/campaigns/*.yaml ../examples/emulation/*.yaml "$corpus" ;;
code_object)
  code_objects "$corpus"
  bundle -output="$corpus/plain.bundle"
  bundle -compress -output="$corpus/compressed.bundle"
  host=$(mktemp)
  printf '.section .hip_fatbin,"a",@progbits\n.incbin "%s"\n' "$corpus/plain.bundle" > "$host"
  clang-22 -target x86_64-linux-gnu -c -x assembler "$host" -o "$corpus/host.o"
  rm "$host"
  ;;
metadata)
  files=$(mktemp -d)
  code_objects "$files"
  for file in "$files"/*.co; do
    llvm-objcopy-22 --dump-section .note="$files/note" "$file" 2>/dev/null || continue
    # Skip the header of the note: sizes, type and owner.
    tail -c +21 "$files/note" > "$corpus/$(basename "$file")"
  done
  rm -r "$files"
  ;;
esac
