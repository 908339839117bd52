#!/bin/sh
# Runs an all-reduce of RCCL over several embedded GPUs, in a root file system of ROCm 7.2 created by root.sh:
#
#     tests/rocm/rccl.sh DIR GPU short|long
#
# short: 2 GPUs in one process. long: also 4 GPUs, 2 processes with a GPU each, ranks of MPI, and campaigns that strike one
# rank. Installs the required packages into the root file system first. The exit code is 1 if a sum is wrong, if a
# planted error is not found, or if a fault in the numbers of a rank does not reach all ranks.
set -eu

if [ $# != 3 ]; then
    echo "usage: $0 DIR GPU short|long" >&2
    exit 2
fi
here=$(dirname "$0")
mpi=
[ "$3" = short ] || mpi="openmpi-bin libopenmpi-dev python3"
"$here/root.sh" "$(cat "$1/.flipwave-root")" "$1" librccl1 librccl-dev $mpi >&2
root=$1
shift
exec "$here/in.sh" "$root" sh -euc "$(sed '1,/^# ---/d' "$0")" sh "$@"
# --- inside
gpu=$1
set=$2
built=/var/cache/flipwave-rccl/$gpu
mkdir -p "$built"
folder=$(mktemp -d /tmp/flipwave-rccl.XXXXXX)
trap 'rm -r "$folder"' EXIT
cd "$folder"
program=$built/all_reduce
source=/mnt/tests/rocm/rccl/all_reduce.hip
[ "$program" -nt $source ] || hipcc --offload-arch="$gpu" -O2 $source -lrccl -o "$program"
cp "$program" .

failed=0
# Compares the lines of a report with those of correct ranks, in any order.
expect_correct() {
    for rank in $(seq 0 $(($2 - 1))); do
        echo "rank $rank: 0 of 1024 sums are wrong"
    done >expected
    if sort "$3" | diff expected - >difference; then
        echo "ok      $1"
    else
        echo "FAILED  $1: $(cat difference "$3.err" | tail -n 5)"
        failed=1
    fi
}
in_one_process() {
    timeout 600 flipwave exec --gpu "$gpu" --gpus "$1" -- ./all_reduce "$1" sums >report 2>report.err || true
}
in_one_process 2
expect_correct "2 GPUs in one process" 2 report
if PLANTED=1 in_one_process 2 && grep -q "rank 1: 1024 of 1024" report; then
    echo "ok      a planted error is found"
else
    echo "FAILED  a planted error is not found: $(cat report)"
    failed=1
fi
[ "$set" = long ] || exit $failed

in_one_process 4
expect_correct "4 GPUs in one process" 4 report

# One process per rank, each with a GPU of its own.
cat >ranks.sh <<'SCRIPT'
./all_reduce 0 2 sums id &
./all_reduce 1 2 sums id
wait $!
SCRIPT
timeout 600 flipwave exec --gpu "$gpu" -- sh ranks.sh >report 2>report.err || true
expect_correct "2 processes" 2 report
