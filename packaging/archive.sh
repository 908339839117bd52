#!/bin/bash
# Builds an archive that runs on Debian 12 and later: target/dist/flipwave-VERSION-x86_64-linux.tar.xz. LLVM
# is linked in (packaging/llvm.sh). The build is in target/dist/build, separate from the usual one. Run this on
# Debian 12, because a program needs at least the C library that it was linked with.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(cargo pkgid --package flipwave-cli --offline | sed 's/.*[#@]//')
name=flipwave-$version-x86_64-linux
folder=target/dist/$name
built=target/dist/build/release

packaging/llvm.sh target/dist/llvm
LLVM_SYS_221_PREFIX=$PWD/target/dist/llvm \
    cargo build --release --package flipwave-cli --target-dir target/dist/build

rm -rf target/dist/flipwave-*
mkdir -p "$folder"/{bin,lib,include,licences}
strip --strip-all -o "$folder/bin/flipwave" "$built/flipwave"
for library in libflipwave_agent.so libflipwave_preload.so; do
    strip --strip-unneeded -o "$folder/lib/$library" "$built/deps/$library"
    chmod 644 "$folder/lib/$library"
done

# Checks that only libraries of Debian 12 are needed.
oldest=2.36
for file in "$folder"/bin/* "$folder"/lib/*; do
    others=$(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }' |
        grep -vxE 'lib(c|m|gcc_s)\.so\.[16]|ld-linux-x86-64\.so\.2' || true)
    if [ -n "$others" ]; then
        echo "$0: $file needs" $others "at run time: was it built with packaging/llvm.sh?" >&2
        exit 2
    fi
    youngest=$(objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
    if [ "$(printf '%s\n' "$oldest" "$youngest" | sort -V | tail -n 1)" != "$oldest" ]; then
        echo "$0: $file needs C library $youngest, but Debian 12 has $oldest: build the archive there" >&2
        exit 2
    fi
done

# Commands of the documentation use these paths.
cp hooks/rewriter/include/flipwave.h hooks/tools/include/flipwave_tool*.h "$folder/include/"
for files in examples/campaigns examples/suite examples/emulation examples/tools docs; do
    mkdir -p "$folder/$files"
    git ls-files -z -- "$files" | tar --create --null --files-from=- | tar --extract --directory="$folder"
done
cp README.md "$folder/"

# A campaign that runs without a compiler.
examples=$folder/examples/campaigns
kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT
FLIPWAVE_CACHE=$kept "$folder/bin/flipwave" profile "$examples/vector_add.yaml" >/dev/null
cp "$kept"/*.co "$examples/kernels/vector_add.co"
sed -e '1,/^name:/s/^name:.*/name: compiled/' -e '/^#/d' \
    -e 's/source: kernels\/vector_add.cl/code_object: kernels\/vector_add.co/' \
    "$examples/vector_add.yaml" >"$examples/compiled.yaml"

packaging/licences.sh "$folder/licences"

# Reproducible: independent of user and time.
date=$(git log -1 --format=%cI)
tar --create --directory=target/dist --sort=name --owner=0 --group=0 --numeric-owner --mtime="$date" \
    "$name" | xz -T0 >"target/dist/$name.tar.xz"
ls -l "target/dist/$name.tar.xz"
