#!/bin/sh
# Makes target/python, a virtual environment with what python/requirements.txt says and with the package as
# it stands in python/src. Where it is there already, nothing is done. Where it cannot be made, says why;
# the exit code is 1 then.
set -eu
cd "$(dirname "$0")/.."

environment=target/python
wanted=python/requirements.txt
# What is installed: the last that is written.
installed=$environment/requirements.txt

no_environment() {
  echo "python/environment.sh: no $environment: $1" >&2
  exit 1
}

mkdir -p target
# Tests may ask for it at once.
if command -v flock >/dev/null; then
  exec 9>target/python.lock
  flock 9
fi
if cmp -s "$wanted" "$installed" && "$environment/bin/python" -c '' 2>/dev/null; then
  exit 0
fi

# The first Python in PATH need not be the system's, which has its packages.
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
"$python" -m venv --clear "$environment" || no_environment "\`$python -m venv\` failed"

# A network that is away for a moment is asked again.
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
  no_environment "pip cannot install what $wanted says; its reason is above. It needs a network, or a mirror of PyPI"

# The package in development: its folder is one of those that are imported from.
packages=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$PWD/python/src" >"$packages/flipwave.pth"
cp "$wanted" "$installed"
