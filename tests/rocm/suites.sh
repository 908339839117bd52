#!/bin/sh
# Runs AMD's and ggml's own test suites in a root that root.sh has made, on the embedded GPU:
#
#     tests/rocm/suites.sh DIR GPU [SUITE[:PART]...]
#
# Suites are ggml, rocprim, hipcub, rocthrust, rocblas, rocsparse, rocfft, rocsolver; without any, all. Parts
# are programs of a suite, operations of ggml, or filters of googletest. Packages that a suite needs are
# installed into the root first.
#
# A line for each part: what passed, failed and was skipped, and its seconds. Every SAMPLEth test of a part is run (1: all
# of them), by googletest's own sharding, and a part that does not end within LIMIT seconds is ended and marked `cut off`:
# what it has passed until then counts. Each suite has values of its own for both, with which all suites take about an hour
# on two cores. What they print is kept in LOGS (/tmp/flipwave-suites/GPU). FLIPWAVE_OPTIONS are options of `flipwave exec`.
# The exit code is 1 if a test failed or a part ended by itself without passing.
set -eu

if [ $# -lt 2 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2
    exit 2
fi
here=$(dirname "$0")
root=$1
shift
exec "$here/in.sh" "$root" sh -c "$(sed '1,/^# ---/d' "$0")" sh "$@"
# --- inside
set -u
gpu=$1
shift
logs=${LOGS:-/tmp/flipwave-suites/$gpu}
mkdir -p "$logs"
[ $# -gt 0 ] || set -- ggml rocprim hipcub rocthrust rocblas rocsparse rocfft rocsolver
rocm=/usr/libexec/rocm

# The packages that have a suite, for Debian's numbering of libraries.
package_of() {
    case $1 in
        ggml) echo llama.cpp-tests libggml0-backend-hip ;;
        rocprim) echo librocprim-tests ;;
        hipcub) echo libhipcub-tests ;;
        rocthrust) echo librocthrust-tests ;;
        rocblas) echo librocblas4-tests ;;
        rocsparse) echo librocsparse1-tests ;;
        rocfft) echo librocfft0-tests ;;
        rocsolver) echo librocsolver0-tests ;;
        *)
            echo "no suite $1" >&2
            exit 2
            ;;
    esac
}

ggml=/usr/libexec/x86_64-linux-gnu/ggml/test-backend-ops

# Which tests of a part are run, each SAMPLEth, and for how many seconds at most.
size_of() {
    case $1 in
        ggml) echo 1 15 ;;
        rocprim) echo 60 30 ;;
        hipcub) echo 20 30 ;;
        # Its programs do not take samples.
        rocthrust) echo 1 10 ;;
        rocblas) echo 1500 300 ;;
        rocsparse | rocsolver) echo 400 300 ;;
        rocfft) echo 2000 500 ;;
    esac
}

# A filter of googletest without the tests that fail with what LLVM 21 makes of a program for processors whose registers
# have halves (docs/applications.md).
miscompiled() {
    case $gpu in gfx11*) ;; *) return ;; esac
    case $1 in
        test_block_adjacent_difference | test_block_discontinuity)
            halves=*FloatingHalf
            # Those from the 16th on are of bfloat16.
            left_out="$halves/16.* $halves/17.* $halves/18.* $halves/19.* $halves/2?.* $halves/3?.*"
            ;;
        test_device_merge_sort)
            sort=RocprimDeviceSortTests
            left_out="$sort/0.* $sort/1.* $sort/7.* $sort/8.* $sort/10.* $sort/12.*"
            ;;
        test_device_select) left_out="*.Flagged* RocprimDeviceUniqueByKeyTests/3.*" ;;
        test_device_partition | test_hipcub_device_select | test_hipcub_device_partition) left_out="*.Flagged*" ;;
        *) return ;;
    esac
    echo "--gtest_filter=-$(echo "$left_out" | tr " " :)"
}

# Programs of rocThrust with such tests, that are left out as wholes.
case $gpu in
    gfx11*) miscompiled_programs="async_sort|partition|remove|stable_sort_by_key|zip_iterator_sort_by_key" ;;
    *) miscompiled_programs=none ;;
esac

# The tests of a program of rocThrust, where some are left out; nothing for all of them.
chosen() {
    case $gpu:$1 in
        gfx11*:test_thrust_copy)
            flipwave exec --gpu "$gpu" -- "$rocm/librocthrust-tests/$1" --list | grep -vx TestCopyIfStencil
            ;;
    esac
}

