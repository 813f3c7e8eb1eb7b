#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""orc_columns_bench.py [OPTION...] NAME=WHARF...: `wharf columns` of one column in one stripe.

pyarrow writes a file of times in order and one of random values, in each of some compressions; each
WHARF decodes them by 1 and 2 threads, turn by turn, to FOLDER.  Prints a row of JSON for each run.
Needs pyarrow, which tests/integration/orc_test.sh installs in build/venv-orc.

  --folder DIR    a new folder is made in it; default /dev/shm
  --values N      default 16777216, of 8 bytes each
  --rounds N      default 5
  --revision R    for the rows
"""
import array
import datetime
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

from bench_data import cpu_name
from bench_options import Parser, answer_help

# Not everywhere is there a pyarrow.
answer_help(__doc__)
# pylint: disable=wrong-import-position
import pyarrow  # noqa: E402
from pyarrow import orc  # noqa: E402

COMPRESSIONS = ('zlib', 'zstd', 'lz4', 'uncompressed')
STRIPE_NBYTES = 1 << 30


def make_values(n):
    """Times of a log, which are no runs, and values of 20 bits that compression makes little of."""
    source = random.Random(5)
    gaps = [int(source.expovariate(1e-3)) for _ in range(65521)]
    times = array.array('q', itertools.accumulate(itertools.islice(itertools.cycle(gaps), n), initial=1 << 40))[:n]
    some = [source.getrandbits(20) for _ in range(1 << 18)]
    return {'times': times, 'random': array.array('q', itertools.islice(itertools.cycle(some), n))}


def run(command):
    """(seconds, processor seconds)"""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(args, folder, facts):
    for name, values in make_values(args.values).items():
        table = pyarrow.table({'v': pyarrow.array(memoryview(values))})
        for compression in COMPRESSIONS:
            path = f'{folder}/{name}.orc'
            orc.write_table(table, path, compression=compression, stripe_size=STRIPE_NBYTES)
            assert orc.ORCFile(path).nstripes == 1
            turns = itertools.product(range(args.rounds), (1, 2), args.programs)
            for turn, threads, program in turns:
                label, _, wharf = program.partition('=')
                seconds, cpu_seconds = run([wharf, 'columns', '-qf', '--raw', '-T', str(threads), path])
                print(json.dumps(facts | {
                    'data': name, 'codec': compression, 'program': label, 'threads': threads, 'round': turn,
                    'in_nbytes': os.path.getsize(path), 'out_nbytes': 8 * args.values,
                    'seconds': round(seconds, 4), 'cpu_seconds': round(cpu_seconds, 4),
                    'GBps': round(8e-9 * args.values / seconds, 3)}), flush=True)


def main():
    parser = Parser(__doc__)
    parser.add_argument('--folder', default='/dev/shm')
    parser.add_argument('--values', type=int, default=1 << 24)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--revision', default='')
    parser.add_argument('programs', nargs='+')
    args = parser.parse_args()
    facts = {'date': datetime.date.today().isoformat(), 'revision': args.revision, 'bench': 'orc-columns',
             'cpu': cpu_name(), 'n_cpus': len(os.sched_getaffinity(0))}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        measure(args, folder, facts)


if __name__ == '__main__':
    sys.exit(main())
