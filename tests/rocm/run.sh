#!/bin/sh
# Runs Flipwave under other versions of ROCm in root file systems of Debian 13 (HIP 5.7 on ROCm 6.1), of Debian testing
# (ROCm 6.4) and of Debian experimental (ROCm 7.2), which are created if they are missing:
#
#     tests/rocm/run.sh short|long
#
# short: rocminfo on all GPUs that a version knows, and HIP programs built by the hipcc of each root file system.
# long: all programs of tests/applications, with and without --strict, campaigns on some of them, OpenCL, the test
# suites of AMD and ggml (suites.sh), frameworks of Python (frameworks.sh), and RCCL (rccl.sh).
# Root file systems are kept in ROCM_ROOTS (target/rocm), 1 GB each, 26 GB with the suites and frameworks.
#
# The exit code is 1 if a test failed. If root file systems cannot be created or entered (no mmdebstrap, no network, no
# permission to mount), a message says so and the exit code is 3.
set -eu

if [ $# != 1 ] || { [ "$1" != short ] && [ "$1" != long ]; }; then
    echo "usage: $0 short|long" >&2
    exit 2
fi
set=$1
here=$(realpath "$(dirname "$0")")
roots=${ROCM_ROOTS:-$here/../../target/rocm}
mkdir -p "$roots"

cannot() {
    echo "$0: other versions of ROCm are not tested: $1" >&2
    exit 3
}
# Runs a step and reports it; failures are counted and do not end the script.
failed=0
check() {
    start=$(date +%s)
    code=0
    output=$("$@" 2>&1) || code=$?
    shift
    seconds=$(($(date +%s) - start))
    if [ $code = 0 ]; then
        echo "ok      $(echo "$*" | cut -c1-100) ($seconds s)"
    else
        echo "FAILED  $* ($seconds s, exit code $code)"
        failed=$((failed + 1))
    fi
    [ -z "$output" ] || echo "$output" | sed 's/^/        /'
}

command -v mmdebstrap >/dev/null || cannot "mmdebstrap is not installed"
for suite in trixie forky experimental; do
    if [ ! -e "$roots/$suite/.flipwave-root" ]; then
        echo "creating $roots/$suite; this takes some minutes"
        "$here/root.sh" $suite "$roots/$suite" >"$roots/$suite.log" 2>&1 ||
            cannot "$suite cannot be created: $(tail -n 1 "$roots/$suite.log")"
    fi
    "$here/in.sh" "$roots/$suite" true 2>"$roots/$suite.log" ||
        cannot "$suite cannot be entered: $(tail -n 1 "$roots/$suite.log")"
done

# Succeeds if rocminfo finds the GPU under its name.
found() {
    "$here/in.sh" "$1" flipwave exec --gpu "$2" -- rocminfo | grep -q "amdgcn-amd-amdhsa--$2"
}
# Succeeds if the runtime does not know the GPU.
unknown() {
    ! found "$@"
}
# GPUs that all versions know, and those of newer versions. None knows gfx1250.
old="gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1151"
all="$old gfx950 gfx1200 gfx1201"
for gpu in $old; do
    check found "$roots/trixie" $gpu
done
for gpu in $all; do
    check found "$roots/forky" $gpu
    check found "$roots/experimental" $gpu
done
check unknown "$roots/experimental" gfx1250 "(unknown)"
# GPUs that HIP and OpenCL of a root file system know: its HSA runtime may know more.
known_to_hip() {
    case $1 in
    trixie) echo ${old% gfx1151} ;;
    forky) echo $old gfx1200 gfx1201 ;;
    experimental) echo $all ;;
    esac
}
case $set in
short)
    programs="saxpy reduction atomics streams graph printf managed_memory runtime_compilation"
    check "$here/applications.sh" "$roots/trixie" gfx90a $programs
    check "$here/applications.sh" "$roots/forky" gfx90a $programs
    check "$here/applications.sh" "$roots/forky" gfx1100 saxpy warp
    check "$here/applications.sh" "$roots/experimental" gfx90a saxpy events processes runtime_compilation shared_handles
    for gpu in $all; do
        check "$here/applications.sh" "$roots/experimental" $gpu saxpy
    done
    ;;
long)
    for options in "" --strict; do
        check env FLIPWAVE_OPTIONS=$options "$here/applications.sh" "$roots/trixie" gfx90a
        for gpu in gfx90a gfx942 gfx1100; do
            check env FLIPWAVE_OPTIONS=$options "$here/applications.sh" "$roots/forky" $gpu
        done
        for gpu in gfx90a gfx942 gfx950 gfx1100 gfx1151 gfx1201; do
            check env FLIPWAVE_OPTIONS=$options "$here/applications.sh" "$roots/experimental" $gpu
        done
    done
    check "$here/campaigns.sh" gfx90a "$roots/trixie" "$roots/forky" "$roots/experimental"
    for suite in trixie forky experimental; do
        for gpu in $(known_to_hip $suite); do
            check "$here/opencl.sh" "$roots/$suite" $gpu
            check "$here/applications.sh" "$roots/$suite" $gpu saxpy
        done
    done
    for gpu in gfx90a gfx1100; do
        check "$here/suites.sh" "$roots/forky" $gpu
    done
    for gpu in gfx90a gfx1100 gfx1201; do
        check "$here/suites.sh" "$roots/experimental" $gpu
    done
    check "$here/frameworks.sh" "$roots/experimental" gfx90a long
    check "$here/frameworks.sh" "$roots/experimental" gfx942 short jax
    check "$here/frameworks.sh" "$roots/experimental" gfx1100 short jax
    check "$here/rccl.sh" "$roots/experimental" gfx90a long
    ;;
esac
[ $failed = 0 ]
