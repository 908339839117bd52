#!/bin/sh
# Runs a command in a root file system created by root.sh, with Flipwave in its path:
#
#     tests/rocm/in.sh DIR COMMAND [ARGUMENT...]
#
# Flipwave is taken from the folder FLIPWAVE_BIN, or target/release, or target/debug. /tmp is this machine's;
# /mnt/tests and /mnt/examples are the folders tests and examples. Mounts are visible to the command only and disappear
# when it ends.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 DIR COMMAND [ARGUMENT...]" >&2
    exit 2
fi
if [ ! -x "$1/usr/bin/env" ]; then
    echo "$0: no root file system in $1; create one with root.sh" >&2
    exit 2
fi
root=$(realpath "$1")
shift
here=$(realpath "$(dirname "$0")/../..")
built=${CARGO_TARGET_DIR:-$here/target}
if [ -x "$built/release/flipwave" ]; then
    built=$built/release
else
    built=$built/debug
fi
bin=$(realpath "${FLIPWAVE_BIN:-$built}")
export root bin here

# Other users become root in a user namespace, with the same user IDs as in root.sh.
user=
[ "$(id -u)" = 0 ] || user="--user --map-auto --setuid 0 --setgid 0"
exec unshare $user --mount -- sh -c "$(sed '1,/^# ---/d' "$0")" sh "$@"
# --- in the new namespace
set -eu
mount --make-rprivate /
mount -t tmpfs flipwave "$root/mnt"
mkdir "$root/mnt/bin" "$root/mnt/lib" "$root/mnt/tests" "$root/mnt/examples"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --bind /tmp "$root/tmp"
mount --bind "$here/tests" "$root/mnt/tests"
mount --bind "$here/examples" "$root/mnt/examples"
# Certificates that this machine trusts, for package indexes.
certificates=/etc/ssl/certs/ca-certificates.crt
[ ! -e "$certificates" ] || [ ! -e "$root$certificates" ] || mount --bind "$certificates" "$root$certificates"
if [ -x "$bin/flipwave" ]; then
    mount --bind "$bin" "$root/mnt/bin"
    # Libraries that Flipwave needs and the root file system lacks.
    chroot "$root" /sbin/ldconfig -p | grep -v /mnt/lib >"$root/mnt/present"
    ldd "$bin/flipwave" | while read -r name _ file _; do
        if [ -e "$file" ] && ! grep -qw "$name" "$root/mnt/present"; then
            : >"$root/mnt/lib/$name"
            mount --bind "$(realpath "$file")" "$root/mnt/lib/$name"
        fi
    done
fi
# Not with an environment variable, because campaigns do not pass on the environment.
echo /mnt/lib >"$root/etc/ld.so.conf.d/flipwave.conf"
# One at a time: concurrent commands in a root file system would write the same file.
flock "$root/.flipwave-root" chroot "$root" /sbin/ldconfig
exec chroot "$root" env -C / HOME=/root PATH=/mnt/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
