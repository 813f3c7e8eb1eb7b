#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""file_ahead_bench.py [OPTION...]: what reading ahead of jobs in sequence gains, and what random jobs lose.

Two daemons take turns, one with `read_ahead = 0`.  Jobs of 64 KiB (codec stored) have their source
in a file of a FUSE server whose reads take 1 or 10 ms, many at a time, or in a file on a disk,
which is dropped from the page cache before each turn, or is there.  Prints rows of JSON, one for
each turn.  Needs root and /dev/fuse.

  --build FOLDER  with wharfd; default build/release
  --folder DIR    on a disk; default /var/tmp
  --rounds N      default 5
  --revision R    for the rows
"""
import json
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / 'tests' / 'lib'))
import fuse_files  # noqa: E402  pylint: disable=wrong-import-position
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position
from bench_data import cpu_name  # noqa: E402  pylint: disable=wrong-import-position
from bench_options import Parser  # noqa: E402  pylint: disable=wrong-import-position

FILE, NBYTES = 5, 64 << 10
COUNTERS = ('ahead', 'ahead_hit', 'ahead_waste')


def counters(session):
    values = {f.name: f.samples[0].value for f in session.stats() if f.samples}
    return [int(values[f'wharf_file_{name}_bytes_total']) for name in COUNTERS]


def children(pid):
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/children', encoding='ascii') as file:
            yield from map(int, file.read().split())


def processor_seconds(pid):
    """Of the daemon and its processes."""
    nanoseconds = 0
    for process in (pid, *children(pid)):
        for task in os.listdir(f'/proc/{process}/task'):
            with open(f'/proc/{process}/task/{task}/schedstat', encoding='ascii') as file:
                nanoseconds += int(file.read().split()[0])
    return nanoseconds / 1e9


def run_all(session, offsets, in_flight):
    waiting = iter(offsets)
    for i, offset in zip(range(in_flight), waiting):
        submit(session, i, offset)
    n_left = len(offsets)
    while n_left:
        for completion in session.wait(1):
            assert completion['result'] == wc.RESULTS['ok'], completion
            n_left -= 1
            offset = next(waiting, None)
            if offset is not None:
                submit(session, completion['user_data'], offset)


def submit(session, slot, offset):
    session.submit(opcode=wc.OP_DECODE, codec=wc.CODECS['stored'], user_data=slot, src_region=FILE,
                   src_offset=offset, src_nbytes=NBYTES, dst_offset=slot * NBYTES, dst_nbytes=NBYTES)


def turn(daemon, fd, offsets, in_flight):
    session = wc.Client(daemon.socket, arena_nbytes=in_flight * NBYTES)
    session.register(FILE, fd, (1 << 63) - 1, read_only=True, kind=wc.MEMORY_KIND_FILE)
    before, used = counters(session), processor_seconds(daemon.process.pid)
    begun = time.perf_counter()
    run_all(session, offsets, in_flight)
    seconds = time.perf_counter() - begun
    used = processor_seconds(daemon.process.pid) - used
    row = {'seconds': round(seconds, 4), 'cpu_seconds': round(used, 4),
           'MBps': round(len(offsets) * NBYTES / seconds / 1e6, 1)}
    for name, now, then in zip(COUNTERS, counters(session), before):
        row[f'{name}_nbytes'] = now - then
    session.close()
    return row


def turns(options, where, open_file, size, pattern, in_flight, n_jobs):
    daemons = {ahead: Daemon(os.path.join(TOP, options.build, 'wharfd'), sections=f'read_ahead = {ahead}\n')
               for ahead in ('0', '8M')}
    source = random.Random(3)
    for number in range(options.rounds):
        offsets = [i * NBYTES for i in range(n_jobs)]
        if pattern == 'random':
            offsets = [source.randrange(size // NBYTES) * NBYTES for _ in range(n_jobs)]
        for ahead in ('0', '8M') if number % 2 else ('8M', '0'):
            fd, close = open_file()
            row = turn(daemons[ahead], fd, offsets, in_flight)
            close()
            facts = {'date': time.strftime('%Y-%m-%d'), 'revision': options.revision, 'bench': 'file-ahead',
                     'data': where, 'pattern': pattern, 'in_flight': in_flight, 'read_ahead': ahead, 'round': number}
            print(json.dumps({**facts, 'out_nbytes': n_jobs * NBYTES, **row, 'n_cpus': multiprocessing.cpu_count(),
                              'cpu': cpu_name()}), flush=True)
    for daemon in daemons.values():
        daemon.remove()


def slow_file(milliseconds):
    def open_file():
        folder = tempfile.mkdtemp()
        mount = fuse_files.Mount(folder)
        fd = mount.open(f'slow-{milliseconds}', os.O_RDONLY)

        def close():
            os.close(fd)
            mount.end()
            os.rmdir(folder)
        return fd, close
    return open_file


def disk_file(path, is_there):
    def open_file():
        fd = os.open(path, os.O_RDONLY)
        if not is_there:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return fd, lambda: os.close(fd)
    return open_file


def main():
    parser = Parser(__doc__)
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--folder', default='/var/tmp')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--revision', default='')
    options = parser.parse_args()
    for milliseconds, n_jobs in ((10, 128), (1, 512)):
        for in_flight in (1, 16):
            turns(options, f'FUSE, {milliseconds} ms', slow_file(milliseconds), fuse_files.SLOW_SIZE, 'sequence',
                  in_flight, n_jobs)
        turns(options, f'FUSE, {milliseconds} ms', slow_file(milliseconds), fuse_files.SLOW_SIZE, 'random', 1, n_jobs)
    with tempfile.NamedTemporaryFile(dir=options.folder) as file:
        size = 512 << 20
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        for is_there, name in ((False, 'disk, cold'), (True, 'disk, in the page cache')):
            for pattern in ('sequence', 'random'):
                for in_flight in (1, 16):
                    turns(options, name, disk_file(file.name, is_there), size, pattern, in_flight, 4096)


if __name__ == '__main__':
    main()
