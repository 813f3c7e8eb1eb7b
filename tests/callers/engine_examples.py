#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""engine_examples.py [--build FOLDER] [PATTERN]: the examples for Dask and Ray of clientlib/examples, over 10,000 objects.

Each must say the same without wharf, with a daemon, and when a worker and the daemon are killed in the middle; after its
end, and after the death of its driver, nothing of it is left at the daemon.  The engines come from PyPI, into folders of
the build; where PyPI cannot be reached the tests are skipped.  Reports in the Test Anything Protocol.
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

N_OBJECTS = 10000
PATIENCE_S = 900


class Skipped(Exception):
    pass


class Engine:
    """Where it is installed, and what it needs so that a machine that does much else is no failure."""

    def __init__(self, name, packages, **environment):
        self.packages, self.environment = packages, environment
        self.venv = os.path.join(TOP, 'build', f'venv-{name}')

    def python(self):
        mark, wanted = f'{self.venv}/packages', '\n'.join(self.packages)
        if os.path.exists(mark):
            with open(mark, encoding='ascii') as file:
                if file.read() == wanted:
                    return f'{self.venv}/bin/python3'
        subprocess.run(['python3', '-m', 'venv', '--clear', self.venv], check=True)
        done = subprocess.run([f'{self.venv}/bin/pip', 'install', '--quiet', '--disable-pip-version-check', *self.packages],
                              check=False, capture_output=True, text=True)
        if done.returncode and re.search('NewConnectionError|ConnectTimeoutError|NameResolutionError|ReadTimeoutError|'
                                         'ProxyError', done.stderr):
            raise Skipped('PyPI cannot be reached')
        assert done.returncode == 0, done.stderr
        with open(mark, 'w', encoding='ascii') as file:
            file.write(wanted)
        return f'{self.venv}/bin/python3'


DASK = Engine('dask', ['dask[array,distributed]==2026.7.1', 'zarr==3.1.6'],
              DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT='600s')
RAY = Engine('ray', ['ray[data]==2.60.0'], RAY_agent_register_timeout_ms='600000', RAY_AUTH_MODE='disabled',
             RAY_USAGE_STATS_ENABLED='0')


def make_words(folder, _):
    chance = random.Random(1)
    words = [f'word{number}' for number in range(3000)]
    os.mkdir(folder)
    for number in range(N_OBJECTS):
        text = ' '.join(chance.choices(words, k=120))
        with open(f'{folder}/{number:05}.gz', 'wb') as file:
            file.write(gzip.compress(text.encode(), 1, mtime=0))


def check_words(result):
    assert result['objects'] == N_OBJECTS and result['words'] == N_OBJECTS * 120, result


MAKE_ARRAY = """
import gzip, os, sys, numpy, zarr
path, n = sys.argv[1], int(sys.argv[2])
zarr.create_array(path, shape=(n * 64, 16), chunks=(64, 16), dtype='<i4', compressors=zarr.codecs.GzipCodec(level=1))
for i in range(n):
    os.makedirs(f'{path}/c/{i}')
    with open(f'{path}/c/{i}/0', 'wb') as file:
        rows = numpy.arange(i, i + 64)[:, None] * numpy.arange(1, 17)
        file.write(gzip.compress(rows.astype('<i4').tobytes(), 1, mtime=0))
"""


def make_array(path, python):
    subprocess.run([python, '-c', MAKE_ARRAY, path, str(N_OBJECTS)], check=True)


def check_columns(result):
    """Chunk i has rows with the numbers i to i + 63, times 1 to 16."""
    whole = sum(sum(range(i, i + 64)) for i in range(N_OBJECTS))
    assert result == {'objects': N_OBJECTS, 'sums': [whole * column for column in range(1, 17)]}, result


class Example:
    def __init__(self, name, engine, make, check):
        self.path = os.path.join(TOP, 'clientlib', 'examples', name)
        self.name, self.engine, self.make, self.check = name, engine, make, check


EXAMPLES = (Example('dask_words.py', DASK, make_words, check_words),
            Example('dask_columns.py', DASK, make_array, check_columns),
            Example('ray_words.py', RAY, make_words, check_words))


