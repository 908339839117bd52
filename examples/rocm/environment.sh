#!/bin/sh
# Creates an environment of Python with a package for ROCm 7:
#
#     examples/rocm/environment.sh jax|cupy|openmm FOLDER
#
# Packages name libraries that distributions of ROCm 7.2 lack. Those are compiled from stubs/ to FOLDER/stubs: without
# profilers and system management, which the embedded GPU does not have either. Needs Python with venv, a C compiler,
# libdrm, libnuma and the libraries of ROCm 7.2. FOLDER/python runs Python in the environment.
set -eu

here=$(realpath "$(dirname "$0")")
if [ $# != 2 ] || [ ! -e "$here/$1/requirements.txt" ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2
    exit 2
fi
requirements=$here/$1/requirements.txt
mkdir -p "$2/stubs"
folder=$(realpath "$2")

# Compiles a library: its name and version. Symbols have the versions of its map file.
stub() {
    versions=
    [ ! -e "$here/stubs/$1.map" ] || versions=-Wl,--version-script=$here/stubs/$1.map
    cc -O2 -Wall -fPIC -shared -Wl,-soname,"lib$1.so.$2" $versions "$here/stubs/$1.c" -o "$folder/stubs/lib$1.so.$2"
}
variables=
case $1 in
jax)
    stub rocprofiler-sdk 1
    stub amd_smi 26
    stub rocm_sysdeps_drm 2
    stub rocm_sysdeps_drm_amdgpu 1
    stub rocm_sysdeps_numa 1
    # Autotuning would run each matrix product in many ways, and choose by time. JAX would allocate most of the GPU's
    # memory, which is the host's.
    variables='XLA_FLAGS="--xla_gpu_autotune_level=0 ${XLA_FLAGS:-}" XLA_PYTHON_CLIENT_PREALLOCATE=false'
    ;;
cupy)
    stub roctracer64 4
    stub roctx64 4
    # CuPy compiles kernels with the headers below this folder.
    variables='ROCM_HOME="${ROCM_HOME:-/usr}"'
    ;;
esac

if ! cmp -s "$requirements" "$folder/requirements.txt"; then
    python3 -m venv --clear "$folder/venv"
    "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
    cp "$requirements" "$folder/requirements.txt"
fi
cat >"$folder/python" <<SCRIPT
#!/bin/sh
export LD_LIBRARY_PATH="$folder/stubs\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" $variables
exec "$folder/venv/bin/python" "\$@"
SCRIPT
chmod +x "$folder/python"
