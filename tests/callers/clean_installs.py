#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""clean_installs.py [--build FOLDER] [SUITE...]: wharf on fresh systems, from its packages and from its wheel.

For Debian 12 and 13, of which mmdebstrap makes trees with nothing but the essential packages: apt installs the Debian
packages and pip the wheel, both of which are built on this machine.  The first example of the page EXAMPLES.md must run,
in the process and through the daemon, the command must pack and read, and nothing is left when the packages are purged.
A suite that is older than this machine is skipped, since its C library is.

The trees' archives, and packages of the present sources, stay in build/clean.  The mirror is the one that apt has here.
Needs root, mmdebstrap, and a mirror that can be reached, and is skipped otherwise.  Reports in the Test Anything
Protocol.
"""
import argparse
import glob
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import time
import zlib

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
CLEAN = os.path.join(TOP, 'build', 'clean')
SUITES = 'bookworm', 'trixie'
# As deb.mk has them.
SOURCES = '.ci', 'Makefile', 'README.md', 'LICENSE', 'proto', 'encoders', 'kernels', 'clientlib', 'daemon', 'systemd'
PATIENCE_S = 3600

# Runs as a program in the tree, where /wharf has what is installed.
EXAMPLE = r"""
for page in /usr/share/doc/python3-wharf/EXAMPLES.md* /wharf/EXAMPLES.md; do
    [ ! -f "$page" ] || zcat -f "$page" | sed '1,/^```python$/d;/^```$/,$d' > /wharf/example.py
done
cd /wharf
"$PYTHON" example.py
"""
COMMAND = r"""
cd /wharf
WHARF_SOCKET=/no/such/socket
export WHARF_SOCKET
wharf pack -q example.py
wharf unpack -q --range 0:13 -o - example.py.whr
"""
DAEMON = r"""
wharfd --socket /wharf/socket 2> /wharf/log &
daemon=$!
until [ -S /wharf/socket ]; do
    kill -0 $daemon || { cat /wharf/log; exit 1; }
    sleep 0.1
