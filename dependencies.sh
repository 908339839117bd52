#!/bin/sh
# Installs missing packages with apt, or lists them without apt or sudo. `dependencies.sh test` adds the
# packages that only tests need, `dependencies.sh bench` the OpenCL that benchmarks compare with,
# `dependencies.sh cluster` the batch systems that tests use, `dependencies.sh rocm` the tool that creates root
# file systems of other Debian releases, and `dependencies.sh dist` the libraries that are linked into the
# archive.
set -eu

# A command or file that is present if the package is installed, and the package.
wanted='
c++ g++
llvm-config-22 llvm-22-dev
clang-22 clang-22
ld.lld-22 lld-22
amdgcn/bitcode/ockl.bc rocm-device-libs
'
wanted_by_tests='
llvm-readelf-22 llvm-22
clang-offload-bundler-22 clang-tools-22
include/hip/hip_runtime.h libamdhip64-dev
hipcc hipcc
include/libdrm/amdgpu_drm.h libdrm-dev
csmith csmith
llvm-22/lib/clang/22/lib/linux libclang-rt-22-dev
clc/nvptx64--nvidiacl.bc libclc-22
'
# Optional: tests report and skip checks that need a browser (opens reports), pandas (reads their tables), venv
# (environment of the Python package) or MPI (ranks are processes with a GPU each).
useful_to_tests='
chromium-headless-shell chromium-headless-shell
python3/dist-packages/pandas python3-pandas
share/doc/python3-venv python3-venv
mpirun openmpi-bin
mpicxx libopenmpi-dev
'
wanted_by_benchmarks='
libOpenCL.so.1 ocl-icd-libopencl1
libpocl.so.2 pocl-opencl-icd
'
wanted_by_clusters='
slurmctld slurm-wlm
munged munge
'
wanted_by_rocm='
mmdebstrap mmdebstrap
'
wanted_by_archives='
libz.a zlib1g-dev
libzstd.a libzstd-dev
objdump binutils
xz xz-utils
'
useful=
case "${1:-}" in
test)
  wanted="$wanted$wanted_by_tests$wanted_by_archives"
  useful=$useful_to_tests
  ;;
bench) wanted="$wanted$wanted_by_benchmarks" ;;
cluster) wanted="$wanted$wanted_by_clusters" ;;
rocm) wanted="$wanted$wanted_by_rocm" ;;
dist) wanted="$wanted$wanted_by_archives" ;;
esac

present() {
  command -v "$1" >/dev/null 2>&1 && return
  for directory in /usr /usr/lib /usr/lib/*-linux-gnu /opt/rocm; do
    [ -e "$directory/$1" ] && return
  done
  return 1
}

# Prints the missing packages of a list.
missing_of() {
  echo "$1" | while read -r sign package; do
    [ -z "$sign" ] || present "$sign" || echo "$package"
  done | tr '\n' ' '
}

missing=$(missing_of "$wanted")
useful=$(missing_of "$useful")
[ -n "$missing$useful" ] || exit 0

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
if ! command -v apt-get >/dev/null || { [ -n "$as_root" ] && ! command -v sudo >/dev/null; }; then
  [ -n "$missing" ] || exit 0
  echo "Flipwave needs these packages (Debian's names); please install them: $missing" >&2
  exit 2
fi
$as_root apt-get update -qq
for package in $useful; do
  if apt-cache show "$package" >/dev/null 2>&1; then
    missing="$missing$package "
  else
    echo "apt has no $package; some tests skip checks that need it"
  fi
done
[ -n "$missing" ] || exit 0
echo "installing: $missing"
# shellcheck disable=SC2086 # a list of words
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -qq --no-install-recommends -y $missing >/dev/null
