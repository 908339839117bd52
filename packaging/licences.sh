#!/bin/bash
# Collects the licences of the contents of the archive in a folder: Flipwave, Rust crates, the Rust standard
# library, LLVM, and the other libraries that are linked in.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:?the folder}
mkdir -p "$folder"
cp LICENSE-MIT LICENSE-APACHE "$folder/"

# Libraries, from their Debian packages.
for package in llvm-22-dev libstdc++-12-dev zlib1g-dev libzstd-dev; do
    cp "/usr/share/doc/$package/copyright" "$folder/$package.txt"
done
cp "$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" "$folder/rust.html"

# Crates, from the sources unpacked by cargo.
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src
packages=$(cargo tree --package flipwave-cli --edges normal --prefix none --format '{p}|{l}' --offline |
    sed 's/ (proc-macro)//; s/ (\*)$//' | sort -u)
while IFS='|' read -r package licence; do
    case $package in
    # Part of this workspace.
    *"(/"*) continue ;;
    esac
    crate=${package/ v/-}
    echo "==== $crate: $licence"
    texts=$(find "$sources"/*/"$crate" -maxdepth 1 -type f \
        \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'copyright*' \) | sort)
    if [ -z "$texts" ]; then
        echo "$0: no licence text ($licence) for crate $crate in $sources" >&2
        exit 2
    fi
    for text in $texts; do
        echo "---- ${text##*/}"
        cat "$text"
        echo
    done
    echo
done <<<"$packages" >"$folder/crates.txt"
