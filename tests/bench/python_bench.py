#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_bench.py [--build FOLDER] [--repetitions N] FILE...: the Python package beside C and beside Python's own gzip.

Of each FILE the first 4 MiB, as 64 chunks of 64 KiB, by decompress_batch on one thread, beside the same calls in C; and
its first 64 MiB, repeated, as one .gz, read whole, by 64 KiB and by lines, with wharf.gzip, with wharf.open and with
the standard module.  All take turns.  Seconds are processor time.  Prints rows as results/README.md says.
"""
import gzip
import json
import os
import platform
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import bench_options

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
CHUNK_NBYTES, N_CHUNKS, FILE_NBYTES = 64 << 10, 64, 64 << 20
# One call of a batch is over too soon for one reading of the clock.
CALLS = 20


def first_line(command):
    done = subprocess.run(command, shell=True, check=False, capture_output=True, text=True, cwd=TOP)
    return (done.stdout.strip().splitlines() or ['unknown'])[0]


def of_all_rows():
    return {'date': time.strftime('%Y-%m-%d'), 'bench': 'python', 'revision': first_line('git rev-parse --short HEAD'),
            'cpu': first_line("sed -n 's/^model name.*: //p' /proc/cpuinfo"), 'cores': os.cpu_count(),
            'kernel': platform.release(), 'compiler': first_line('gcc --version'), 'clock': 'processor', 'threads': 1}


def seconds_of(function, calls=1):
    begin = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - begin) / calls


def say(what, codec, data, in_nbytes, out_nbytes, peer, own, others, **more):
    own, others = sorted(own), sorted(others)
    print(json.dumps({
        **of_all_rows(), 'what': what, 'codec': codec, 'data': data, 'level': 6, 'in_nbytes': in_nbytes,
        'out_nbytes': out_nbytes, 'repetitions': len(own), 'min_s': round(own[0], 7),
        'median_s': round(own[len(own) // 2], 7), 'max_s': round(own[-1], 7), 'peer': peer,
        'peer_min_s': round(others[0], 7), 'peer_median_s': round(others[len(others) // 2], 7),
        'peer_max_s': round(others[-1], 7), 'gbps': round(out_nbytes / own[0] / 1e9, 4),
        'peer_gbps': round(out_nbytes / others[0] / 1e9, 4), 'times_peer': round(others[0] / own[0], 4), **more}), flush=True)


def bench_batch(wharf, build, name, data, repetitions):
    parts = [data[i:i + CHUNK_NBYTES] for i in range(0, N_CHUNKS * CHUNK_NBYTES, CHUNK_NBYTES)]
    chunks = [zlib.compress(part) for part in parts]
    outs = [bytearray(CHUNK_NBYTES) for _ in chunks]
    client = wharf.Client('embedded')
    ways = {'batch into memory': lambda: client.decompress_batch(chunks, 'zlib', outs=outs, threads=1),
            'batch as bytes': lambda: client.decompress_batch(chunks, 'zlib', sizes=CHUNK_NBYTES, threads=1)}
    with tempfile.NamedTemporaryFile() as file:
        file.write(b''.join(struct.pack('<I', len(chunk)) + chunk for chunk in chunks))
        file.flush()
        command = [f'{build}/bench/batch_bench', file.name, 'zlib', str(CHUNK_NBYTES), str(CALLS)]
        own, in_c = {way: [] for way in ways}, []
        for _ in range(repetitions):
            for way, call in ways.items():
                call()
                own[way].append(seconds_of(call, CALLS))
            # Without the first, which warms up.
            in_c.append(sum(map(float, subprocess.check_output(command, text=True).split()[1:])) / CALLS)
    assert outs == parts
    for way, seconds in own.items():
        say(way, 'zlib', name, sum(map(len, chunks)), N_CHUNKS * CHUNK_NBYTES, 'wharf in C', seconds, in_c,
            chunk_nbytes=CHUNK_NBYTES)


def read_whole(file):
    return len(file.read())


def read_parts(file):
    n = 0
    while part := file.read(CHUNK_NBYTES):
        n += len(part)
    return n


def read_lines(file):
    return sum(map(len, file))


def bench_gzip(wharf, name, data, repetitions):
    data = (data * (FILE_NBYTES // len(data) + 1))[:FILE_NBYTES]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'a.gz')
        with gzip.open(path, 'wb', 6) as file:
            file.write(data)
        openers = {'gzip': gzip.open, 'wharf.gzip': wharf.gzip.open, 'wharf.open': wharf.open}
        for what, read in ('whole', read_whole), ('by 64 KiB', read_parts), ('by lines', read_lines):
            seconds = {opener: [] for opener in openers}
            for _ in range(repetitions):
                for opener, function in openers.items():
                    with function(path) as file:
                        seconds[opener].append(seconds_of(lambda: check(read(file), len(data))))  # pylint: disable=cell-var-from-loop
            for opener in 'wharf.gzip', 'wharf.open':
                say(f'{opener}, {what}', 'gzip', name, os.path.getsize(path), len(data),
                    f'gzip of Python {platform.python_version()}', seconds[opener], seconds['gzip'], chunk_nbytes=0)


def check(n, expected):
    assert n == expected, (n, expected)


def main():
    parser = bench_options.Parser(__doc__)
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--repetitions', type=int, default=9)
    parser.add_argument('files', nargs='+')
    options = parser.parse_args()
    build = os.path.join(TOP, options.build)
    sys.path.insert(0, f'{build}/python')
    os.environ['WHARF_SOCKET'] = '/no/such/socket'
    import wharf  # pylint: disable=import-outside-toplevel
    for path in options.files:
        with open(path, 'rb') as file:
            data = file.read(FILE_NBYTES)
        bench_batch(wharf, build, os.path.basename(path), data, options.repetitions)
        bench_gzip(wharf, os.path.basename(path), data, options.repetitions)


if __name__ == '__main__':
    main()
