#!/bin/sh
# Runs the test suites of AMD and ggml on the embedded GPU, in a root file system created by root.sh:
#
#     tests/rocm/suites.sh DIR GPU [SUITE[:PART]...]
#
# Suites are ggml, rocprim, hipcub, rocthrust, rocblas, rocsparse, rocfft, rocsolver (default), and with ROCm 7.2
# rocblas-bench, hipblaslt-bench, miopen, rocrand, rocm-smi (default there). Parts are programs of a suite, operations of
# ggml, filters of googletest, or arguments of a benchmark that compares its results with the host's. Installs the
# packages of a suite into the root file system first.
#
# Prints a line for each part: numbers of passed, failed and skipped tests, and seconds. Every SAMPLEth test of a part is
# run (1: all), using the sharding of googletest. A part that does not end within LIMIT seconds is killed and marked
# `cut off`; its tests count up to that point. With the defaults of both, which depend on the suite, all suites take about
# an hour on two cores. Logs are kept in LOGS (/tmp/flipwave-suites/GPU). FLIPWAVE_OPTIONS are options of `flipwave exec`.
# The exit code is 1 if a test failed or a part ended on its own without passing.
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
release=$(cat /.flipwave-root)
if [ $# = 0 ]; then
    case $release in
        experimental) set -- rocblas-bench hipblaslt-bench miopen rocrand rocm-smi ;;
        *) set -- ggml rocprim hipcub rocthrust rocblas rocsparse rocfft rocsolver ;;
    esac
fi
rocm=/usr/libexec/rocm

# Packages of a suite, with Debian's version numbers in library names.
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
        rocblas-bench) echo librocblas5-bench ;;
        hipblaslt-bench) echo libhipblaslt1-bench ;;
        miopen) echo libmiopen1-tests ;;
        rocrand) echo librocrand1-tests ;;
        rocm-smi) echo rocm-smi ;;
        *)
            echo "no suite $1" >&2
            exit 2
            ;;
    esac
}

ggml=/usr/libexec/x86_64-linux-gnu/ggml/test-backend-ops

# Default SAMPLE and LIMIT of a suite.
size_of() {
    case $1 in
        ggml) echo 1 15 ;;
        rocprim) echo 60 30 ;;
        hipcub) echo 20 30 ;;
        # Its programs do not support sampling.
        rocthrust) echo 1 10 ;;
        rocblas) echo 1500 300 ;;
        rocsparse | rocsolver) echo 400 300 ;;
        rocfft) echo 2000 500 ;;
        rocblas-bench | hipblaslt-bench | rocm-smi) echo 1 200 ;;
        miopen) echo 300 300 ;;
        rocrand) echo 20 30 ;;
    esac
}

# A filter of googletest that excludes tests that LLVM 21 miscompiles for processors with 16-bit register halves
# (docs/applications.md).
miscompiled() {
    case $gpu in gfx11*) ;; *) return ;; esac
    case $1 in
        test_block_adjacent_difference | test_block_discontinuity)
            halves=*FloatingHalf
            # Tests from the 16th on use bfloat16.
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

# Programs of rocThrust with such tests, which are skipped entirely.
case $gpu in
    gfx11*) miscompiled_programs="async_sort|partition|remove|stable_sort_by_key|zip_iterator_sort_by_key" ;;
    *) miscompiled_programs=none ;;
esac

# Selected tests of a program of rocThrust; empty for all tests.
chosen() {
    case $gpu:$1 in
        gfx11*:test_thrust_copy)
            flipwave exec --gpu "$gpu" -- "$rocm/librocthrust-tests/$1" --list | grep -vx TestCopyIfStencil
            ;;
    esac
}

