#!/bin/sh
# Builds the programs of tests/applications with the hipcc of a root file system, and runs them on the
# embedded GPU under the runtime of the root file system:
#
#     tests/rocm/applications.sh DIR GPU [NAME...]
#
# Prints a line for each failing program and the number of passing programs; the exit code is 1 if any failed.
# FLIPWAVE_OPTIONS are options of `flipwave exec`; with --strict, a report is a failure as well.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 DIR GPU [NAME...]" >&2
    exit 2
fi
root=$1
shift
exec "$(dirname "$0")/in.sh" "$root" sh -c "$(sed '1,/^# ---/d' "$0")" sh "$@"
# --- inside
gpu=$1
shift
sources=/mnt/tests/applications
if [ $# = 0 ]; then
    set -- $(cd $sources && ls *.hip | sed 's/\.hip$//' | grep -v '\.kernel$')
fi
built=/var/cache/flipwave-applications/$gpu
mkdir -p "$built"
passed=0 failed=0
for name do
    program=$built/$name
    report=$program.out
    options="--offload-arch=$gpu -O2 -I$sources" libraries=
    # HIP 7 has the compiler in a library of its own.
    if [ "$name" = runtime_compilation ] && [ -e /usr/lib/x86_64-linux-gnu/libhiprtc.so ]; then
        libraries=-lhiprtc
    fi
    [ "$program" -nt "$sources/$name.hip" ] ||
        hipcc $options "$sources/$name.hip" $libraries -o "$program" >"$report" 2>&1 || {
        echo "$name: not built: $(grep -m 1 error "$report")"
        failed=$((failed + 1))
        continue
    }
    argument=
    if [ "$name" = module ]; then
        argument=$program.co
        hipcc $options --genco "$sources/$name.kernel.hip" -o "$argument"
    fi
    # Events of HIP 6.4 leak signals, and ROCr prints a warning when it shuts down.
    if timeout 300 flipwave exec --gpu "$gpu" ${FLIPWAVE_OPTIONS:-} -- "$program" $argument >"$report" 2>"$report.err" &&
        [ "$(tail -n 1 "$report")" = passed ] && ! grep -v -e " has been running for " -e "^Warning: Resource leak detected by SharedSignalPool" "$report.err"; then
        passed=$((passed + 1))
    else
        echo "$name: $(tail -q -n 2 "$report" "$report.err" | tr '\n' ' ')"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
