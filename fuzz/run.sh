#!/bin/bash
# Runs fuzzers one after the other, each for FUZZ_SECONDS (default: ten minutes), and prints the number of
# inputs and the result of each at the end.
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-600}
folder=target/fuzz
mkdir -p "$folder"

run() {
  case $1 in
  rewriter)
    FLIPWAVE_FUZZ_SECONDS=$seconds cargo test --package flipwave-fuzz --lib random_kernels -- \
      --nocapture
    ;;
  tiers)
    FLIPWAVE_FUZZ_SECONDS=$seconds cargo test --package flipwave-fuzz --lib \
      compiled_and_interpreted -- --nocapture
    ;;
  queues)
    FLIPWAVE_FUZZ_SECONDS=$seconds cargo test --package flipwave-kfd --lib \
      hostile_queues_neither -- --nocapture
    ;;
  *)
    # cargo-fuzz needs unstable compiler flags, hence RUSTC_BOOTSTRAP. No sanitizer: the fuzzed code is safe
    # Rust or not instrumented.
    fuzz/seed.sh "$1" && RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir fuzz/libfuzzer \
      --sanitizer none "$1" -- -max_total_time="$seconds" -max_len=65536 -print_final_stats=1
    ;;
  esac
}

failed=0
for target in "$@"; do
  if run "$target" 2>&1 | tee "$folder/$target.txt"; then
    echo "nothing found" > "$folder/$target.end"
  else
    echo "FOUND SOMETHING: see $folder/$target.txt" > "$folder/$target.end"
    failed=1
  fi
done

echo
for target in "$@"; do
  count=$(tr '\r' '\n' < "$folder/$target.txt" | sed -nE \
    -e 's/^Done ([0-9]+) runs in ([0-9]+) .*/\1 inputs in \2 s/p' \
    -e 's/^stat::number_of_executed_units: ([0-9]+)/\1 inputs/p' \
    -e 's/^(rewriter|tiers): //p' -e '/ episodes, /p' | head -1)
  echo "$target: ${count:-no count}; $(cat "$folder/$target.end")"
done
exit $failed
