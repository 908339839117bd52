#!/bin/sh
# Creates a folder that looks like an installed LLVM 22 to llvm-sys. Its libLLVM-22.so links the static archives
# of the parts that Flipwave uses:
#
#     packaging/llvm.sh DIR
#     LLVM_SYS_221_PREFIX=DIR cargo build ...
#
# Programs linked with it need no shared LLVM, libstdc++, zlib or zstd at run time. The choice is independent of
# the Cargo configuration, so it works for every build.
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
    echo "$0: llvm-config-22 is not in PATH; install llvm-22-dev" >&2
    exit 2
}

# For AMDGPU machine code, the assembler and disassembler; for the host, code generation from IR with inline assembly.
parts="amdgpuasmparser amdgpudesc amdgpudisassembler amdgpuinfo irreader x86asmparser x86codegen x86desc x86info"
# A text file in place of a library is a linker script.
# shellcheck disable=SC2086 # a list of words
echo "GROUP($("$config" --link-static --libfiles $parts) $prefix/lib/libz.a $prefix/lib/libzstd.a)" \
    >"$made/lib/libLLVM-22.so"
# The linker searches this folder first, so it uses these static libraries. LLVM also needs libxml2 and Z3, but
# only in unused parts.
for library in stdc++ z zstd; do
    file=$(c++ -print-file-name=lib$library.a)
    if [ ! -e "$file" ]; then
        echo "$0: lib$library.a not found; install libstdc++-12-dev, zlib1g-dev and" \
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

# Keep an identical folder: newer files would make cargo rebuild.
if diff -r "$made" "$prefix" >/dev/null 2>&1; then
    rm -rf "$made"
else
    rm -rf "$prefix"
    mv "$made" "$prefix"
fi
