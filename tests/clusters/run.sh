#!/bin/bash
# Campaigns on real engines: Slurm (Debian's slurm-wlm and munge) and HyperQueue (`hq`), each started here
# for the test. An engine that is not installed is named, and left out.
set -euo pipefail
cd "$(dirname "$0")"
passed=0 skipped=0
for engine in slurm hyperqueue; do
  case $engine in
  slurm) wanted="slurmctld slurmd sbatch munged" ;;
  hyperqueue) wanted="hq" ;;
  esac
  missing=
  for program in $wanted; do
    command -v "$program" >/dev/null || missing="$missing $program"
  done
  [ "$engine" != slurm ] || [ "$(id -u)" = 0 ] || missing="$missing (the right to be root)"
  if [ -n "$missing" ]; then
    echo "not tested with $engine: this machine has no$missing"
    skipped=$((skipped + 1))
    continue
  fi
  "./$engine.sh"
  passed=$((passed + 1))
done
echo "$passed passed, 0 failed, $skipped skipped"
