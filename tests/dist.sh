#!/bin/bash
# Unpacks the archive of `make dist` and runs it in root file systems of Debian 12, 13 and testing:
#
#     tests/dist.sh ARCHIVE [SUITE...]
#
# Without packages, runs the program, its doctor, and a campaign on compiled code, whose results must be
# identical in all root file systems. With clang, runs the quickstart. With ROCm, runs an application. Also
# checks the messages for a missing library of the archive and, for the usual build in target/release, for
# a missing LLVM. Root file systems are kept in ROCM_ROOTS (target/rocm), like those of tests/rocm. Missing
# ones are created (network, mmdebstrap, 5 GB); those that cannot be created are reported and skipped.
#
# Exit code: 0 if all tests that could run passed, 1 if a test failed, 3 if no test could run.
set -uo pipefail

if [ $# -lt 1 ]; then
    echo "usage: $0 ARCHIVE [SUITE...]" >&2
    exit 2
fi
archive=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- bookworm trixie forky
tests=$(realpath "$(dirname "$0")")
roots=${ROCM_ROOTS:-$tests/../target/rocm}
mkdir -p "$roots"
[ -f "$archive" ] || { echo "$0: no $archive; create it with \`make dist\`" >&2; exit 2; }

# Visible in root file systems, which mount this machine's /tmp.
work=$(mktemp -d /tmp/flipwave-dist.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir "$work/none" "$work/broken" "$work/usual"
tar --extract --file "$archive" --directory "$work"
here=$(echo "$work"/flipwave-*)
cp -r "$here/bin" "$work/broken/"
usual=$tests/../target/release/flipwave
[ ! -x "$usual" ] || cp "$usual" "$work/usual/"

tested=0 failed=0

# Runs a test and reports its result: `passes NAME COMMAND...`.
passes() {
    local what=$1 said=$work/said
    shift
    if "$@" >"$said" 2>&1; then
        echo "passed: $what"
        tested=$((tested + 1))
    else
        echo "FAILED: $what"
        sed 's/^/    /' "$said" | tail -n 20
        failed=$((failed + 1))
    fi
}

# Runs a shell script in a root file system, with the archive in $here and without this machine's build.
in_root() {
    local root=$1 text=$2
    FLIPWAVE_BIN=$work/none "$tests/rocm/in.sh" "$root" env \
        here="$here" work="$work" suite="$suite" FLIPWAVE_CACHE="$work/$(basename "$root")" \
        sh -euc "$text"
}

# Creates a root file system if it is missing.
root() {
    local name=$1
    shift
    "$tests/rocm/root.sh" "$@" >"$work/root" 2>&1 && return
    echo "not tested: $suite, $name: no such root file system in $roots, and it cannot be created:"
    tail -n 3 "$work/root" | sed 's/^/    /'
    return 1
}

if ! unshare --mount true 2>/dev/null && ! unshare --user --map-root-user --mount true 2>/dev/null; then
    echo "$0: nothing tested: root file systems need permission to mount (root or user namespaces)" >&2
    exit 3
fi

for suite; do
    case $suite in
    bookworm) compiling="clang-19 lld-19 rocm-device-libs" ;;
    trixie) compiling="clang-19 lld-19 rocm-device-libs-17" ;;
    forky) compiling="clang-22 lld-22 rocm-device-libs-21" ;;
    *)
        echo "$0: no suite $suite; expected bookworm, trixie or forky" >&2
        exit 2
        ;;
    esac

    bare=$roots/dist-$suite
    if root "dist-$suite" --bare "$suite" "$bare"; then
        passes "$suite, bare: the program prints its version" in_root "$bare" '
            $here/bin/flipwave --version | grep -qx "flipwave [0-9.]*"'
        passes "$suite, bare: the doctor reports missing packages and finds the libraries of the archive" \
            in_root "$bare" '
            code=0
            $here/bin/flipwave doctor >$work/doctor || code=$?
            cat $work/doctor
            [ $code = 2 ]
            grep -q "^MISSING compiler .*clang-22" $work/doctor
            grep -q "^MISSING device libraries .*" $work/doctor
            grep -q "^ok  *LLVM" $work/doctor
            grep -q "^ok  *for applications  *$here/lib/libflipwave_agent.so" $work/doctor'
        passes "$suite, bare: inspect prints the control-flow graph" in_root "$bare" '
            $here/bin/flipwave inspect --cfg $here/examples/campaigns/kernels/vector_add.co |
                grep -q global_load'
        passes "$suite, bare: a campaign on compiled code runs, replays and is reported" in_root "$bare" '
            cd $here/examples/campaigns
            results=$work/results-$suite
            flipwave=$here/bin/flipwave
            $flipwave run compiled.yaml --out $results
            $flipwave replay compiled.yaml --row 7 --results $results | grep "^outcome:"
            $flipwave report $results --out $results/report.html
            grep -q "<html" $results/report.html'
        first=${first:-$work/results-$suite}
        passes "$suite, bare: results are identical to those of other root file systems" \
            cmp "$first/results.csv" "$work/results-$suite/results.csv"
        passes "$suite, bare: missing libraries of the archive are reported" in_root "$bare" '
            if $work/broken/bin/flipwave exec -- true 2>$work/said-of-it; then exit 1; fi
            grep libflipwave_agent.so $work/said-of-it
            $work/broken/bin/flipwave doctor | grep "^without for applications .*libflipwave_agent.so"'
        if [ -x "$work/usual/flipwave" ]; then
            passes "$suite, bare: the usual build does not run without LLVM" \
                in_root "$bare" '
                if $work/usual/flipwave --version 2>$work/said-of-it; then exit 1; fi
                grep "libLLVM.*cannot open" $work/said-of-it'
        fi
    fi

    # shellcheck disable=SC2086 # a list of words
    if root "dist-$suite-clang" --bare "$suite" "$roots/dist-$suite-clang" $compiling; then
        passes "$suite, with ${compiling%% *}: the doctor finds all requirements and hooks run" \
            in_root "$roots/dist-$suite-clang" "
            \$here/bin/flipwave doctor >\$work/doctor
            cat \$work/doctor
            grep -q '^ok  *compiler  *${compiling%% *}: ' \$work/doctor
            grep -q '^ok  *embedded GPU' \$work/doctor
            grep -q '^ok  *hooks' \$work/doctor"
        passes "$suite, with ${compiling%% *}: the quickstart and its report" \
            in_root "$roots/dist-$suite-clang" '
            cd $here
            bin/flipwave run examples/campaigns/quickstart.yaml --out $work/quickstart-$suite
            bin/flipwave report $work/quickstart-$suite --out $work/quickstart-$suite.html'
        passes "$suite, with ${compiling%% *}: an emulated instruction" \
            in_root "$roots/dist-$suite-clang" '
            cd $here
            bin/flipwave emulate examples/emulation/fft32.yaml'
    fi

    if root "$suite" "$suite" "$roots/$suite"; then
        # rocminfo of ROCm 5.2.3 needs /proc/modules, which kernels without modules lack.
        if [ "$suite" != bookworm ] || [ -e /proc/modules ]; then
            passes "$suite, with ROCm: the runtime finds the embedded GPU" in_root "$roots/$suite" '
                $here/bin/flipwave exec -- rocminfo >$work/found
                grep amdgcn-amd-amdhsa--gfx90a $work/found'
        fi
        passes "$suite, with ROCm: an application computes the right sums" in_root "$roots/$suite" '
            hipcc --offload-arch=gfx90a -O2 -I/mnt/tests/applications \
                /mnt/tests/applications/saxpy.hip -o $work/saxpy-$suite
            $here/bin/flipwave exec -- $work/saxpy-$suite >$work/said-by-it
            tail -n 1 $work/said-by-it | grep -x passed'
    fi
done

echo "$tested passed, $failed failed"
[ $failed = 0 ] || exit 1
[ $tested != 0 ] || exit 3
