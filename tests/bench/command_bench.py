#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""command_bench.py [--repetitions N] FILE...: whole commands on whole files.

`wharf cat` beside zcat on a gzip file of one member, and beside bgzip with one thread and with two
on a BGZF file, as a user would run them: start-up, reading and writing to a pipe included.  All
commands take turns.  Prints rows as bench_row.h says, with the peak memory of each side besides.
The files are joined and repeated to INPUT_NBYTES at least, so that start-up does not decide.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

INPUT_NBYTES = 256 << 20
GZIP_LEVEL = 6
WHARF = os.environ.get('BUILD', 'build/release') + '/wharf'


def timed(command):
    """Seconds and peak memory (KiB) of one run, with the output read from a pipe and dropped."""
    start = time.monotonic()
    with open('/dev/null', 'wb') as sink:
        reading, writing = os.pipe()
        drain = subprocess.Popen(['cat'], stdin=reading, stdout=sink)
        os.close(reading)
        process = subprocess.Popen(command, stdout=writing)
        os.close(writing)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        drain.wait()
    if process.returncode != 0:
        sys.exit(f'{command} ended with status {process.returncode}')
    return time.monotonic() - start, usage.ru_maxrss


def compare(commands, repetitions):
    """For each command: (shortest, middle, longest) time and the most memory, taken in turns."""
    runs = {name: [] for name in commands}
    for command in commands.values():
        timed(command)
    for _ in range(repetitions):
        for name, command in commands.items():
            runs[name].append(timed(command))
    figures = {}
    for name, pairs in runs.items():
        seconds = sorted(pair[0] for pair in pairs)
        figures[name] = ((seconds[0], seconds[len(seconds) // 2], seconds[-1]),
                         max(pair[1] for pair in pairs))
    return figures


def version_of(command):
    """A peer's name and version: zcat is gzip's, bgzip tells its own."""
    text = subprocess.run([command, '--version'], capture_output=True, text=True, check=True).stdout
    return re.search(r'\d+\.\d+(\.\d+)?', text).group()


def print_rows(what, data, packed, out_nbytes, commands, repetitions):
    """One row for each peer: everything but wharf itself."""
    figures = compare(commands, repetitions)
    (best, middle, worst), memory = figures.pop('wharf')
    for peer, ((peer_best, peer_middle, peer_worst), peer_memory) in figures.items():
        print(json.dumps({
            'what': what, 'codec': 'gzip', 'data': data, 'level': GZIP_LEVEL,
            'threads': len(os.sched_getaffinity(0)), 'repetitions': repetitions,
            'chunk_nbytes': 0, 'in_nbytes': packed.stat().st_size, 'out_nbytes': out_nbytes,
            'min_s': round(best, 6), 'median_s': round(middle, 6), 'max_s': round(worst, 6),
            'peer': peer, 'peer_min_s': round(peer_best, 6),
            'peer_median_s': round(peer_middle, 6), 'peer_max_s': round(peer_worst, 6),
            'gbps': round(out_nbytes / best / 1e9, 4),
            'peer_gbps': round(out_nbytes / peer_best / 1e9, 4),
            'ratio': round(peer_best / best, 4),
            'memory_kib': memory, 'peer_memory_kib': peer_memory,
        }), flush=True)


def bench_file(path, repetitions):
    folder = pathlib.Path('build/bench-data/packed')
    folder.mkdir(parents=True, exist_ok=True)
    size = path.stat().st_size
    copies = max(1, (INPUT_NBYTES if repetitions > 2 else size) // size)
    member, bgzf = folder / f'{path.name}.gz', folder / f'{path.name}.bgz'
    with open(member, 'wb') as single, open(bgzf, 'wb') as blocks:
        for command, target in ((['gzip', f'-{GZIP_LEVEL}', '-c'], single),
                                (['bgzip', '-l', str(GZIP_LEVEL), '-@', '2', '-c'], blocks)):
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=target) as packer:
                contents = path.read_bytes()
                for _ in range(copies):
                    packer.stdin.write(contents)
    gzip, bgzip = f'zcat {version_of("gzip")}', f'bgzip {version_of("bgzip")}'
    print_rows('cat one member', path.name, member, size * copies, {
        'wharf': [WHARF, 'cat', str(member)],
        gzip: ['zcat', str(member)],
    }, repetitions)
    print_rows('cat BGZF', path.name, bgzf, size * copies, {
        'wharf': [WHARF, 'cat', str(bgzf)],
        f'{bgzip}, 1 thread': ['bgzip', '-dc', str(bgzf)],
        f'{bgzip}, 2 threads': ['bgzip', '-@2', '-dc', str(bgzf)],
    }, repetitions)
    member.unlink()
    bgzf.unlink()


def main():
    args = sys.argv[1:]
    repetitions = 5
    if args[:1] == ['--repetitions']:
        # Whole commands take seconds: a third of the turns that a decode gets.
        repetitions = max(2, int(args[1]) // 3)
        args = args[2:]
    for name in args:
        bench_file(pathlib.Path(name), repetitions)


if __name__ == '__main__':
    main()
