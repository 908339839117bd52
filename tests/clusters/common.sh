# What the tests of clusters share: the campaign, what one worker makes of it, and an end that leaves
# no process.

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
  # The shell need not say that they were killed.
  disown -a
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || :; done
  sleep 0.5
  for process in "${started[@]}"; do kill -9 "$process" 2>/dev/null || :; done
  if [ "$code" != 0 ]; then
    say "failed with $code; what was left is in $work"
  else
    rm -rf "$work"
  fi
  exit "$code"
}
trap at_end EXIT

# Waits at most so many seconds until a command succeeds.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || { say "gave up waiting for: $*"; return 1; }
    sleep 0.2
  done
}

# Whether more than so many files of rows are there.
more_than() { [ "$(find "$results/shards" -name '*.rows' | wc -l)" -gt "$1" ]; }

same_as_one_worker() {
  for file in results.csv summary.csv rates.svg; do
    cmp "$work/one/$file" "$results/$file"
  done
}

# Jacobi iterations: some thousand injections a second.
sed -e 's/^name: .*/name: campaign/' -e "s|source: kernels|source: $repository/examples/campaigns/kernels|" \
  -e "s/^faults: .*/faults: {model: flip_one_bit, target: destination_register, count: ${FLIPWAVE_INJECTIONS:-80000}}/" \
  "$repository/examples/campaigns/jacobi.yaml" >"$campaign"
grep -q 'count: [0-9]*}$' "$campaign"
"$flipwave" run "$campaign" --out "$work/one" >/dev/null 2>&1
