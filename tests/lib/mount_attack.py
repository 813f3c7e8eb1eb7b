#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mount_attack.py FOLDER: what root of a container tries on a folder that was mounted into it.

For everything that is there: lock, remove, rename, change, replace it; and put something there.  What
succeeds is a line of output, and each lock that could be had is held.  Then comes the line `done`, and
the locks stay until standard input ends.
"""
import ctypes
import fcntl
import os
import socket
import stat
import struct
import subprocess
import sys

MS_REMOUNT, MS_BIND = 0x20, 0x1000
LIBC = ctypes.CDLL(None, use_errno=True)

held = []


def lock(path):
    """Through a descriptor for reading, which is all that a read-only mount gives."""
    held.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_range(path):
    held.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    fcntl.fcntl(held[-1], fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 0, 0))


def write(path):
    os.close(os.open(path, os.O_WRONLY))


def bind_at(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)


def remount(path):
    if LIBC.mount(None, path.encode(), None, MS_REMOUNT | MS_BIND, None) < 0:
        raise OSError(ctypes.get_errno(), 'mount')


def unmount(path):
    if LIBC.umount2(path.encode(), 2) < 0:
        raise OSError(ctypes.get_errno(), 'umount')


def remount_in_namespace(path):
    """As root of a user namespace, who has every capability there."""
    subprocess.run(['unshare', '--user', '--map-root-user', '--mount', 'mount', '-o', 'remount,bind,rw', path],
                   check=True, capture_output=True)


ON_ALL = [
    ('link', lambda path: os.link(path, path + '.linked')),
    ('chmod', lambda path: os.chmod(path, 0o777)),
    ('chown', lambda path: os.chown(path, 1, 1)),
    ('touch', lambda path: os.utime(path, (0, 0))),
    ('label', lambda path: os.setxattr(path, 'security.wharf', b'1')),
    ('rename', lambda path: (os.rename(path, path + '.renamed'), os.rename(path + '.renamed', path))),
]
ON_FILES = [('write', write), ('remove', os.unlink)]
ON_FOLDERS = [
    ('remount', remount),
    ('remount in a namespace', remount_in_namespace),
    ('unmount', unmount),
    ('create in', lambda path: os.open(path + '/file', os.O_CREAT | os.O_WRONLY)),
    ('make a folder in', lambda path: os.mkdir(path + '/folder')),
    ('make a link in', lambda path: os.symlink('elsewhere', path + '/symlink')),
    ('make a pipe in', lambda path: os.mkfifo(path + '/pipe')),
    ('listen in', lambda path: bind_at(path + '/own.sock')),
]


def attempt(name, attack, path):
    try:
        attack(path)
    except (OSError, subprocess.CalledProcessError):
        return
    print(f'{name} {path}')


def main():
    top = sys.argv[1]
    paths = [top] + [os.path.join(at, name) for at, folders, names in os.walk(top)
                     for name in sorted(folders + names)]
    kinds = {path: os.lstat(path).st_mode for path in paths}
    # All locks before anything that could move what they are on.
    for path in paths:
        attempt('lock', lock, path)
        attempt('lock a range of', lock_range, path)
    for path in reversed(paths):
        for name, attack in ON_ALL + (ON_FOLDERS if stat.S_ISDIR(kinds[path]) else ON_FILES):
            attempt(name, attack, path)
    print('done', flush=True)
    sys.stdin.read()


if __name__ == '__main__':
    main()
