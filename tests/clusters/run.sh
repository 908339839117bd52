#!/bin/bash
# Campaigns on real engines: Slurm (Debian's slurm-wlm and munge) and HyperQueue (`hq`), each started here
# for the test. An engine that is not installed is named, and left out: neither Debian nor HyperQueue's own
# Python package has `hq`, which is of its releases.
set -euo pipefail
cd "$(dirname "$0")"
# Where Debian has daemons.
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
  [ "$engine" != slurm ] || [ "$(id -u)" = 0 ] || missing="$missing (the right to be root)"
  if [ -n "$missing" ]; then
    echo "not tested with $engine: this machine has no$missing"
    continue
  fi
  "./$engine.sh"
  tested="$tested $engine"
done
echo "campaigns on engines of clusters were tested with:${tested:- none of them}"
