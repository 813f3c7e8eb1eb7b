#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""memory_group_test.py [--build FOLDER]: a daemon in a control group with little memory.

What all clients have together is three quarters of that, and who wants more is refused by name,
before the group's limit is reached.
"""
import argparse
import os
import sys
import tempfile
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

NAME = 'totals_follow_the_memory_of_the_control_group'
MIB = 1 << 20
GROUP_NBYTES = 1024 * MIB


def make_group():
    """The folder of a new group below this process's, and the name of its limit; or None."""
    with open('/proc/self/cgroup', encoding='ascii') as file:
        lines = [line.rstrip('\n').split(':', 2) for line in file]
    for _, controllers, group in lines:
        if controllers == 'memory':
            root, limit = '/sys/fs/cgroup/memory', 'memory.limit_in_bytes'
        elif controllers == '':
            root, limit = '/sys/fs/cgroup', 'memory.max'
        else:
            continue
        folder = f'{root}{group.rstrip("/")}/wharf-test-{os.getpid()}'
        try:
            os.mkdir(folder)
        except OSError:
            continue
        if os.path.exists(f'{folder}/{limit}'):
            return folder, limit
        os.rmdir(folder)
    return None


def write(path, text):
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)


def totals_follow(program, folder, group, limit):
    """The daemon is started by a shell that goes into the group."""
    wrapper = f'{folder}/wharfd'
    write(f'{group}/{limit}', str(GROUP_NBYTES))
    write(wrapper, f'#!/bin/sh\necho $$ > {group}/cgroup.procs && exec {program} "$@"\n')
    os.chmod(wrapper, 0o755)
    daemon = Daemon(wrapper)
    try:
        daemon.kill()
        write(daemon.config, '[quota]\nmax_memory = 8G\nmax_arena = 8G\n')
        daemon.start()
        most = GROUP_NBYTES // 4 * 3
        try:
            wc.Client(daemon.socket, arena_nbytes=most + 2 * MIB)
        except wc.Refused as error:
            assert f'over [total] max_memory, {most},' in str(error), error
        else:
            raise AssertionError('an arena beyond the total was made')
        # No more than half of the total is kept for owners who have not come yet.
        wc.Client(daemon.socket, arena_nbytes=most // 4).close()
    finally:
        daemon.kill()
        daemon.remove()


def remove_group(group):
    """What was killed is out of it a moment later."""
    end = time.monotonic() + wc.PATIENCE_S
    while True:
        try:
            os.rmdir(group)
            return
        except OSError:
            assert time.monotonic() < end, f'{group} stays'
            time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    options = parser.parse_args()
    print('1..1')
    made = make_group()
    if not made:
        print(f'ok 1 - {NAME} # SKIP no control group for memory can be made here')
        return 0
    error = None
    with tempfile.TemporaryDirectory(prefix='wharf-group.') as folder:
        try:
            totals_follow(os.path.join(TOP, options.build, 'wharfd'), folder, *made)
        except Exception as caught:  # pylint: disable=broad-exception-caught
            error = caught
            print(f'# {error!r}')
    remove_group(made[0])
    print(f'{"not " if error else ""}ok 1 - {NAME}')
    return error is not None


if __name__ == '__main__':
    sys.exit(main())
