#!/bin/sh
# Runs tinygrad on the embedded GPU:
#
#     tests/tinygrad/run.sh short|long [TARGET...]
#
# short: operations compared with NumPy, and the example examples/tinygrad/train.py, on gfx1100 and gfx942.
# long: also the tests test_ops.py and test_nn.py of tinygrad's repository, with TINYGRAD_SOURCE, a checkout of it, and
# PyTorch for Python; on gfx1100, gfx942, gfx1201 and gfx950.
#
# FLIPWAVE is the program (target/release/flipwave). The packages of requirements.txt are installed in target/tinygrad.
# tinygrad compiles with LLVM: LLVM_PATH is the library.
#
# The exit code is 1 if a test failed. If tinygrad cannot be installed, a message says so and the exit code is 3.
set -u

case ${1:-} in
short) targets="gfx1100 gfx942" ;;
long) targets="gfx1100 gfx942 gfx1201 gfx950" ;;
*)
    echo "usage: $0 short|long [TARGET...]" >&2
    exit 2
    ;;
esac
set=$1
shift
[ $# = 0 ] || targets=$*
here=$(realpath "$(dirname "$0")")
root=$(realpath "$here/../..")
flipwave=${FLIPWAVE:-$root/target/release/flipwave}
environment=$root/target/tinygrad
python=$environment/bin/python

cannot() {
    echo "$0: tinygrad is not tested: $1" >&2
    exit 3
}
if [ -z "${LLVM_PATH:-}" ]; then
    LLVM_PATH=$(ls /usr/lib/*/libLLVM.so.22* /usr/lib/llvm-22/lib/libLLVM.so.* 2>/dev/null | head -n 1)
fi
[ -e "$LLVM_PATH" ] || cannot "there is no libLLVM 22; install it or set LLVM_PATH"
export LLVM_PATH
if ! cmp -s "$here/requirements.txt" "$environment/requirements.txt"; then
    python3 -m venv --clear "$environment" || cannot "python3 has no venv"
    "$python" -m pip install --quiet --disable-pip-version-check --requirement "$here/requirements.txt" ||
        cannot "pip cannot install $here/requirements.txt"
    cp "$here/requirements.txt" "$environment/requirements.txt"
fi

# Runs a command of Python on a target and reports it; failures are counted and do not end the script.
failed=0
check() {
    name=$1
    target=$2
    shift 2
    start=$(date +%s)
    code=0
    output=$(CACHEDB=$environment/cache.db DEV=KFD+AMD:LLVM \
        timeout 7200 "$flipwave" exec --gpu "$target" -- "$python" "$@" 2>&1) || code=$?
    seconds=$(($(date +%s) - start))
    if [ $code = 0 ]; then
        echo "ok      $name on $target ($seconds s)"
        echo "$output" | tail -n 1 | sed 's/^/        /'
    else
        echo "FAILED  $name on $target ($seconds s, exit code $code)"
        echo "$output" | sed 's/^/        /'
        failed=$((failed + 1))
    fi
}

for target in $targets; do
    check "operations" "$target" "$here/test_operations.py"
    check "training" "$target" "$root/examples/tinygrad/train.py" 4
    # Kernels that AQL packets dispatch, between PM4 packets in indirect buffers.
    export AMD_AQL=1
    [ "$target" != gfx1100 ] || check "operations by AQL" "$target" "$here/test_operations.py"
    unset AMD_AQL
done
# Tools observe kernels inside the GPU, and report that they cannot insert hooks.
tool() {
    CACHEDB=$environment/cache.db DEV=KFD+AMD:LLVM timeout 600 "$flipwave" tool opcode-histogram --by "$1" \
        --gpu gfx1100 --out "$environment/histogram.csv" -- "$python" -c \
        'from tinygrad import Tensor; print((Tensor([1, 2]) + 1).tolist())' 2>&1
}
rm -f "$environment/histogram.csv"
output=$(tool hook) && code=0 || code=$?
if [ $code = 2 ] && echo "$output" | grep -q "use \`--by embedded\`" && tool embedded >/dev/null &&
    grep -q v_add "$environment/histogram.csv"; then
    echo "ok      tools on gfx1100"
else
    echo "FAILED  tools on gfx1100 (exit code $code): $output"
    failed=$((failed + 1))
fi
if [ $set = long ]; then
    if [ -z "${TINYGRAD_SOURCE:-}" ]; then
        echo "skipped: tinygrad's own tests; set TINYGRAD_SOURCE to a checkout of tinygrad 0.14.0"
    else
        for target in $targets; do
            for test in test_ops test_nn; do
                PYTHONPATH=$TINYGRAD_SOURCE check "$test.py" "$target" "$here/suite.py" \
                    "$TINYGRAD_SOURCE/test/backend/$test.py"
            done
        done
    fi
fi
[ $failed = 0 ]
