#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hdf5_filters.py [--build FOLDER]: wharf's filters for HDF5, by h5py and beside hdf5plugin's.

hdf5plugin writes datasets with each of its filters, its codecs, shuffles and levels; other processes, of which none
knows of it, read them by wharf's filters.  h5py and hdf5plugin come from PyPI, into a folder of the build; where PyPI
cannot be reached the tests are skipped.  Reports in the Test Anything Protocol, with the time that reading takes both
ways.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
PACKAGES = ('h5py==3.16.0', 'hdf5plugin==7.1.0')
VENV = os.path.join(TOP, 'build', 'venv-hdf5')

WRITE = r'''
import h5py, hdf5plugin, itertools, numpy as np
chance = np.random.default_rng(1)
with h5py.File('a.h5', 'w') as file:
    def add(name, data, chunks, filter):
        file.create_dataset(name, data=data, chunks=chunks, **filter)
        file['plain/' + name] = data
    for kind in 'u1', 'i2', 'f4', 'i8':
        data = (chance.integers(0, 200, (333, 217)) * 3).astype(kind)
        for codec, shuffle in itertools.product(('blosclz', 'lz4', 'lz4hc', 'zlib', 'zstd'), range(3)):
            add(f'blosc/{kind}/{codec}/{shuffle}', data, (100, 217), hdf5plugin.Blosc(codec, 5, shuffle))
        for codec, undo in itertools.product(('blosclz', 'lz4', 'lz4hc', 'zlib', 'zstd'), range(5)):
            add(f'blosc2/{kind}/{codec}/{undo}', data, (100, 150), hdf5plugin.Blosc2(codec, 5, undo))
        for size in 0, 4096, 1000:
            add(f'lz4/{kind}/{size}', data, (100, 217), hdf5plugin.LZ4(size))
        for codec, size in itertools.product(('none', 'lz4', 'zstd'), (0, 64, 1024)):
            add(f'bitshuffle/{kind}/{codec}/{size}', data, (101, 57), hdf5plugin.Bitshuffle(size, codec))
        for level in 1, 3, 19:
            add(f'zstd/{kind}/{level}', data, (100, 217), hdf5plugin.Zstd(level))
    data = np.cumsum(chance.integers(0, 9, (512, 300, 70)), axis=2).astype('i4')
    for name, filter in (('blosc', hdf5plugin.Blosc()), ('blosc2', hdf5plugin.Blosc2()), ('lz4', hdf5plugin.LZ4()),
                         ('bitshuffle', hdf5plugin.Bitshuffle()), ('zstd', hdf5plugin.Zstd())):
        add(f'large/{name}', data, (128, 200, 70), filter)
    for name, value in ('zeros', 0), ('nan', np.nan), ('one', 7):
        add(f'special/{name}', np.full((300, 300), value, 'f4'), (300, 200), hdf5plugin.Blosc2())
'''

# %s: what makes the filters known.
READ = r'''
%s
import h5py, numpy as np, os, sys, time
n = 0
def look(name, item):
    global n
    if isinstance(item, h5py.Dataset) and not name.startswith('plain/'):
        data, plain = item[...], file['plain/' + name][...]
        assert np.array_equal(data, plain, equal_nan=data.dtype.kind == 'f'), name
        n += 1
with h5py.File('a.h5') as file:
    file.visititems(look)
    part = file['large/blosc2'][100:140, 190:210, 3:9:2]
    assert np.array_equal(part, file['plain/large/blosc2'][100:140, 190:210, 3:9:2])
print(n)
with h5py.File('a.h5') as file:
    for name in file['large']:
        times = []
        for _ in range(5):
            start = time.perf_counter_ns()
            file['large/' + name][...]
            times.append(time.perf_counter_ns() - start)
        print(name, min(times))
'''

# Children that were forked after their parent has read.
FORKS = r'''
import h5py, multiprocessing, numpy as np
def read(name):
    with h5py.File('a.h5') as file:
        return np.array_equal(file[name][...], file['plain/' + name][...])
names = [f'large/{name}' for name in ('blosc', 'blosc2', 'lz4', 'bitshuffle', 'zstd')]
assert read(names[0])
with multiprocessing.get_context('fork').Pool(2) as pool:
    assert all(pool.map(read, names * 2))
'''

