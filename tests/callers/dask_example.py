#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""dask_example.py [--build FOLDER]: clientlib/examples/dask_words.py over 10,000 objects.

It must say the same without wharf, with a daemon, and when a worker and the daemon are killed in the middle; after its
end nothing of it is left at the daemon.  Dask comes from PyPI, into a folder of the build; where PyPI cannot be reached
the tests are skipped.  Reports in the Test Anything Protocol.
"""
import argparse
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import private_daemon  # noqa: E402  pylint: disable=wrong-import-position

EXAMPLE = os.path.join(TOP, 'clientlib', 'examples', 'dask_words.py')
VENV = os.path.join(TOP, 'build', 'venv-dask')
PACKAGE = 'dask[distributed]==2026.7.1'
N_OBJECTS = 10000
PATIENCE_S = 600


class Skipped(Exception):
    pass


def make_venv():
    python = f'{VENV}/bin/python3'
    if not os.path.exists(python) or subprocess.run([python, '-c', 'import distributed'], check=False,
                                                    stderr=subprocess.DEVNULL).returncode:
        subprocess.run(['python3', '-m', 'venv', VENV], check=True)
        done = subprocess.run([f'{VENV}/bin/pip', 'install', '--quiet', '--disable-pip-version-check', PACKAGE],
                              check=False, capture_output=True, text=True)
        if done.returncode and re.search('NewConnectionError|ConnectTimeoutError|NameResolutionError|ReadTimeoutError|'
                                         'ProxyError', done.stderr):
            raise Skipped('PyPI cannot be reached')
        assert done.returncode == 0, done.stderr
    return python


def make_objects(folder):
    chance = random.Random(1)
    words = [f'word{number}' for number in range(3000)]
    os.mkdir(folder)
    for number in range(N_OBJECTS):
        text = ' '.join(chance.choices(words, k=120))
        with open(f'{folder}/{number:05}.gz', 'wb') as file:
            file.write(gzip.compress(text.encode(), 1, mtime=0))


class Run:
    """The example, and what it said."""

    def __init__(self, python, build, folder, daemon, *options):
        environment = {**os.environ, 'WHARF_SOCKET': daemon.socket, 'PYTHONPATH': f'{build}/python'}
        self.process = subprocess.Popen([python, EXAMPLE, folder, '--workers', '2', '--batch', '50', *options],
                                        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self):
        out, error = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, error
        return json.loads(out)


def value(build, daemon, metric):
    """The sum of its samples."""
    said = subprocess.run([f'{build}/wharf', 'stats', '--prometheus', '--socket', daemon.socket], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return sum(float(number) for number in re.findall(rf'^{metric}(?:{{.*}})? (\S+)$', said, re.M))


def wait_until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, 'it takes too long'
        time.sleep(0.05)


def clients_of(daemon):
    """Processes that have the daemon's memory: the workers."""
    found = []
    for name in os.listdir('/proc'):
        try:
            if name.isdigit() and int(name) != daemon.process.pid:
                with open(f'/proc/{name}/maps', encoding='utf-8') as file, \
                        open(f'/proc/{name}/cmdline', encoding='utf-8') as line:
                    if 'multiprocessing' in line.read() and 'memfd:wharf' in file.read():
                        found.append(int(name))
        except OSError:
            continue
    return found


def answers_are_the_same(python, build, folder, daemon):
    plain = Run(python, build, folder, daemon, '--without-wharf').result()
    assert plain['objects'] == N_OBJECTS and plain['words'] == N_OBJECTS * 120, plain
    before = value(build, daemon, 'wharf_chunks_total')
    assert before == 0, before
    result = Run(python, build, folder, daemon).result()
    assert result == plain, (result, plain)
    done = value(build, daemon, 'wharf_chunks_total')
    # As many as the daemon does sooner than the workers.
    assert 0 < done <= N_OBJECTS, done
    # Only who asks has a connection.
    wait_until(lambda: value(build, daemon, 'wharf_all_connections') == 1)


def nothing_is_lost_with_a_worker_and_the_daemon(python, build, folder, daemon):
    run = Run(python, build, folder, daemon)
    before = value(build, daemon, 'wharf_chunks_total')
    wait_until(lambda: value(build, daemon, 'wharf_chunks_total') > before)
    assert run.process.poll() is None, 'it has ended before anything could be killed'
    os.kill(clients_of(daemon)[0], signal.SIGKILL)
    daemon.kill()
    daemon.start()
    result = run.result()
    assert result['objects'] == N_OBJECTS and result['words'] == N_OBJECTS * 120, result
    wait_until(lambda: value(build, daemon, 'wharf_all_connections') == 1)


TESTS = answers_are_the_same, nothing_is_lost_with_a_worker_and_the_daemon


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    build = os.path.join(TOP, parser.parse_args().build)
    failed = 0
    print(f'1..{len(TESTS)}', flush=True)
    try:
        python = make_venv()
    except Skipped as reason:
        for number, test in enumerate(TESTS, 1):
            print(f'ok {number} - {test.__name__} # SKIP {reason}')
        return 0
    daemon = private_daemon.Daemon(f'{build}/wharfd')
    try:
        with tempfile.TemporaryDirectory() as folder:
            make_objects(f'{folder}/objects')
            for number, test in enumerate(TESTS, 1):
                word = 'ok'
                try:
                    test(python, build, f'{folder}/objects', daemon)
                except AssertionError as error:
                    word, failed = 'not ok', failed + 1
                    print(re.sub('^', '# ', str(error) or repr(error), flags=re.M))
                print(f'{word} {number} - {test.__name__}', flush=True)
    finally:
        daemon.remove()
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
