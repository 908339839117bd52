#!/bin/bash
# Makes the Python package with the archive's program and libraries in it: target/wheels. The program is
# installed beside the interpreter, and the libraries in the folder `lib` beside that one's.
set -euo pipefail
cd "$(dirname "$0")/.."

archive=$(echo target/dist/flipwave-*-x86_64-linux)
if [ ! -x "$archive/bin/flipwave" ]; then
    echo "$0: there is no archive in target/dist; make it with \`make dist\`" >&2
    exit 2
fi
# The name by which maturin takes it for what is installed as it is.
installed=python/flipwave.data
rm -rf "$installed"
mkdir -p "$installed/data/lib" "$installed/data/share/doc/flipwave"
cp "$archive"/lib/*.so "$installed/data/lib/"
cp -r "$archive/licences" "$installed/data/share/doc/flipwave/"
# As packaging/archive.sh has it, or cargo builds all anew.
export LLVM_SYS_221_PREFIX=$PWD/target/dist/llvm
maturin=$PWD/target/python/bin/maturin
built=$PWD/target/dist/build
cd python
# Which also looks whether the program needs what that standard does not have.
"$maturin" build --release --target-dir "$built" --out ../target/wheels \
    --compatibility manylinux_2_36 --auditwheel check