done
WHARF_SOCKET=/wharf/socket
export WHARF_SOCKET
wharf ping --count 1 --patience 60 > /wharf/ping
""" + EXAMPLE + r"""
wharf stats --prometheus | grep '^wharf_chunks_total'
kill $daemon
wait
"""


class Skipped(Exception):
    pass


def run(*command, **options):
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=PATIENCE_S, **options)
    assert done.returncode == 0, f'{" ".join(command)[:200]}:\n{done.stdout[-4000:]}'
    return done.stdout


def inside(tree, script, **environment):
    """A shell in the tree, with its own processes, so that none outlives it."""
    return run('unshare', '--mount', '--pid', '--fork', '--kill-child', 'chroot', tree, '/usr/bin/env', '-i',
               'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/root', 'LC_ALL=C.UTF-8', 'DEBIAN_FRONTEND=noninteractive',
               *(f'{name}={value}' for name, value in os.environ.items() if name.lower().endswith('_proxy')),
               *(f'{name}={value}' for name, value in environment.items()),
               'sh', '-ec', f'mount -t proc proc /proc\n{script}')


def own_suite():
    with open('/etc/os-release', encoding='utf-8') as file:
        found = re.search(r'^VERSION_CODENAME=(\w+)$', file.read(), re.M)
    if not found or found[1] not in SUITES:
        raise Skipped(f'this machine is none of {", ".join(SUITES)}')
    return found[1]


def mirror():
    found = subprocess.run(['apt-get', 'indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages',
                            'Origin: Debian', 'Label: Debian'], check=False, capture_output=True, text=True).stdout
    if not found:
        raise Skipped('apt has no mirror of Debian here')
    return found.split()[0]


def make_tree(suite):
    """A fresh one, of an archive that is made once."""
    archive, fresh, tree = f'{CLEAN}/{suite}.tar', f'{CLEAN}/new-{suite}.tar', f'{CLEAN}/{suite}'
    if not os.path.exists(archive):
        os.makedirs(CLEAN, exist_ok=True)
        done = subprocess.run(['mmdebstrap', '--quiet', '--variant=minbase', suite, fresh, mirror()], check=False,
                              capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode:
            raise Skipped(f'mmdebstrap makes no tree: {done.stderr.strip().splitlines()[-1:]}')
        os.rename(fresh, archive)
    shutil.rmtree(tree, ignore_errors=True)
    os.makedirs(tree)
    run('tar', '-C', tree, '-xf', archive)
    os.mkdir(f'{tree}/wharf')
    shutil.copy('/etc/resolv.conf', f'{tree}/etc/resolv.conf')
    # Nobody needs it after a crash.
    with open(f'{tree}/etc/dpkg/dpkg.cfg.d/unsafe-io', 'w', encoding='ascii') as file:
        file.write('force-unsafe-io\n')
    return tree


def digest():
    """Of all that packages are made of."""
    found = hashlib.sha256()
    for name in run('git', '-C', TOP, 'ls-files', '-z', *SOURCES).split('\0'):
        path = os.path.join(TOP, name)
        if os.path.isfile(path):
            with open(path, 'rb') as file:
                found.update(name.encode() + b'\0' + file.read())
    return found.hexdigest()


def make(*targets):
    plain = {name: value for name, value in os.environ.items() if not name.startswith(('MAKE', 'MFLAGS'))}
    run('make', '-C', TOP, *targets, 'NVCC=', env=plain)


def packages():
    """The folder of them."""
    folder, wanted = f'{CLEAN}/packages', digest()
    if not os.path.exists(f'{folder}/{wanted}'):
        make('deb')
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for path in glob.glob(f'{TOP}/build/deb/*.deb'):
            # What nobody asks for are symbols of programs.
            if '-dbgsym_' not in path:
                shutil.copy(path, folder)
        with open(f'{folder}/{wanted}', 'w', encoding='ascii'):
            pass
    return folder


def put_chunks(tree):
    """What the example reads."""
    chunks = [zlib.compress(bytes(1000))] * 20
    with open(f'{tree}/wharf/chunks.bin', 'wb') as file:
        file.write(b''.join(struct.pack('<I', len(chunk)) + chunk for chunk in chunks))


def timed(what, function, *arguments, **options):
    begin = time.monotonic()
    result = function(*arguments, **options)
    print(f'# {what}: {time.monotonic() - begin:.1f} s', flush=True)
    return result


SAID = '20 chunks, 20000 bytes\n'


def apt_installs_the_packages(suite, _):
    folder = timed('packages', packages)
    tree = timed('tree', make_tree, suite)
    for path in glob.glob(f'{folder}/*.deb'):
        shutil.copy(path, f'{tree}/wharf')
    put_chunks(tree)
    timed('apt', inside, tree, 'apt-get -q update\napt-get -q install -y /wharf/*.deb')
    said = timed('example', inside, tree, EXAMPLE, PYTHON='python3')
    assert said == SAID, said
    said = inside(tree, COMMAND)
    assert said == 'import struct', said
    said = timed('example through the daemon', inside, tree, DAEMON, PYTHON='python3')
    assert said.startswith(SAID) and re.search(r'^wharf_chunks_total\S* [1-9]', said, re.M), said
    # Nothing but accounts is left.
    inside(tree, 'apt-get -q purge -y wharf wharfd libwharf0 libwharf-dev python3-wharf wharf-hdf5\n'
           '! find / -xdev -path /wharf -prune -o -path /proc -prune -o -path /var/log -prune -o -name "*wharf*" -print | grep .')


def pip_installs_the_wheel(suite, build):
    make(f'VARIANT={os.path.basename(build)}', 'wheel')
    wheel, = glob.glob(f'{build}/wheel/*.whl')
    tree = timed('tree', make_tree, suite)
    shutil.copy(wheel, f'{tree}/wharf')
    shutil.copy(f'{TOP}/clientlib/python/EXAMPLES.md', f'{tree}/wharf')
    put_chunks(tree)
    timed('venv', inside, tree, 'apt-get -q update\napt-get -q install -y --no-install-recommends python3-venv\n'
          'python3 -m venv /venv')
    timed('pip', inside, tree, '/venv/bin/pip install -q --no-index /wharf/*.whl')
    said = timed('example', inside, tree, EXAMPLE, PYTHON='/venv/bin/python3')
    assert said == SAID, said


TESTS = apt_installs_the_packages, pip_installs_the_wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    parser.add_argument('suites', nargs='*', default=SUITES, metavar='SUITE', help=' or '.join(SUITES))
    options = parser.parse_args()
    cases = [(suite, test) for suite in options.suites for test in TESTS]
    failed = 0
    print(f'1..{len(cases)}', flush=True)
    for number, (suite, test) in enumerate(cases, 1):
        word, end = 'ok', ''
        try:
            if os.geteuid() or not shutil.which('mmdebstrap'):
                raise Skipped('needs root and mmdebstrap')
            if SUITES.index(suite) < SUITES.index(own_suite()):
                raise Skipped('this machine is a later one')
            test(suite, os.path.join(TOP, options.build))
        except Skipped as reason:
            end = f' # SKIP {reason}'
        except AssertionError as error:
            word, failed = 'not ok', failed + 1
            print(re.sub('^', '# ', str(error), flags=re.M))
        print(f'{word} {number} - {suite}: {test.__name__}{end}', flush=True)
        shutil.rmtree(f'{CLEAN}/{suite}', ignore_errors=True)
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
