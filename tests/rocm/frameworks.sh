#!/bin/sh
# Runs frameworks of Python on the embedded GPU, in a root file system of ROCm 7.2 created by root.sh:
#
#     tests/rocm/frameworks.sh DIR GPU short|long [NAME...]
#
# Names are openmm, cupy and jax (default: all). short: their results are compared with the host's. long: also the
# campaigns of examples/rocm, whose rates by kernel are printed. Installs the required packages into the root file system,
# and the frameworks from PyPI into /var/cache/flipwave-NAME there: 1 GB each for jax and cupy, and 2 GB of ROCm.
# The exit code is 1 if a test failed, and 3 if a framework cannot be installed.
set -eu

if [ $# -lt 3 ] || { [ "$3" != short ] && [ "$3" != long ]; }; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2
    exit 2
fi
here=$(dirname "$0")
root=$1
shift
[ $# != 2 ] || set -- "$@" openmm cupy jax
packages="python3 python3-venv gcc libc6-dev"
for name in $(echo "$*" | cut -d' ' -f3-); do
    case $name in
    openmm) ;;
    cupy)
        packages="$packages libhipblas3 libhipfft0 libhiprand1 libhipsparse4 librccl1 librocthrust-dev librocprim-dev
            libhipcub-dev"
        ;;
    jax)
        packages="$packages libdrm2 libdrm-amdgpu1 libnuma1 libhipblas3 libhipblaslt1 libhipfft0 libhipsolver1
            libhipsparse4 libmiopen1 librccl1"
        ;;
    *)
        echo "$0: no framework $name; expected openmm, cupy or jax" >&2
        exit 2
        ;;
    esac
done
"$here/root.sh" "$(cat "$root/.flipwave-root")" "$root" $packages >&2
exec "$here/in.sh" "$root" sh -euc "$(sed '1,/^# ---/d' "$0")" sh "$@"
# --- inside
gpu=$1
set=$2
shift 2
examples=/mnt/examples/rocm
folder=$(mktemp -d /tmp/flipwave-frameworks.XXXXXX)
trap 'rm -r "$folder"' EXIT
export EXAMPLE=$examples/jax PYTHONDONTWRITEBYTECODE=1

failed=0
# Runs a step and reports it with the last line of its output.
check() {
    name=$1
    shift
    start=$(date +%s)
    if "$@" >"$folder/log" 2>&1; then
        echo "ok      $name ($(($(date +%s) - start)) s)"
    else
        echo "FAILED  $name ($(($(date +%s) - start)) s)"
        tail -n 20 "$folder/log" | sed 's/^/        /'
        failed=1
    fi
}
on_gpu() {
    timeout 900 flipwave exec --gpu "$gpu" -- "$@"
}
# Compares the numbers of two files, which have the same number of them.
agree() {
    python3 - "$@" <<'PYTHON'
import re, sys

a, b = ([float(text) for text in re.findall(r"-?\d+\.\d+", open(path).read())] for path in sys.argv[1:])
worst = max((abs(x - y) / max(1, abs(x)) for x, y in zip(a, b)), default=1)
print(f"{len(a)} and {len(b)} numbers, which differ by {worst}")
sys.exit(len(a) != len(b) or not a or worst > 1e-4)
PYTHON
}
# Runs the campaign of an example, with a fault in each of 40 runs, and prints its rates by kernel.
campaign() {
    PATH=/var/cache/flipwave-$1:$PATH flipwave run "$examples/$1/$2" --target "$gpu" --out "$folder/$1.results" &&
        flipwave rates "$folder/$1.results" --by kernel >"$folder/rates" && [ -s "$folder/rates" ]
}
energies() {
    on_gpu /var/cache/flipwave-openmm/python $examples/openmm/argon.py HIP >"$folder/gpu" &&
        /var/cache/flipwave-openmm/python $examples/openmm/argon.py Reference >"$folder/host" &&
        agree "$folder/gpu" "$folder/host"
}
# XLA's own padding of 8 MiB around each buffer would be checked for each of more than 100 kernels.
autotuned() {
    XLA_FLAGS="--xla_gpu_autotune_level=4 --xla_gpu_redzone_padding_bytes=256" \
        on_gpu /var/cache/flipwave-jax/python /mnt/tests/rocm/jax/autotuned.py
}
# Energies after other steps differ.
planted_energies() {
    ! agree "$folder/gpu" "$(sed 's/10\./11./' "$folder/host" >"$folder/planted" && echo "$folder/planted")"
}

for framework do
    environment=/var/cache/flipwave-$framework
    $examples/environment.sh "$framework" "$environment" >"$folder/log" 2>&1 || {
        echo "$framework is not tested: it cannot be installed: $(tail -n 1 "$folder/log")"
        exit 3
    }
    case $framework in
    openmm)
        check "OpenMM: energies of argon" energies
        check "OpenMM: a planted error is found" planted_energies
        file=argon.yaml
        ;;
    cupy)
        check "CuPy: operations" on_gpu "$environment/python" /mnt/tests/rocm/cupy/test_operations.py
        file=heat.yaml
        ;;
    jax)
        check "JAX: operations and training" on_gpu "$environment/python" /mnt/tests/rocm/jax/test_operations.py
        check "JAX: autotuning" autotuned
        file=train.yaml
        ;;
    esac
    if [ "$set" = long ]; then
        check "$framework: campaign" campaign "$framework" $file
        sed 's/^/        /' "$folder/rates" || true
    fi
done
exit $failed
