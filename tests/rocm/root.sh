#!/bin/sh
# Creates a root file system of another Debian release with its version of ROCm:
#
#     tests/rocm/root.sh [--bare] forky DIR [PACKAGE...]
#
# experimental (with sid) has ROCm 7.2, forky (testing) 6.4, trixie (13) 6.1 and bookworm (12) 5.2.3. PACKAGEs are
# installed in addition to the default ones; with --bare there are no default ones. Only missing packages are installed
# into an existing root file system. Needs mmdebstrap and 2 GB; without root, also user namespaces with subordinate user
# and group IDs (/etc/subuid, /etc/subgid).
set -eu

bare=
if [ "${1:-}" = --bare ]; then
    bare=yes
    shift
fi
if [ $# -lt 2 ]; then
    echo "usage: $0 [--bare] SUITE DIR [PACKAGE...]" >&2
    exit 2
fi
suite=$1
root=$2
shift 2
if ! command -v mmdebstrap >/dev/null; then
    echo "$0: mmdebstrap is not installed (apt-get install mmdebstrap)" >&2
    exit 2
fi

case $suite in
    experimental) packages="libamdhip64-7 libamdhip64-dev libhiprtc7 hipcc rocminfo" ;;
    forky | testing) packages="libamdhip64-6 libamdhip64-dev hipcc rocminfo" ;;
    trixie) packages="libamdhip64-5 libamdhip64-dev hipcc rocminfo" ;;
    bookworm) packages="libamdhip64-5 libamdhip64-dev hipcc rocminfo" ;;
    *)
        echo "$0: no suite $suite; expected experimental, forky, trixie or bookworm" >&2
        exit 2
        ;;
esac
[ -z "$bare" ] || packages=

# Removes a root file system. Without root, its files belong to subordinate user IDs.
remove() {
    if [ "$(id -u)" = 0 ]; then
        rm -rf "$1"
    elif [ -e "$1" ]; then
        unshare --user --map-auto --setuid 0 --setgid 0 -- find "$1" -mindepth 1 -delete
        rmdir "$1"
    fi
}

# Source packages of experimental, which apt does not install from there without pins.
sources="rocm-hipamd rocr-runtime rocm-llvm rocm-core rocblas hipblas hipblaslt rccl miopen rocm-smi-lib
    rocprofiler-register roctracer rocsolver rocsparse hipsparse hipsolver hipfft rocfft rocrand hiprand rocprim hipcub
    rocthrust"

# Runs mmdebstrap with these arguments. The release file of a mirror may have expired.
create() {
    set -- --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' "$@"
    if [ "$suite" != experimental ]; then
        mmdebstrap "$@"
        return
    fi
    pins="Package:$(printf ' src:%s' $sources)\nPin: release a=experimental\nPin-Priority: 990\n"
    debian=http://deb.debian.org/debian
    mmdebstrap --setup-hook="printf '$pins' >\"\$1/etc/apt/preferences.d/rocm\"" "$@" \
        "deb $debian sid main" "deb $debian experimental main"
}

# An unfinished root file system has another name.
if [ ! -e "$root/.flipwave-root" ]; then
    remove "$root.part"
    include=$(echo $packages "$@" | tr ' ' ',')
    release=$suite
    [ "$suite" != experimental ] || release=sid
    create ${include:+--include="$include"} --customize-hook="echo $suite >\"\$1/.flipwave-root\"" \
        "$release" "$root.part"
    remove "$root"
    mv "$root.part" "$root"
elif [ $# -gt 0 ]; then
    "$(dirname "$0")/in.sh" "$root" sh -c '
        missing=
        for package do
            dpkg-query -W -f "\${db:Status-Status}" "$package" 2>/dev/null | grep -qx installed ||
                missing="$missing $package"
        done
        [ -n "$missing" ] || exit 0
        apt-get -q -o Acquire::Check-Valid-Until=false update
        DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
            $missing' sh "$@"
fi
