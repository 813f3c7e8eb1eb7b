#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# container_root.sh [-r] [-u UID] -v SOURCE:TARGET[:ro]... COMMAND...: runs a command as root, or as the
# user of that number, in what a container is made of, with these folders mounted as `podman run -v`
# would, and with -r a root that is read-only but for /tmp: namespaces of its own, a root file system with nothing of the machine's but its programs, and
# the capabilities that Docker leaves to root.  There is no filter of system calls.  Needs root.
set -eu

# What a container's root has by default.
capabilities=chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw
capabilities=$capabilities,sys_chroot,mknod,audit_write,setfcap

# mount_at SOURCE TARGET [ro]: a folder or a file, in the root that is being made.
mount_at() {
    if [ -d "$1" ]; then
        mkdir -p "$root$2"
    else
        mkdir -p "$(dirname "$root$2")"
        touch "$root$2"
    fi
    mount --bind "$1" "$root$2"
    [ "${3:-}" != ro ] || mount -o remount,bind,ro "$root$2"
}

if [ "${1:-}" != --inside ]; then
    exec unshare --mount --propagation private --pid --fork --kill-child --net --ipc --uts "$0" --inside "$@"
fi
shift

root=/mnt
mount -t tmpfs -o mode=755 container "$root"
for path in /bin /sbin /lib /lib32 /lib64 /libx32 /usr; do
    if [ -L "$path" ]; then
        cp -a "$path" "$root$path"
    elif [ -e "$path" ]; then
        mount_at "$path" "$path" ro
    fi
done
mkdir -m 1777 "$root/tmp"
mkdir "$root/proc" "$root/old" "$root/etc"
cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.* /etc/alternatives "$root/etc"
mount -t proc proc "$root/proc"
for device in null zero urandom; do
    mount_at "/dev/$device" "/dev/$device"
done

user=0
is_read_only=
while getopts ru:v: option; do
    case $option in
    r) is_read_only=yes ;;
    u) user=$OPTARG ;;
    v)
        IFS=: read -r source target mode <<< "$OPTARG"
        mount_at "$source" "$target" "$mode"
        ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))

cd "$root"
pivot_root . old
umount -l /old
rmdir /old
cd /
if [ "$is_read_only" ]; then
    mount -t tmpfs -o mode=1777 tmp /tmp
    mount -o remount,ro /
fi
# A change of user takes away the signal that --kill-child asked for.
exec setpriv --reuid "$user" --regid "$user" --clear-groups --pdeathsig KILL --no-new-privs \
    --inh-caps -all --bounding-set "-all,+${capabilities//,/,+}" "$@"
