#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""file_bench.py [OPTION...] [FILE...]: one large .gz by all cores, its index, and files on tmpfs.

Makes a gzip file of one member of each FILE, and of lines of a log, of bytes that are stored and of
zeros, by zlib, in FOLDER, and prints rows of JSON, one for each run:

  gzip-parallel   `wharf cat` by 1, 2, 4, ... threads, beside rapidgzip, which comes as a program or
                  a Python module, if it is there; output to /dev/null
  gzip-index      `wharf index`; `wharf cat --index` of the whole; a range of 64 KiB; the first and
                  the second also by rapidgzip
  unpack          `wharf unpack` of containers and .gz to FOLDER, beside cp of the output

  --wharf PATH    the command; default build/release/wharf
  --folder DIR    a new folder is made in it; default /dev/shm
  --mib N         output of each file, about; default 512
  --rounds N      default 3
  --seconds N     ends after so many, between two runs; default 600
"""
import importlib.util
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

from bench_data import cpu_name
from bench_options import Parser

PIECE_NBYTES = 32 << 20
N_PIECES = 4
RANGE_NBYTES = 64 << 10
N_CPUS = len(os.sched_getaffinity(0))
MODULE = "import rapidgzip, sys; sys.argv = ['rapidgzip'] + sys.argv[1:]; sys.exit(rapidgzip.cli())"


def make_logs(nbytes):
    """Lines as a web server writes them."""
    source = random.Random(5)
    paths = [f'/api/v{source.randint(1, 3)}/{source.choice(["user", "order", "cart"])}/{source.randint(1, 99999)}'
             for _ in range(3000)]
    lines, size, now = [], 0, 1700000000000
    while size < nbytes:
        now += source.randint(0, 40)
        lines.append(f'10.{source.randint(0, 3)}.{source.randint(0, 255)}.{source.randint(0, 255)} - - [{now}] '
                     f'"GET {source.choice(paths)} HTTP/1.1" {source.choice([200, 200, 200, 304, 404])} '
                     f'{int(source.expovariate(1e-4))} {source.random():.3f}\n')
        size += len(lines[-1])
    return ''.join(lines).encode()[:nbytes]


def deflate(piece):
    data, level = piece
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9)
    return packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)


def make_gzip(path, data, level, nbytes):
    """One member, of pieces that are packed once and then repeated.  Returns its output's size."""
    data = data[:PIECE_NBYTES * 2]
    size = -(-len(data) // N_PIECES)
    with multiprocessing.Pool(min(N_PIECES, N_CPUS)) as pool:
        packed = b''.join(pool.map(deflate, [(data[at:at + size], level) for at in range(0, len(data), size)]))
    n_times = max(1, nbytes // len(data))
    crc = 0
    with open(path, 'wb') as file:
        file.write(b'\x1f\x8b\x08\0\0\0\0\0\0\xff')
        for _ in range(n_times):
            file.write(packed)
            crc = zlib.crc32(data, crc)
        file.write(b'\x03\0' + struct.pack('<II', crc, len(data) * n_times & 0xffffffff))
    return len(data) * n_times


def find_rapidgzip():
    """How it is called, or None."""
    if shutil.which('rapidgzip'):
        return ['rapidgzip']
    return [sys.executable, '-c', MODULE] if importlib.util.find_spec('rapidgzip') else None


class Bench:
    def __init__(self, args, folder):
        self.wharf, self.rounds = args.wharf, args.rounds
        self.end = time.monotonic() + args.seconds
        self.folder = folder
        self.rapidgzip = find_rapidgzip()
        self.cpu = cpu_name()

    def run(self, bench, data, program, threads, command, out_nbytes, in_nbytes, output=None):
        """Runs it and prints the row.  `output` is removed first, outside of the time."""
        if time.monotonic() > self.end:
            print('out of time', file=sys.stderr)
            sys.exit(0)
        if output:
            output.unlink(missing_ok=True)
        start = time.monotonic()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:
            errors = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - start
        if status:
            print('failed:', command, errors[-300:], file=sys.stderr)
            return
        print(json.dumps({
            'date': time.strftime('%Y-%m-%d', time.gmtime()), 'bench': bench, 'data': data, 'program': program,
            'threads': threads, 'out_nbytes': out_nbytes, 'in_nbytes': in_nbytes, 'seconds': round(seconds, 4),
            'cpu_seconds': round(usage.ru_utime + usage.ru_stime, 4), 'GBps': round(out_nbytes / seconds / 1e9, 3),
            'max_rss_kib': usage.ru_maxrss, 'n_cpus': N_CPUS, 'cpu': self.cpu}), flush=True)

    def cat(self, path, out_nbytes):
        in_nbytes = path.stat().st_size
        threads = [n for n in (1, 2, 4, 8) if n < N_CPUS] + [N_CPUS]
        for n in threads:
            self.run('gzip-parallel', path.stem, 'wharf cat', n,
                     [self.wharf, 'cat', '--embedded', '-T', str(n), str(path)], out_nbytes, in_nbytes)
        for flags in ([], ['--verify']) if self.rapidgzip else ():
            self.run('gzip-parallel', path.stem, ' '.join(['rapidgzip', *flags]), N_CPUS,
                     [*self.rapidgzip, '-d', '-c', '-f', *flags, '-P', str(N_CPUS), str(path)], out_nbytes, in_nbytes)

    def index(self, path, out_nbytes):
        in_nbytes = path.stat().st_size
        own, gzidx = path.with_suffix('.whi'), path.with_suffix('.gzidx')
        cat = [self.wharf, 'cat', '--embedded', '-q']
        self.run('gzip-index', path.stem, 'wharf index', N_CPUS, [self.wharf, 'index', '-o', str(own), str(path)],
                 out_nbytes, in_nbytes, own)
        self.run('gzip-index', path.stem, 'wharf cat --index', N_CPUS, [*cat, '--index', str(own), str(path)],
                 out_nbytes, in_nbytes)
        self.run('gzip-index', path.stem, 'wharf cat --range 64K', N_CPUS,
                 [*cat, '--index', str(own), '-r', f'{out_nbytes // 3}:{RANGE_NBYTES}', str(path)], RANGE_NBYTES,
                 in_nbytes)
        if not self.rapidgzip:
            return
        common = [*self.rapidgzip, '-d', '-f', '-P', str(N_CPUS)]
        self.run('gzip-index', path.stem, 'rapidgzip --export-index', N_CPUS,
                 [*common, '-o', '/dev/null', '--export-index', str(gzidx), str(path)], out_nbytes, in_nbytes, gzidx)
        self.run('gzip-index', path.stem, 'rapidgzip --import-index', N_CPUS,
                 [*common, '-c', '--import-index', str(gzidx), str(path)], out_nbytes, in_nbytes)

    def unpack(self, path, out_nbytes):
        """Of the output, as a .gz and as containers."""
        raw, out = self.folder / 'raw', self.folder / 'out'
        packed = {'gzip': path}
        with open(raw, 'wb') as file:
            subprocess.run([self.wharf, 'cat', '--embedded', str(path)], stdout=file, check=True)
        for codec in ('lz4', 'deflate'):
            packed[codec] = self.folder / f'{codec}.whr'
            subprocess.run([self.wharf, 'pack', '-q', '-f', '-c', codec, '-l', '1', '-o', str(packed[codec]), str(raw)],
                           check=True)
        for _ in range(self.rounds):
            self.run('unpack', path.stem, 'cp', 1, ['cp', str(raw), str(out)], out_nbytes, out_nbytes, out)
            for codec, source in packed.items():
                for n in (1, N_CPUS):
                    self.run('unpack', path.stem, f'wharf unpack {codec}', n,
                             [self.wharf, 'unpack', '--embedded', '-q', '-T', str(n), '-o', str(out), str(source)],
                             out_nbytes, source.stat().st_size, out)
        for leftover in (raw, out, packed['lz4'], packed['deflate']):
            leftover.unlink(missing_ok=True)


def make_files(args, folder):
    """{path: size of the output}"""
    nbytes = args.mib << 20
    kinds = {path.stem: (path.read_bytes(), 6) for path in map(pathlib.Path, args.files)}
    size = min(nbytes, PIECE_NBYTES)
    kinds |= {'logs': (make_logs(size), 6), 'stored': (os.urandom(size), 0), 'zeros': (bytes(size), 6)}
    made = {}
    for name, (data, level) in kinds.items():
        path = folder / f'{name}.gz'
        made[path] = make_gzip(path, data, level, nbytes)
    return made


def main():
    parser = Parser(__doc__)
    parser.add_argument('--wharf', default='build/release/wharf')
    parser.add_argument('--folder', default='/dev/shm')
    parser.add_argument('--mib', type=int, default=512)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=600)
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        bench = Bench(args, pathlib.Path(folder))
        made = make_files(args, bench.folder)
        for _ in range(args.rounds):
            for path, out_nbytes in made.items():
                bench.cat(path, out_nbytes)
        for _ in range(args.rounds):
            for path, out_nbytes in made.items():
                bench.index(path, out_nbytes)
        for path, out_nbytes in list(made.items())[:1]:
            bench.unpack(path, out_nbytes)


if __name__ == '__main__':
    main()
