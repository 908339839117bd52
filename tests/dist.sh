#!/bin/bash
# Unpacks the archive that `make dist` makes, and runs it in roots of Debian 12, 13 and testing:
#
#     tests/dist.sh ARCHIVE [SUITE...]
#
# In a root with nothing: the program, its doctor, and a campaign on compiled code, whose results must be
# the same bytes in all. In one with clang: the quickstart. In one with ROCm: an application. Roots are kept
# in ROCM_ROOTS (target/rocm), as those of tests/rocm, and made where they are missing, which takes a network,
# mmdebstrap and 5 GB; what cannot be made is said and not tested. Then that it is seen where something is
# missing: a library of the archive, or, for the usual build of target/release, LLVM.
#
# Exit code: 0 all that could be tested passed; 1 something failed; 3 nothing could be tested.
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
[ -f "$archive" ] || { echo "$0: there is no $archive; make it with \`make dist\`" >&2; exit 2; }

# Seen by roots, whose /tmp is this machine's.
work=$(mktemp -d /tmp/flipwave-dist.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir "$work/none" "$work/broken" "$work/usual"
tar --extract --file "$archive" --directory "$work"
here=$(echo "$work"/flipwave-*)
cp -r "$here/bin" "$work/broken/"
usual=$tests/../target/release/flipwave
[ ! -x "$usual" ] || cp "$usual" "$work/usual/"

tested=0 failed=0

# Runs the command, in a root where one is given first: `passes WHAT in ROOT COMMAND...`.
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

# A shell's text in a root, where the archive is $here and nothing of this machine's build is seen.
in_root() {
    local root=$1 text=$2
    FLIPWAVE_BIN=$work/none "$tests/rocm/in.sh" "$root" env \
        here="$here" work="$work" suite="$suite" FLIPWAVE_CACHE="$work/$(basename "$root")" \
        sh -euc "$text"
}

# A root, made where it is missing.
root() {
    local name=$1
    shift
    "$tests/rocm/root.sh" "$@" >"$work/root" 2>&1 && return
    echo "not tested: $suite, $name: there is no such root in $roots, and it cannot be made:"
    tail -n 3 "$work/root" | sed 's/^/    /'
    return 1
}

if ! unshare --mount true 2>/dev/null && ! unshare --user --map-root-user --mount true 2>/dev/null; then
    echo "$0: nothing is tested: a root needs the right to mount (root's, or user namespaces)" >&2
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
        passes "$suite, bare: the program runs, and says its version" in_root "$bare" '
            $here/bin/flipwave --version | grep -qx "flipwave [0-9.]*"'
        passes "$suite, bare: the doctor names what is missing, and finds what the archive has" \
            in_root "$bare" '
            code=0
            $here/bin/flipwave doctor >$work/doctor || code=$?
            cat $work/doctor
            [ $code = 2 ]
            grep -q "^MISSING compiler .*clang-22" $work/doctor
            grep -q "^MISSING device libraries .*" $work/doctor
            grep -q "^ok  *LLVM" $work/doctor
            grep -q "^ok  *for applications  *$here/lib/libflipwave_agent.so" $work/doctor'
        passes "$suite, bare: code is inspected" in_root "$bare" '
            $here/bin/flipwave inspect --cfg $here/examples/campaigns/kernels/vector_add.co |
                grep -q global_load'
        passes "$suite, bare: a campaign on compiled code, replayed and reported" in_root "$bare" '
            cd $here/examples/campaigns
            results=$work/results-$suite
            flipwave=$here/bin/flipwave
            $flipwave run compiled.yaml --out $results
            $flipwave replay compiled.yaml --row 7 --results $results | grep "^outcome:"
            $flipwave report $results --out $results/report.html
            grep -q "<html" $results/report.html'
        first=${first:-$work/results-$suite}
        passes "$suite, bare: the results are those of other roots, byte by byte" \
            cmp "$first/results.csv" "$work/results-$suite/results.csv"
        passes "$suite, bare: without its libraries, the archive is said to lack them" in_root "$bare" '
            if $work/broken/bin/flipwave exec -- true 2>$work/said-of-it; then exit 1; fi
            grep libflipwave_agent.so $work/said-of-it
            $work/broken/bin/flipwave doctor | grep "^without for applications .*libflipwave_agent.so"'
        if [ -x "$work/usual/flipwave" ]; then
            passes "$suite, bare: the usual build finds no LLVM, so the archive is needed" \
                in_root "$bare" '
                if $work/usual/flipwave --version 2>$work/said-of-it; then exit 1; fi
                grep "libLLVM.*cannot open" $work/said-of-it'
        fi
    fi

    # shellcheck disable=SC2086 # a list of words
    if root "dist-$suite-clang" --bare "$suite" "$roots/dist-$suite-clang" $compiling; then
        passes "$suite, with ${compiling%% *}: the doctor finds all that is needed, and hooks run" \
            in_root "$roots/dist-$suite-clang" "
            \$here/bin/flipwave doctor >\$work/doctor
            cat \$work/doctor
            grep -q '^ok  *compiler  *${compiling%% *}: ' \$work/doctor
            grep -q '^ok  *embedded GPU' \$work/doctor
            grep -q '^ok  *hooks' \$work/doctor"
        passes "$suite, with ${compiling%% *}: the quickstart and its page" \
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
        # That of ROCm 5.2.3 wants /proc/modules, which kernels without modules lack.
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
