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
[ "$3" = short ] || mpi="openmpi-bin python3"
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

# One process per rank, which all find the same GPUs and use one each.
cat >processes.sh <<'SCRIPT'
./all_reduce 0 2 sums id &
./all_reduce 1 2 sums id
wait $!
SCRIPT
# HIP_VISIBLE_DEVICES hides the GPUs of other ranks.
cat >ranks.sh <<'SCRIPT'
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpirun -n 2 --oversubscribe sh -c '
    HIP_VISIBLE_DEVICES=$OMPI_COMM_WORLD_RANK exec ./all_reduce $OMPI_COMM_WORLD_RANK 2 sums id'
SCRIPT
for way in processes ranks; do
    rm -f sums id
    timeout 600 flipwave exec --gpu "$gpu" --gpus 2 -- sh $way.sh >report 2>report.err || true
    expect_correct "2 $way" 2 report
done
rm -f sums id

# Strikes the numbers that one rank contributes. The kernels of RCCL wait for other GPUs, and are left out with those that
# fill its buffers.
campaign() {
    cat >"$1.yaml" <<YAML
name: $1
seed: 1
target: $gpu
workload:
  app:
    command: $2
    gpus: 2
    gpu: 1
    ignored_kernels: ["ncclDevKernel*", "__amd_rocclr_fill*"]
    # HIP 7 returns errors after a GPU fault, and the other rank would wait for ever.
    environment: {HIP_SKIP_ABORT_ON_GPU_ERROR: "0"}
    $3
    golden_runs: 1
    # MPI keeps large files.
    output: 8 GiB
compare:
  - file: sums
    type: f32
    shape: [2, 1024]
faults: {model: flip_one_bit, count: 12, kernels: [contribute]}
YAML
    if ! flipwave run "$1.yaml" --out "$1.results" >"$1.log" 2>&1; then
        echo "FAILED  campaign $1: $(tail -n 3 "$1.log")"
        failed=1
        return
    fi
    # A wrong sum is wrong on both ranks: wrong elements are in pairs, never in a single row.
    python3 - "$1" <<'PYTHON' || failed=1
import collections, csv, sys

name = sys.argv[1]
rows = list(csv.DictReader(open(f"{name}.results/results.csv", newline="")))
sdc = [row for row in rows if row["outcome"] == "sdc"]
patterns = collections.Counter(row["error_pattern"] for row in sdc)
on_both = bool(sdc) and all(int(row["elements_wrong"]) % 2 == 0 for row in sdc) and set(patterns) <= {"column", "block", "random"}
counts = collections.Counter(row["outcome"] for row in rows)
print("ok     " if on_both else "FAILED ", f"campaign {name}: {dict(counts)}, wrong sums of SDC: {dict(patterns)}")
sys.exit(not on_both)
PYTHON
}
campaign one_process "[./all_reduce, '2', sums]" "input: [all_reduce]"
campaign ranks "[sh, ranks.sh]" "input: [all_reduce, ranks.sh]
    process: {rank: 1}"
exit $failed
