#!/bin/sh
# Creates target/python, a virtual environment with the packages of python/requirements.txt and with the package
# from python/src. Does nothing if it is up to date. If it cannot be created, prints the reason and exits with 1.
set -eu
cd "$(dirname "$0")/.."

environment=target/python
wanted=python/requirements.txt
# A copy of the installed requirements, written last.
installed=$environment/requirements.txt

no_environment() {
  echo "python/environment.sh: no $environment: $1" >&2
  exit 1
}

mkdir -p target
# Several tests may create it at the same time.
if command -v flock >/dev/null; then
  exec 9>target/python.lock
  flock 9
fi
if cmp -s "$wanted" "$installed" && "$environment/bin/python" -c '' 2>/dev/null; then
  exit 0
fi

# The first Python in PATH may not be the system's, to which its packages belong.
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || no_environment "no python3 with venv; Debian has it in python3-venv"

echo "making $environment"
rm -f "$installed"
# Update an existing environment instead of replacing it: without a network, it is better than none.
"$environment/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear "$environment" ||
  no_environment "\`$python -m venv\` failed"

# Retry if the network is temporarily unavailable.
done=
for pause in 5 15 0; do
  if "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --retries 3 --timeout 30 \
    --requirement "$wanted"; then
    done=yes
    break
  fi
  sleep "$pause"
done
[ -n "$done" ] ||
  no_environment "pip cannot install $wanted; see its message above. It needs a network, or a mirror of PyPI"

# Add the folder of the package in development to the import path.
packages=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$PWD/python/src" >"$packages/flipwave.pth"
cp "$wanted" "$installed"
