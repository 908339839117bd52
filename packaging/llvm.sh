#!/bin/sh
# Makes a folder that llvm-sys takes for an installed LLVM 22, and whose libLLVM-22.so is the static
# archives, of those parts that Flipwave uses:
#
#     packaging/llvm.sh DIR
#     LLVM_SYS_221_PREFIX=DIR cargo build ...
#
# What is linked with it needs neither LLVM, nor libstdc++, zlib or zstd where it runs. Nothing that cargo
# reads says how LLVM is linked, so any build can be made so.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 DIR" >&2
    exit 2
fi
prefix=$(realpath -m "$1")
made=$prefix.new
rm -rf "$made"
mkdir -p "$made/bin" "$made/lib"
config=$(command -v llvm-config-22) || {
    echo "$0: llvm-config-22 is not in PATH; Debian has it in llvm-22-dev" >&2
    exit 2
}

# Machine code of AMDGPU is read and written, code for the host is made of IR that has assembly in it.
parts="amdgpuasmparser amdgpudesc amdgpudisassembler amdgpuinfo irreader x86asmparser x86codegen x86desc x86info"
# The linker takes a text in the place of a library: a script.
# shellcheck disable=SC2086 # a list of words
echo "GROUP($("$config" --link-static --libfiles $parts) $prefix/lib/libz.a $prefix/lib/libzstd.a)" \
    >"$made/lib/libLLVM-22.so"
# Looked for in this folder first, where there are no others of these names. LLVM asks for libxml2 and Z3,
# too, in parts that nothing here uses.
for library in stdc++ z zstd; do
    file=$(c++ -print-file-name=lib$library.a)
    if [ ! -e "$file" ]; then
        echo "$0: there is no lib$library.a; Debian has these in libstdc++-12-dev, zlib1g-dev and" \
            "libzstd-dev" >&2
        exit 2
    fi
    ln -s "$(realpath "$file")" "$made/lib/lib$library.a"
done

cat >"$made/bin/llvm-config-22" <<EOF
#!/bin/sh
case "\$*" in
--libdir) echo $prefix/lib ;;
*) exec $config "\$@" ;;
esac
EOF
chmod +x "$made/bin/llvm-config-22"

# One that is there and the same stays: cargo builds anew where its files are younger.
if diff -r "$made" "$prefix" >/dev/null 2>&1; then
    rm -rf "$made"
else
    rm -rf "$prefix"
    mv "$made" "$prefix"
fi
