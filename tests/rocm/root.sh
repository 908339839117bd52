#!/bin/sh
# Creates a root file system of another Debian release with its version of ROCm:
#
#     tests/rocm/root.sh [--bare] forky DIR [PACKAGE...]
#
# forky (testing) has ROCm 6.4, trixie (13) 6.1 and bookworm (12) 5.2.3. PACKAGEs are installed in addition to
# the default ones; with --bare there are no default ones. Only missing packages are installed into an existing
# root file system. Needs mmdebstrap and 2 GB; without root, also user namespaces with subordinate user and
# group IDs (/etc/subuid, /etc/subgid).
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
    forky | testing) packages="libamdhip64-6 libamdhip64-dev hipcc rocminfo" ;;
    trixie) packages="libamdhip64-5 libamdhip64-dev hipcc rocminfo" ;;
    bookworm) packages="libamdhip64-5 libamdhip64-dev hipcc rocminfo" ;;
    *)
        echo "$0: no suite $suite; expected forky, trixie or bookworm" >&2
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

# An unfinished root file system has another name.
if [ ! -e "$root/.flipwave-root" ]; then
    remove "$root.part"
    include=$(echo $packages "$@" | tr ' ' ',')
    # The release file of a mirror may have expired.
    mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
        ${include:+--include="$include"} --customize-hook="echo $suite >\"\$1/.flipwave-root\"" \
        "$suite" "$root.part"
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
