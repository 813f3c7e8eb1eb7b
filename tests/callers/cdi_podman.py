#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cdi_podman.py [--build FOLDER]: podman gives a container what `wharf cdi` names.

A daemon of the test's own, a root file system of the command and its libraries, and podman with the specification in
/run/cdi.  The container's configuration must have the socket's folder, read-only, and the variable; and where containers
run at all, `wharf ping` in it must reach the daemon, and no file can be made beside the socket; where none runs, podman
says why.  Needs root and podman, and is skipped otherwise.  Reports in the Test Anything Protocol.

crun refuses machines that have control groups of both versions.  There everything runs in a mount namespace that has
those of version 2 alone.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import private_daemon  # noqa: E402  pylint: disable=wrong-import-position

SPECIFICATION = '/run/cdi/wharf.json'
GROUPS = '/sys/fs/cgroup'
STORAGE = '/var/lib/containers/storage/overlay-containers'
# What works where this itself may be in a container.
PODMAN = ('podman', '--cgroup-manager', 'cgroupfs')
OPTIONS = ('--network', 'host', '--cgroups', 'disabled', '--security-opt', 'seccomp=unconfined', '--ulimit',
           'nofile=1024:1024', '--ulimit', 'nproc=1024:1024')


class Skipped(Exception):
    pass


def run(*command):
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)


def make_root(wharf, root):
    """The command, a shell and what the linker finds for them."""
    for folder in 'bin', 'run/wharf', 'tmp', 'dev', 'proc', 'sys', 'etc':
        os.makedirs(f'{root}/{folder}')
    for program in wharf, '/bin/sh':
        shutil.copy(program, f'{root}/bin/')
        for library in re.findall(r'(/\S+)', run('ldd', program).stdout):
            os.makedirs(root + os.path.dirname(library), exist_ok=True)
            shutil.copy(library, root + library)


def configuration_of(root, device):
    """What podman gives to its runtime, whether that can run it or not."""
    made = run(*PODMAN, 'create', *OPTIONS, '--device', f'wharf.io/daemon={device}', '--rootfs', root, '/bin/wharf',
               '--version')
    assert made.returncode == 0, made.stderr
    name = made.stdout.strip()
    try:
        run(*PODMAN, 'start', '--attach', name)
        path, = glob.glob(f'{STORAGE}/{name}/userdata/config.json')
        with open(path, encoding='utf-8') as file:
            return json.load(file)
    finally:
        run(*PODMAN, 'rm', '--force', name)


def podman_takes_the_specification(daemon, root, wharf):
    for device in 'socket', 'all':
        configuration = configuration_of(root, device)
        mounts = {mount['destination']: mount for mount in configuration['mounts']}
        mount = mounts['/run/wharf']
        assert mount['source'] == daemon.folder and 'ro' in mount['options'], mount
        assert f'WHARF_SOCKET=/run/wharf/{os.path.basename(daemon.socket)}' in configuration['process']['env']
        library = os.path.realpath(os.path.join(os.path.dirname(wharf), 'libwharf.so.0'))
        assert (library in mounts) == (device == 'all'), mounts


def client_in_a_container_reaches_the_daemon(_, root, __):
    inside = (*PODMAN, 'run', '--rm', *OPTIONS)
    done = run(*inside, '--rootfs', root, '/bin/wharf', '--version')
    if done.returncode:
        raise Skipped(f'no container runs here: {" ".join(done.stderr.split())}')
    done = run(*inside, '--device', 'wharf.io/daemon=socket', '--rootfs', root, '/bin/wharf', 'ping')
    assert done.returncode == 0 and 'answers' in done.stdout, done.stderr
    done = run(*inside, '--device', 'wharf.io/daemon=socket', '--rootfs', root, '/bin/sh', '-c', ': > /run/wharf/other')
    assert done.returncode != 0 and 'Read-only' in done.stderr, done.stderr


TESTS = podman_takes_the_specification, client_in_a_container_reaches_the_daemon


def leave_old_control_groups():
    """Starts this anew in a mount namespace where the machine has groups of both versions."""
    if not os.path.exists(f'{GROUPS}/unified') or os.environ.get('WHARF_TEST_NAMESPACE'):
        return
    words = 'unshare', '--mount', 'sh', '-c', f'mount -t cgroup2 none {GROUPS} && exec "$0" "$@"', *sys.argv
    if run(*words[:4], f'mount -t cgroup2 none {GROUPS}').returncode == 0:
        os.execvpe('unshare', words, {**os.environ, 'WHARF_TEST_NAMESPACE': '1'})


def prepare(wharf, daemon):
    done = run(wharf, 'cdi', '-q', '--socket', daemon.socket)
    assert done.returncode == 0, done.stderr
    os.makedirs(os.path.dirname(SPECIFICATION), exist_ok=True)
    with open(SPECIFICATION, 'x', encoding='utf-8') as file:
        file.write(done.stdout)


def report(number, test, *arguments):
    word, end = 'ok', ''
    try:
        test(*arguments)
    except Skipped as reason:
        end = f' # SKIP {reason}'
    except AssertionError as error:
        word = 'not ok'
        print(re.sub('^', '# ', str(error), flags=re.M))
    print(f'{word} {number} - {test.__name__}{end}', flush=True)
    return word != 'ok'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    build = os.path.join(TOP, parser.parse_args().build)
    if not os.geteuid() and shutil.which('podman'):
        leave_old_control_groups()
    print(f'1..{len(TESTS)}', flush=True)
    if os.geteuid() or not shutil.which('podman') or glob.glob('/etc/cdi/wharf*') or os.path.exists(SPECIFICATION):
        for number, test in enumerate(TESTS, 1):
            print(f'ok {number} - {test.__name__} # SKIP needs root, podman, and no specification of wharf that is there')
        return 0
    daemon = private_daemon.Daemon(f'{build}/wharfd')
    with tempfile.TemporaryDirectory() as folder:
        try:
            make_root(f'{build}/wharf', f'{folder}/root')
            prepare(f'{build}/wharf', daemon)
            return any([report(number, test, daemon, f'{folder}/root', f'{build}/wharf')
                        for number, test in enumerate(TESTS, 1)])
        finally:
            if os.path.exists(SPECIFICATION):
                os.remove(SPECIFICATION)
            daemon.remove()


if __name__ == '__main__':
    sys.exit(main())
