#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""fd_filter_test.py [--build FOLDER]: the filter, where starting it is not a matter of course.

The daemon is one whose zlib is in a folder that LD_LIBRARY_PATH alone names, as in a bundle that was
carried to another machine: its program is a copy with another name of that library in it.  Once the
filter was started without the daemon's environment.  Everything worked until the daemon was killed:
clients bring the next one their memory, which goes through the filter.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

LIBRARY, OTHER_NAME = 'libz.so.1', 'libz.so.w'


def carried_away(build, folder):
    """A wharfd in that folder that needs OTHER_NAME, which is in its folder lib."""
    with open(os.path.join(build, 'wharfd'), 'rb') as file:
        program = file.read()
    assert LIBRARY.encode() + b'\0' in program
    path = os.path.join(folder, 'wharfd')
    with open(path, 'wb') as file:
        file.write(program.replace(LIBRARY.encode() + b'\0', OTHER_NAME.encode() + b'\0'))
    os.chmod(path, 0o755)
    found = subprocess.run(['ldd', os.path.join(build, 'wharfd')], capture_output=True, text=True,
                           check=True).stdout
    library = re.search(rf'{re.escape(LIBRARY)} => (\S+)', found).group(1)
    os.mkdir(os.path.join(folder, 'lib'))
    shutil.copy(library, os.path.join(folder, 'lib', OTHER_NAME))
    return path


def name_of(pid):
    """Of a process, or None of one that has ended."""
    try:
        with open(f'/proc/{pid}/comm', encoding='ascii') as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def fd_filter_of(daemon):
    """The process id of the daemon's filter, or None: the kernel's list may lack some while one ends."""
    pid = daemon.process.pid
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        children = file.read().split()
    return next((int(child) for child in children if name_of(child) == 'wharfd-filter'), None)


def until(holds, what):
    end = time.monotonic() + wc.PATIENCE_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.005)


def refusal(daemon, memory):
    """What a client is told that registers memory, or None if it may."""
    client = wc.Client(daemon.socket)
    try:
        client.register(1, memory, 4096)
        return None
    except wc.Refused as error:
        return str(error)
    finally:
        client.close()


def replay_goes_through_the_fd_filter(daemon, _):
    client = wc.Client(daemon.socket)
    for _ in range(2):
        daemon.kill()
        daemon.start()
        client.come_back()
        assert client.run(opcode=wc.OP_NOOP)['result'] == 0
    client.close()


def fd_filter_is_there_before_it_is_needed(daemon, _):
    until(lambda: fd_filter_of(daemon), 'there is no filter')


def fd_filter_that_does_not_start_again_is_said(daemon, folder):
    memory = wc.sealed_memfd(4096)
    os.rename(f'{folder}/lib', f'{folder}/gone')
    until(lambda: fd_filter_of(daemon), 'there is no filter')
    os.kill(fd_filter_of(daemon), signal.SIGKILL)
    until(lambda: 'the filter, which receives descriptors, has ended by SIGKILL' in daemon.says(),
          'the daemon does not notice')
    told = refusal(daemon, memory)
    assert 'does not start' in told, told
    until(lambda: 'does not start: it has ended with status 127' in daemon.says(), 'the log does not say why')
    os.rename(f'{folder}/gone', f'{folder}/lib')
    assert refusal(daemon, memory) is None
    os.close(memory)


TESTS = (replay_goes_through_the_fd_filter, fd_filter_is_there_before_it_is_needed,
         fd_filter_that_does_not_start_again_is_said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    options = parser.parse_args()
    failed = 0
    print(f'1..{len(TESTS)}')
    with tempfile.TemporaryDirectory(prefix='wharf-gate.') as folder:
        program = carried_away(os.path.join(TOP, options.build), folder)
        daemon = Daemon(program, LD_LIBRARY_PATH=f'{folder}/lib')
        try:
            for number, test in enumerate(TESTS, 1):
                try:
                    test(daemon, folder)
                    word = 'ok'
                except Exception as error:  # pylint: disable=broad-exception-caught
                    word, failed = 'not ok', failed + 1
                    print(f'# {error!r}\n# the daemon said:')
                    print(re.sub('^', '# ', daemon.says(), flags=re.M))
                print(f'{word} {number} - {test.__name__}', flush=True)
        finally:
            daemon.remove()
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
