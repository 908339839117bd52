#!/bin/bash
# Builds the Python package with the program and libraries of the archive: target/wheels. The program is
# installed next to the interpreter, and the libraries in `lib` next to the interpreter's folder.
set -euo pipefail
cd "$(dirname "$0")/.."

archive=$(echo target/dist/flipwave-*-x86_64-linux)
if [ ! -x "$archive/bin/flipwave" ]; then
    echo "$0: no archive in target/dist; create it with \`make dist\`" >&2
    exit 2
fi
# maturin installs the files of a folder with this name unchanged.
installed=python/flipwave.data
rm -rf "$installed"
mkdir -p "$installed/data/lib" "$installed/data/share/doc/flipwave"
cp "$archive"/lib/*.so "$installed/data/lib/"
cp -r "$archive/licences" "$installed/data/share/doc/flipwave/"
# The same value as in packaging/archive.sh avoids a rebuild.
export LLVM_SYS_221_PREFIX=$PWD/target/dist/llvm
maturin=$PWD/target/python/bin/maturin
built=$PWD/target/dist/build
cd python
# Also checks that the program needs no library outside the standard.
"$maturin" build --release --target-dir "$built" --out ../target/wheels \
    --compatibility manylinux_2_36 --auditwheel check
