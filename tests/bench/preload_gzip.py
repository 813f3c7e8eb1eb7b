#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""preload_gzip.py [--build FOLDER] [--repetitions N] FILE...: Python's own gzip with libwharf-preload and without it.

The first 16 MiB of each FILE, repeated where it is shorter, become one .gz of level 6.  Processes read that in turn, N
times each (15), each whole, by 64 KiB and by lines: with the library, without it, and with a zlib that knows the output
and only copies it, which says how fast any inflater can make it.  Seconds are the processor time of the reading alone,
without the start of the interpreter.  Prints rows as results/README.md says.
"""
import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import zlib

import bench_options

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
PYTHON = '/usr/bin/python3'
NBYTES = 16 << 20
WAYS = ('whole', 'by 64 KiB', 'by lines')
READ = '''
import gzip, sys, time
def parts(file):
    n = 0
    while part := file.read(65536):
        n += len(part)
    return n
ways = lambda file: len(file.read()), parts, lambda file: sum(map(len, file))
seconds = []
for way in ways:
    with gzip.open(sys.argv[1]) as file:
        begin = time.process_time()
        n = way(file)
        seconds.append(time.process_time() - begin)
    assert n == int(sys.argv[2]), n
print(*seconds)
'''


def first_line(*command):
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=TOP)
    return (done.stdout.strip().splitlines() or ['unknown'])[0]


def of_all_rows():
    return {'date': time.strftime('%Y-%m-%d'), 'bench': 'preload', 'revision': first_line('git', 'describe', '--always', '--dirty'),
            'cpu': first_line('sed', '-n', 's/^model name.*: //p', '/proc/cpuinfo'), 'cores': os.cpu_count(),
            'kernel': platform.release(), 'compiler': first_line('gcc', '--version')}


def read(path, library, **more):
    environment = {**os.environ, 'LD_PRELOAD': library, **more} if library else os.environ
    done = subprocess.run([PYTHON, '-c', READ, path, str(NBYTES)], check=True, stdout=subprocess.PIPE, env=environment)
    return [float(word) for word in done.stdout.split()]


def measure(name, data, library, copying, repetitions):
    with tempfile.NamedTemporaryFile(suffix='.gz') as file, tempfile.NamedTemporaryFile() as plain:
        packed = gzip.compress(data, 6, mtime=0)
        # A header of ten bytes, a trailer of eight.
        known = {'COPYING_ZLIB_PLAIN': plain.name, 'COPYING_ZLIB_NBYTES': str(len(packed) - 18),
                 'COPYING_ZLIB_CRC': str(zlib.crc32(data))}
        for one, content in (file, packed), (plain, data):
            one.write(content)
            one.flush()
        pairs = [(read(file.name, library), read(file.name, None), read(file.name, copying, **known))
                 for _ in range(repetitions)]
        in_nbytes = os.path.getsize(file.name)
    for i, way in enumerate(WAYS):
        own, others, copied = (sorted(pair[side][i] for pair in pairs) for side in range(3))
        ratios = sorted(pair[1][i] / pair[0][i] for pair in pairs)
        print(json.dumps({
            **of_all_rows(), 'what': f'preload: gzip of Python, {way}', 'codec': 'gzip', 'data': name, 'level': 6,
            'threads': 1, 'repetitions': repetitions, 'chunk_nbytes': 0, 'in_nbytes': in_nbytes, 'out_nbytes': NBYTES,
            'clock': 'processor', 'min_s': round(own[0], 6), 'median_s': round(own[len(own) // 2], 6),
            'max_s': round(own[-1], 6), 'peer': f'gzip of Python {platform.python_version()}',
            'peer_min_s': round(others[0], 6), 'peer_median_s': round(others[len(others) // 2], 6),
            'peer_max_s': round(others[-1], 6), 'gbps': round(NBYTES / own[0] / 1e9, 4),
            'peer_gbps': round(NBYTES / others[0] / 1e9, 4), 'times_peer': round(others[0] / own[0], 3),
            'pairs_median': round(ratios[len(ratios) // 2], 3), 'copied_min_s': round(copied[0], 6),
            'times_peer_at_most': round(others[0] / copied[0], 3)}), flush=True)


def main():
    parser = bench_options.Parser(__doc__)
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--repetitions', type=int, default=15)
    parser.add_argument('files', nargs='+')
    options = parser.parse_args()
    library = os.path.join(TOP, options.build, 'libwharf-preload.so')
    copying = os.path.join(TOP, options.build, 'tests', 'libcopying-zlib.so')
    for path in options.files:
        with open(path, 'rb') as file:
            data = file.read(NBYTES)
        if not data:
            sys.exit(f'{path} is empty')
        measure(os.path.basename(path), (data * (NBYTES // len(data) + 1))[:NBYTES], library, copying, options.repetitions)


if __name__ == '__main__':
    main()
