#!/bin/sh
# Tests of the Python package, with the program that $FLIPWAVE says, or with that of target/release. Where
# their environment cannot be made, says so and succeeds.
set -eu
cd "$(dirname "$0")"
if ! ./environment.sh; then
  echo "not tested: the Python package" >&2
  exit 0
fi
../target/python/bin/python -m mypy
../target/python/bin/python -m pytest -q