# A chunk of each filter, cut short and with other bytes: an exception with wharf's reason, or other data.
DAMAGE = r'''
import h5py, random
random.seed(1)
reasons, n_bad = set(), 0
with h5py.File('a.h5', 'r+') as file:
    for name in 'blosc/i2/zstd/1', 'blosc2/i2/zstd/1', 'lz4/i2/4096', 'bitshuffle/i2/zstd/64', 'zstd/i2/3':
        item = file[name]
        mask, good = item.id.read_direct_chunk((0, 0))
        for i in range(60):
            bad = bytearray(good if i % 2 else good[:random.randrange(1, len(good))])
            bad[random.randrange(len(bad))] ^= 1 << random.randrange(8)
            item.id.write_direct_chunk((0, 0), bytes(bad), mask)
            item.id.refresh()
            try:
                item[:50]
            except OSError as error:
                n_bad += 1
                reasons.add(str(error))
        item.id.write_direct_chunk((0, 0), good, mask)
assert n_bad > 100, n_bad
print(*sorted(reasons), sep='\n')
'''


class Skipped(Exception):
    pass


def make_venv():
    python = f'{VENV}/bin/python3'
    probe = subprocess.run([python, '-c', 'import h5py, hdf5plugin'], check=False, stderr=subprocess.DEVNULL) \
        if os.path.exists(python) else None
    if probe is None or probe.returncode:
        subprocess.run([sys.executable, '-m', 'venv', VENV], check=True)
        done = subprocess.run([f'{VENV}/bin/pip', 'install', '--quiet', '--disable-pip-version-check', *PACKAGES],
                              check=False, capture_output=True, text=True)
        if done.returncode and re.search('NewConnectionError|ConnectTimeoutError|NameResolutionError|ReadTimeoutError|'
                                         'ProxyError', done.stderr):
            raise Skipped('PyPI cannot be reached')
        assert done.returncode == 0, done.stderr
    return python


def run(python, script, filters=None):
    environment = {name: value for name, value in os.environ.items() if name != 'HDF5_PLUGIN_PATH'}
    if filters:
        environment['HDF5_PLUGIN_PATH'] = filters
    done = subprocess.run([python, '-c', script], check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_as_hdf5plugin_does(python, filters):
    own = run(python, READ % '', filters).split('\n')
    peer = run(python, READ % 'import hdf5plugin').split('\n')
    assert own[0] == peer[0] and int(own[0]) > 200, own[0]
    for ours, theirs in zip(own[1:], peer[1:]):
        if ours:
            name, time_ns = ours.split()
            print(f'# {name}: {int(time_ns) / 1e6:.1f} ms, hdf5plugin {int(theirs.split()[1]) / 1e6:.1f} ms')


def read_in_forked_children(python, filters):
    run(python, FORKS, filters)


def damaged_chunks_are_exceptions(python, filters):
    said = run(python, DAMAGE, filters)
    assert re.search('at bit [0-9]+ of a chunk of [0-9]+ bytes', said), said


def writing_is_refused(python, filters):
    said = run(python, 'import h5py\ntry: h5py.File("b.h5", "w").create_dataset("a", data=range(9), chunks=(9, ), '
               'compression=32015)\nexcept (OSError, ValueError) as error: print(error)', filters)
    assert re.search('encod', said, re.I), said


TESTS = read_as_hdf5plugin_does, read_in_forked_children, damaged_chunks_are_exceptions, writing_is_refused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    filters = os.path.join(TOP, parser.parse_args().build, 'hdf5')
    failed, why = 0, ''
    print(f'1..{len(TESTS)}', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            if not os.path.isdir(filters):
                raise Skipped("HDF5's headers are not installed")
            python = make_venv()
            run(python, WRITE)
        except Skipped as reason:
            why = f' # SKIP {reason}'
        for number, test in enumerate(TESTS, 1):
            word = 'ok'
            try:
                if not why:
                    test(python, filters)
            except AssertionError as error:
                word, failed = 'not ok', failed + 1
                print(re.sub('^', '# ', str(error), flags=re.M))
            print(f'{word} {number} - {test.__name__}{why}', flush=True)
        os.chdir(TOP)
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