class Place:
    """The daemon, and the objects of one example."""

    def __init__(self, example, build, folder):
        self.example, self.build, self.folder = example, build, folder
        self.python = example.engine.python()
        example.make(f'{folder}/objects', self.python)
        self.daemon = private_daemon.Daemon(f'{build}/wharfd')
        self.environment = {**os.environ, **example.engine.environment, 'WHARF_SOCKET': self.daemon.socket,
                            'PYTHONPATH': f'{build}/python', 'RAY_TMPDIR': folder}

    def start(self, *options):
        with open(f'{self.folder}/errors', 'w', encoding='utf-8') as errors:
            return subprocess.Popen([self.python, self.example.path, f'{self.folder}/objects', '--workers', '2',
                                     '--batch', '50', *options], env=self.environment, stdout=subprocess.PIPE,
                                    stderr=errors, text=True)

    def result(self, process):
        out = process.communicate(timeout=PATIENCE_S)[0]
        if process.returncode:
            with open(f'{self.folder}/errors', encoding='utf-8') as errors:
                raise AssertionError(errors.read())
        # Ray tells there of workers that died, too.
        return json.loads([line for line in out.splitlines() if line.startswith('{')][-1])

    def value(self, metric):
        """The sum of its samples."""
        said = subprocess.run([f'{self.build}/wharf', 'stats', '--prometheus', '--socket', self.daemon.socket], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        return sum(float(number) for number in re.findall(rf'^{metric}(?:{{.*}})? (\S+)$', said, re.M))

    def processes(self):
        """Of the example: whether each has the daemon's memory, by process id."""
        found, ours = {}, f'WHARF_SOCKET={self.daemon.socket}'.encode()
        for name in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{name}/environ', 'rb') as environment, open(f'/proc/{name}/maps', 'rb') as maps:
                    if ours in environment.read().split(b'\0'):
                        found[int(name)] = b'memfd:wharf' in maps.read()
            except OSError:
                continue
        return found

    def wait_for_work(self, process):
        before = self.value('wharf_chunks_total')
        wait_until(lambda: self.value('wharf_chunks_total') > before or process.poll() is not None)
        assert process.poll() is None, self.result(process)

    def wait_for_silence(self):
        """Until only who asks has a connection, and no process of the example is left."""
        wait_until(lambda: self.value('wharf_all_connections') == 1)
        wait_until(lambda: not self.processes())

    def remove(self):
        self.daemon.remove()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)


def wait_until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, 'it takes too long'
        time.sleep(0.05)


def answers_are_the_same(place):
    plain = place.result(place.start('--without-wharf'))
    place.example.check(plain)
    assert place.value('wharf_chunks_total') == 0
    result = place.result(place.start())
    assert result == plain, (result, plain)
    # As many as the daemon does sooner than the workers.
    done = place.value('wharf_chunks_total')
    assert 0 < done <= N_OBJECTS, done
    place.wait_for_silence()


def nothing_is_lost_with_a_worker_and_the_daemon(place):
    process = place.start()
    place.wait_for_work(process)
    victims = [pid for pid, has_memory in place.processes().items() if has_memory and pid != process.pid]
    os.kill(victims[0], signal.SIGKILL)
    place.daemon.kill()
    place.daemon.start()
    assert process.poll() is None, 'it has ended before anything was killed'
    place.example.check(place.result(process))
    place.wait_for_silence()


def nothing_is_left_of_a_driver_that_died(place):
    process = place.start()
    place.wait_for_work(process)
    process.kill()
    process.communicate()
    place.wait_for_silence()


TESTS = answers_are_the_same, nothing_is_lost_with_a_worker_and_the_daemon, nothing_is_left_of_a_driver_that_died


def run(example, build, report):
    with tempfile.TemporaryDirectory(prefix='wharf-', ignore_cleanup_errors=True) as folder:
        try:
            place = Place(example, build, folder)
        except Skipped as reason:
            for test in TESTS:
                report(f'ok {{}} - {example.name}: {test.__name__} # SKIP {reason}')
            return 0
        failed = 0
        try:
            for test in TESTS:
                word = 'ok'
                try:
                    test(place)
                except AssertionError as error:
                    word, failed = 'not ok', failed + 1
                    print(re.sub('^', '# ', str(error) or repr(error), flags=re.M))
                report(f'{word} {{}} - {example.name}: {test.__name__}')
        finally:
            place.remove()
        return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    parser.add_argument('pattern', nargs='?', default='')
    options = parser.parse_args()
    chosen = [example for example in EXAMPLES if re.search(options.pattern, example.name)]
    print(f'1..{len(chosen) * len(TESTS)}', flush=True)
    number = iter(range(1, len(chosen) * len(TESTS) + 1))
    return sum([run(example, os.path.join(TOP, options.build), lambda line: print(line.format(next(number)), flush=True))
                for example in chosen]) > 0


if __name__ == '__main__':
    sys.exit(main())
