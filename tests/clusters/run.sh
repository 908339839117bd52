#!/bin/bash
# Runs campaigns on real batch systems, started for the test: Slurm (Debian's slurm-wlm and munge) and
# HyperQueue (`hq`). Missing ones are reported and skipped. `hq` is part of HyperQueue's releases, but of
# neither Debian nor HyperQueue's Python package.
set -euo pipefail
cd "$(dirname "$0")"
# Debian installs daemons there.
PATH=$PATH:/usr/sbin
tested=
for engine in slurm hyperqueue; do
  case $engine in
  slurm) wanted="slurmctld slurmd sbatch munged" ;;
  hyperqueue) wanted="hq" ;;
  esac
  missing=
  for program in $wanted; do
    command -v "$program" >/dev/null || missing="$missing $program"
  done
  [ "$engine" != slurm ] || [ "$(id -u)" = 0 ] || missing="$missing root-permission"
  if [ -n "$missing" ]; then
    echo "not tested with $engine: missing$missing"
    continue
  fi
  "./$engine.sh"
  tested="$tested $engine"
done
echo "campaigns on batch systems were tested with:${tested:- none}"
