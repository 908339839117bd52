# Shared parts of the cluster tests: the campaign, its results with one worker, and a cleanup that ends all
# processes.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$repository/target}
flipwave=$target/release/flipwave
[ -x "$flipwave" ] || flipwave=$target/debug/flipwave
work=$(mktemp -d)
results=$work/results
campaign=$work/campaign.yaml
base_port=$((20000 + $$ % 20000))
started=()

say() { echo "$(date +%T) $*"; }

at_end() {
  local code=$?
  # Suppress the shell's messages about killed processes.
  disown -a
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || :; done
  sleep 0.5
  for process in "${started[@]}"; do kill -9 "$process" 2>/dev/null || :; done
  if [ "$code" != 0 ]; then
    say "failed with $code; files are kept in $work"
  else
    rm -rf "$work"
  fi
  exit "$code"
}
trap at_end EXIT

# Waits until a command succeeds, for at most the given number of seconds.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || { say "gave up waiting for: $*"; return 1; }
    sleep 0.2
  done
}

# Succeeds if there are more than the given number of row files.
more_than() { [ "$(find "$results/shards" -name '*.rows' | wc -l)" -gt "$1" ]; }

same_as_one_worker() {
  for file in results.csv summary.csv rates.svg; do
    cmp "$work/one/$file" "$results/$file"
  done
}

# Jacobi iterations: thousands of injections per second.
sed -e 's/^name: .*/name: campaign/' -e "s|source: kernels|source: $repository/examples/campaigns/kernels|" \
  -e "s/^faults: .*/faults: {model: flip_one_bit, target: destination_register, count: ${FLIPWAVE_INJECTIONS:-80000}}/" \
  "$repository/examples/campaigns/jacobi.yaml" >"$campaign"
grep -q 'count: [0-9]*}$' "$campaign"
"$flipwave" run "$campaign" --out "$work/one" >/dev/null 2>&1