# Parts of a suite, one per line.
parts_of() {
    case $1 in
        ggml) $ggml --list-ops | sed -n 's/^  \([A-Z0-9_]*\)$/\1/p' ;;
        rocprim | hipcub | rocthrust)
            ls "$rocm/$(package_of "$1")" | grep -vxE "run-tests|test_thrust_($miscompiled_programs)"
            ;;
        rocblas) echo "*quick*" ;;
        # With an empty matrix, these tests overwrite their heap on the host before they call the routine.
        rocsparse) echo "*quick*-*csrgemm*_zero" ;;
        rocsolver) echo "checkin_lapack*" ;;
        rocfft) echo "*" ;;
        rocrand) ls "$rocm/$(package_of "$1")" | grep -vx run-tests ;;
        miopen) echo "Smoke/GPU_*" ;;
        rocm-smi) echo --showid ;;
        rocblas-bench)
            for type in h s d z; do
                echo "-f gemm -r $type $benchmark -v 1"
            done
            for routine in gemv trsm dot; do
                echo "-f $routine -r s $benchmark -v 1"
            done
            ;;
        hipblaslt-bench)
            for type in f16_r bf16_r f32_r; do
                for transposed in N T; do
                    echo "--precision $type --transA $transposed $benchmark -v"
                done
            done
            ;;
    esac
}

# Arguments of a benchmark: a matrix size that is not a multiple of the tiles, and one iteration.
benchmark="-m 72 -n 40 -k 56 -i 1 -j 0"

# Succeeds if the library of a suite has no code for the GPU.
lacks_code() {
    case $1 in
        hipblaslt-bench) [ -z "$(find /usr/lib/x86_64-linux-gnu/hipblaslt -name "*$gpu*" -print -quit)" ] ;;
        *) false ;;
    esac
}

# Command for a part, with the output format of googletest or ggml.
command_of() {
    case $1 in
        ggml) echo "$ggml test -o $2" ;;
        rocthrust) echo "$rocm/$(package_of "$1")/$2" $(chosen "$2") ;;
        rocprim | hipcub) echo "$rocm/$(package_of "$1")/$2 $(miscompiled "$2")" ;;
        rocrand) echo "$rocm/$(package_of "$1")/$2" ;;
        rocblas-bench | hipblaslt-bench) echo "$rocm/$(package_of "$1")/$1 $2" ;;
        # Debian leaves out the sources of kernels in assembly.
        miopen)
            echo "env MIOPEN_DEBUG_GCN_ASM_KERNELS=0 $rocm/$(package_of "$1")/miopen_gtest --gtest_filter=$2"
            ;;
        rocm-smi) echo "rocm-smi $2" ;;
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
    if lacks_code "$suite"; then
        echo "$suite: Debian's library has no code for $gpu"
        continue
    fi
    { [ -n "$part" ] && echo "$part" || parts_of "$suite"; } >"$logs/$suite.parts"
    set -- $(size_of "$suite")
    sample=${SAMPLE:-$1} limit=${LIMIT:-$2}
    while read -r part; do
        name=$(echo "$suite-$part" | tr -c 'A-Za-z0-9_\n-' _)
        log=$logs/$name
        start=$(date +%s)
        code=0
        # Without globbing, because filters contain asterisks.
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
                # One letter for each test.
                letters=$(sed -n '/^Running/,/^===/p' "$log" | grep '^[.FEK]*$' | tr -d '\n')
                passed=$(printf %s "$letters" | tr -cd .K | wc -c)
                lost=$(printf %s "$letters" | tr -cd FE | wc -c)
                skipped=0
                ;;
            *-bench)
                # The relative error is below its name. The sums of the half-precision benchmark have 11 bits.
                errors=$(awk -F, 'column { print ($column < 1e-2) ? "ok" : "wrong"; column = 0 }
                    { for (i = 1; i <= NF; i++) if ($i ~ /^norm_error/) column = i }' "$log")
                passed=$(echo "$errors" | grep -c ok)
                lost=$(echo "$errors" | grep -c wrong)
                skipped=0
                ;;
            rocm-smi)
                passed=$(grep -c '^GPU\[0\].*Device ID' "$log")
                lost=$((1 - (passed > 0)))
                skipped=0
                ;;
            *)
                # Without the summary at the end, which repeats the failed tests.
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
        printf '%-70s %7d passed %5d failed %6d skipped %5d s  %s\n' \
            "$suite $part" "$passed" "$lost" "$skipped" "$seconds" "$note"
    done <"$logs/$suite.parts"
done
exit $failed
