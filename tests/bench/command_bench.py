#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""command_bench.py [--repetitions N] FILE...: whole commands on whole files.

`wharf cat` beside zcat on a gzip file of one member, and beside bgzip with one thread and with two
on a BGZF file, each from start to end, with the output to /dev/null.  All commands take turns.
Prints rows as bench_row.h says, with the peak memory of each side besides.  Of the files only
those in NAMES are taken, each repeated to INPUT_NBYTES at least, so that start-up does not decide.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from bench_options import answer_help

NAMES = ('mc0', 'tpt', 'hrg', 'dickens', 'nci', 'taxi.csv')
INPUT_NBYTES = 128 << 20
GZIP_LEVEL = 6
# With fewer repetitions than this, it is only to be seen that all works.
FEWEST_SERIOUS = 5
WHARF = os.environ.get('BUILD', 'build/release') + '/wharf'


def timed(command):
    """Seconds and peak memory (KiB) of one run."""
    with tempfile.NamedTemporaryFile('r') as memory:
        start = time.monotonic()
        # Started from here, the peak would be this program's own where that is more.
        subprocess.run(['time', '-f', '%M', '-o', memory.name, *command],
                       stdout=subprocess.DEVNULL, check=True)
        return time.monotonic() - start, int(memory.read())


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
    """A command's version; zcat is gzip's."""
    text = subprocess.run([command, '--version'], capture_output=True, text=True, check=True).stdout
    return re.search(r'\d+\.\d+(\.\d+)?', text).group()


def print_rows(what, data, packed, out_nbytes, commands, repetitions):
    """One row for each peer: everything but wharf itself.  commands: name -> (command, threads)."""
    figures = compare({name: command for name, (command, _) in commands.items()}, repetitions)
    (best, middle, worst), memory = figures.pop('wharf')
    for peer, ((peer_best, peer_middle, peer_worst), peer_memory) in figures.items():
        print(json.dumps({
            'what': what, 'codec': 'gzip', 'data': data, 'level': GZIP_LEVEL,
            'threads': commands['wharf'][1], 'repetitions': repetitions, 'chunk_nbytes': 0,
            'in_nbytes': packed.stat().st_size, 'out_nbytes': out_nbytes,
            'min_s': round(best, 6), 'median_s': round(middle, 6), 'max_s': round(worst, 6),
            'peer': peer, 'peer_threads': commands[peer][1], 'peer_min_s': round(peer_best, 6),
            'peer_median_s': round(peer_middle, 6), 'peer_max_s': round(peer_worst, 6),
            'gbps': round(out_nbytes / best / 1e9, 4),
            'peer_gbps': round(out_nbytes / peer_best / 1e9, 4),
            'times_peer': round(peer_best / best, 4),
            'memory_kib': memory, 'peer_memory_kib': peer_memory,
        }), flush=True)


def pack(path, copies, suffix, command):
    """The file, repeated, as `command` packs it; made once."""
    packed = pathlib.Path('build/bench-data/packed', f'{path.name}.x{copies}{suffix}')
    packed.parent.mkdir(parents=True, exist_ok=True)
    if not packed.exists():
        unfinished = packed.with_suffix('.new')
        with open(unfinished, 'wb') as target:
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=target) as packer:
                contents = path.read_bytes()
                for _ in range(copies):
                    packer.stdin.write(contents)
        unfinished.rename(packed)
    return packed


def bench_file(path, repetitions):
    size = path.stat().st_size
    copies = -(-INPUT_NBYTES // size) if repetitions >= FEWEST_SERIOUS else 1
    member = pack(path, copies, '.gz', ['gzip', f'-{GZIP_LEVEL}', '-c'])
    bgzf = pack(path, copies, '.bgz', ['bgzip', '-l', str(GZIP_LEVEL), '-@', '2', '-c'])
    cores = len(os.sched_getaffinity(0))
    print_rows('cat one member', path.name, member, size * copies, {
        'wharf': ([WHARF, 'cat', str(member)], cores),
        f'zcat {version_of("gzip")}': (['zcat', str(member)], 1),
    }, repetitions)
    bgzip = f'bgzip {version_of("bgzip")}'
    print_rows('cat BGZF', path.name, bgzf, size * copies, {
        'wharf': ([WHARF, 'cat', str(bgzf)], cores),
        bgzip: (['bgzip', '-dc', str(bgzf)], 1),
        f'{bgzip} -@2': (['bgzip', '-@2', '-dc', str(bgzf)], 2),
    }, repetitions)


def main():
    answer_help(__doc__)
    args = sys.argv[1:]
    repetitions = FEWEST_SERIOUS
    if args[:1] == ['--repetitions']:
        # Whole commands take long: a third of the turns that a decode gets.
        repetitions = max(2, int(args[1]) // 3)
        args = args[2:]
    for path in map(pathlib.Path, args):
        if path.name in NAMES:
            bench_file(path, repetitions)


if __name__ == '__main__':
    main()
