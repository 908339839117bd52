#!/bin/sh
# Tests the Python package with the program $FLIPWAVE, or with that of target/release. If the environment cannot be
# created, prints a message and succeeds.
set -eu
cd "$(dirname "$0")"
if ! ./environment.sh; then
  echo "not tested: the Python package" >&2
  exit 0
fi
../target/python/bin/python -m mypy
../target/python/bin/python -m pytest -q
