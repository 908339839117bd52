#!/bin/sh
# Runs campaigns on applications under several versions of ROCm, and compares the results:
#
#     tests/rocm/campaigns.sh GPU DIR DIR...
#
# Programs are compiled in the first, oldest root file system and linked in each one with its own HIP library, so that
# their code objects are identical. Each fault must then be at the same instruction, wave, lane and bit. Runtimes may
# dispatch different numbers of internal kernels and place memory differently, so that the outcome of a fault in an
# address may differ, for at most one fault in 20.
# Prints a line for each program and root file system; the exit code is 1 if results differ or a campaign fails.
set -eu

if [ $# -lt 3 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2
    exit 2
fi
here=$(dirname "$0")
gpu=$1
shift
# A separate folder in /tmp, which root file systems share.
folder=$(mktemp -d /tmp/flipwave-campaigns.XXXXXX)
trap 'rm -r "$folder"' EXIT

# Summarizes a table and its differences from the first on one line; the exit code is 1 if the faults differ.
cat >"$folder/compare.py" <<'PYTHON'
import collections, csv, sys

first, other = (list(csv.DictReader(open(path, newline=""))) for path in sys.argv[1:])
counts = collections.Counter(row["outcome"] for row in other)
text = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
fault = "kernel workgroup wave lane pc opcode occurrence location flip_mask".split()
moved = [a["injection"] for a, b in zip(first, other) if any(a[key] != b[key] for key in fault)]
ends = [a["injection"] for a, b in zip(first, other) if a["outcome"] != b["outcome"]]
if ends:
    text += "; other outcomes than in the first: faults " + " ".join(ends)
if moved:
    text += "; other faults than in the first: " + " ".join(moved)
print(text)
sys.exit(not first or len(first) != len(other) or bool(moved) or len(ends) * 20 > len(first))
PYTHON

failed=0
# An iterative program, one with many launches, and one with shared memory and atomics.
for name in jacobi sort reduction; do
    cat >"$folder/$name.yaml" <<YAML
name: $name
seed: 3
target: $gpu
workload:
  app:
    command: [./$name]
    golden_runs: 1
compare: [{stdout: exact}]
faults:
  model: flip_one_bit
  count: 40
YAML
    "$here/in.sh" "$1" hipcc --offload-arch="$gpu" -O2 -c "/mnt/tests/applications/$name.hip" -o "$folder/$name.o"
    first=
    for root do
        results=$folder/$name-$(basename "$root")
        "$here/in.sh" "$root" sh -c "cd $folder && hipcc $name.o -o $name && flipwave run $name.yaml --out $results" \
            >"$results.log" 2>&1 || {
            echo "$name in $(basename "$root"): $(tail -n 1 "$results.log")"
            failed=1
            continue
        }
        first=${first:-$results/results.csv}
        code=0
        text=$(python3 "$folder/compare.py" "$first" "$results/results.csv") || code=$?
        echo "$name in $(basename "$root"): $text"
        [ $code = 0 ] || failed=1
    done
done
exit $failed