# The parts of a suite, a line each.
parts_of() {
    case $1 in
        ggml) $ggml --list-ops | sed -n 's/^  \([A-Z0-9_]*\)$/\1/p' ;;
        rocprim | hipcub | rocthrust)
            ls "$rocm/$(package_of "$1")" | grep -vxE "run-tests|test_thrust_($miscompiled_programs)"
            ;;
        rocblas) echo "*quick*" ;;
        # Where a matrix is empty, these tests overwrite their heap on the host, before the routine is called.
        rocsparse) echo "*quick*-*csrgemm*_zero" ;;
        rocsolver) echo "checkin_lapack*" ;;
        rocfft) echo "*" ;;
    esac
}

# What a part is run by; its output is googletest's, or ggml's.
command_of() {
    case $1 in
        ggml) echo "$ggml test -o $2" ;;
        rocthrust) echo "$rocm/$(package_of "$1")/$2" $(chosen "$2") ;;
        rocprim | hipcub) echo "$rocm/$(package_of "$1")/$2 $(miscompiled "$2")" ;;
        *) echo "$rocm/$(package_of "$1")/$1-test --gtest_filter=$2" ;;
    esac
}

flipwave exec --gpu "$gpu" -- true || exit 2
failed=0
for suite do
    part=
    case $suite in *:*) part=${suite#*:} suite=${suite%%:*} ;; esac
    missing=
    for package in $(package_of "$suite"); do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
            missing="$missing $package"
    done
    if [ -n "$missing" ]; then
        apt-get -q -o Acquire::Check-Valid-Until=false update >"$logs/apt" 2>&1
        DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing >>"$logs/apt" 2>&1 || {
            echo "$suite: $missing cannot be installed: see $logs/apt"
            failed=1
            continue
        }
    fi
    { [ -n "$part" ] && echo "$part" || parts_of "$suite"; } >"$logs/$suite.parts"
    set -- $(size_of "$suite")
    sample=${SAMPLE:-$1} limit=${LIMIT:-$2}
    while read -r part; do
        name=$(echo "$suite-$part" | tr -c 'A-Za-z0-9_\n-' _)
        log=$logs/$name
        start=$(date +%s)
        code=0
        # Without globbing, as filters have stars.
        set -f
        GTEST_LISTENER=PASS_LINE_IN_LOG GTEST_TOTAL_SHARDS=$sample GTEST_SHARD_INDEX=0 timeout --foreground -k 5 "$limit" \
            flipwave exec --gpu "$gpu" ${FLIPWAVE_OPTIONS:-} -- $(command_of "$suite" "$part") \
            >"$log" 2>&1 </dev/null || code=$?
        set +f
        seconds=$(($(date +%s) - start))
        case $suite in
            ggml)
                passed=$(grep -c ': .*OK' "$log")
                lost=$(grep -c ': .*FAIL' "$log")
                skipped=$(grep -c ': not supported' "$log")
                ;;
            rocthrust)
                # A letter for each test.
                letters=$(sed -n '/^Running/,/^===/p' "$log" | grep '^[.FEK]*$' | tr -d '\n')
                passed=$(printf %s "$letters" | tr -cd .K | wc -c)
                lost=$(printf %s "$letters" | tr -cd FE | wc -c)
                skipped=0
                ;;
            *)
                # The summary at the end names those that failed again.
                sed '/^\[==========\] .* ran/,$d' "$log" >"$log.tests"
                passed=$(grep -c '^\[       OK \]' "$log.tests")
                lost=$(grep -c '^\[  FAILED  \]' "$log.tests")
                skipped=$(grep -c '^\[  SKIPPED \]' "$log.tests")
                rm "$log.tests"
                ;;
        esac
        note=
        case $code in
            0) ;;
            124 | 137) note="cut off" ;;
            *) note="exit code $code" ;;
        esac
        [ "$lost" = 0 ] || [ -n "$note" ] || note="failed"
        if [ "$lost" != 0 ] || { [ "$code" != 0 ] && [ "$note" != "cut off" ]; }; then
            failed=1
        fi
        printf '%-60s %7d passed %5d failed %6d skipped %5d s  %s\n' \
            "$suite $part" "$passed" "$lost" "$skipped" "$seconds" "$note"
    done <"$logs/$suite.parts"
done
exit $failed
