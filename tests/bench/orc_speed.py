#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""orc_speed.py ORC_DECODE COLUMNS [REVISION]: one core decoding ORC's run lengths, ours and pyarrow's.

ORC_DECODE and COLUMNS are programs of this folder; of the columns all seven are taken, 4 MiB each.
What pyarrow writes as a column is read back by it from memory, and what we make of the same values is
decoded by ORC_DECODE, turn by turn.  Prints a JSON object for each column and codec: 10^9 bytes of
values a second, the best of all repetitions, both by processor time, since both are disturbed by
whatever else runs, and memset's, the most that there can be.  ORC codes integers as signed ones, so
both get unsigned columns as the next wider signed type.  Needs what orc_sizes.py needs.
"""
import array
import datetime
import io
import json
import subprocess
import sys
import tempfile
import time

import bench_data
from bench_options import answer_help

# Not everywhere is there a pyarrow.
answer_help(__doc__)
# pylint: disable=wrong-import-position
import pyarrow  # noqa: E402
from pyarrow import orc  # noqa: E402

COLUMNS = {'mc0': 'u64', 'mc3': 'u32', 'tpc': 'i8', 'tpt': 'u8', 'cd2': 'u32', 'tc2': 'u64',
           'hrg': 'u8'}
CODES = {'u8': 'B', 'u32': 'I', 'u64': 'Q', 'i8': 'b', 'i16': 'h', 'i64': 'q'}
SIGNED = {'u8': 'i16', 'u32': 'i64', 'u64': 'i64', 'i8': 'i16'}
VERSIONS = {'rle1': '0.11', 'rle2': '0.12'}
TURNS, READS = 6, 5


def theirs(file, n_values):
    """Seconds of the quickest read."""
    best = 1e9
    for _ in range(READS):
        begin = time.process_time()
        table = orc.ORCFile(io.BytesIO(file)).read()
        best = min(best, time.process_time() - begin)
        assert table.num_rows == n_values
    return best


def ours(decoder, codec, type_name, path):
    """10^9 bytes a second, and memset's."""
    done = subprocess.run([decoder, codec, type_name, path], stdout=subprocess.PIPE, check=True)
    row = json.loads(done.stdout)
    return row['gb_s'], row['memset_gb_s']


def measure(decoder, name, type_name, data, facts):
    wide = SIGNED[type_name]
    values = array.array(CODES[wide], array.array(CODES[type_name], data))
    raw = values.tobytes()
    table = pyarrow.table({'v': pyarrow.array(memoryview(values))})
    with tempfile.NamedTemporaryFile() as plain:
        plain.write(raw)
        plain.flush()
        for codec, version in VERSIONS.items():
            file = io.BytesIO()
            orc.write_table(table, file, compression='uncompressed', file_version=version)
            speeds = []
            for _ in range(TURNS):
                speeds.append((*ours(decoder, codec, wide, plain.name),
                               len(raw) / theirs(file.getvalue(), len(values)) / 1e9))
            our, memset, their = (max(column) for column in zip(*speeds))
            print(json.dumps({**facts, 'what': 'orc decode', 'codec': codec, 'data': name,
                              'type': wide, 'values_nbytes': len(raw), 'gb_s': round(our, 3),
                              'memset_gb_s': round(memset, 3), 'clock': 'processor',
                              'peer': f'pyarrow {pyarrow.__version__}',
                              'peer_gb_s': round(their, 3), 'times_peer': round(our / their, 2)}),
                  flush=True)


def main():
    decoder, columns, *revision = sys.argv[1:]
    facts = {'date': datetime.date.today().isoformat(), 'cpu': bench_data.cpu_name(),
             'revision': (revision or [None])[0]}
    pyarrow.set_cpu_count(1)
    for name, type_name in COLUMNS.items():
        made = subprocess.run([columns, name, str(4 << 20), '1'], stdout=subprocess.PIPE, check=True)
        measure(decoder, name, type_name, made.stdout, facts)


if __name__ == '__main__':
    main()
