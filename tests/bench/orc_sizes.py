#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""orc_sizes.py WHARF COLUMNS [FILE]...: sizes of ORC's run lengths by us and by pyarrow.

COLUMNS is the program that makes columns, of which all seven are taken, 8 MiB each.  A FILE is a column
of its own, NAME.TYPE.bin or NAME.TYPE.bin.gz.  Prints a JSON object for each column and codec: bytes
of values, of our stream and of pyarrow's, and ours over theirs.  ORC codes integers as signed ones, so
both get unsigned columns as the next wider signed type.  Needs a Python that has pyarrow, such as the
one that tests/integration/orc_test.sh makes, and PYTHONPATH=tests/lib.
"""
import array
import gzip
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

from bench_options import answer_help

# Not everywhere are there the modules that the rest needs.
answer_help(__doc__)
# pylint: disable=wrong-import-position
import orc_file  # noqa: E402
import pyarrow  # noqa: E402
from pyarrow import orc  # noqa: E402

COLUMNS = {'mc0': 'u64', 'mc3': 'u32', 'tpc': 'i8', 'tpt': 'u8', 'cd2': 'u32', 'tc2': 'u64',
           'hrg': 'u8'}
CODES = {'u8': 'B', 'u16': 'H', 'u32': 'I', 'u64': 'Q', 'i8': 'b', 'i16': 'h', 'i32': 'i', 'i64': 'q'}
SIGNED = {'u8': 'i16', 'u16': 'i32', 'u32': 'i64', 'u64': 'i64', 'i8': 'i16'}
FRAME_NBYTES, CHUNK, FILE_HEADER_NBYTES = 64, 0x4b484357, 32


def our_nbytes(wharf, codec, type_name, data):
    """What the chunks of a container hold together."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        packed = subprocess.run([wharf, 'pack', '-b', '16M', '-c', codec, '--type', type_name, '-o',
                                 '-', file.name], stdout=subprocess.PIPE, check=True).stdout
    total, at = 0, FILE_HEADER_NBYTES
    while struct.unpack_from('<I', packed, at)[0] == CHUNK:
        nbytes = struct.unpack_from('<I', packed, at + 8)[0]
        total += nbytes
        at += FRAME_NBYTES + (nbytes + 15) // 16 * 16
    return total


def their_nbytes(codec, values):
    file = io.BytesIO()
    orc.write_table(pyarrow.table({'v': pyarrow.array(values)}), file, compression='uncompressed',
                    file_version='0.11' if codec == 'rle1' else '0.12')
    return sum(len(data) for _, kind, column, _, data
               in orc_file.File(file.getvalue()).streams() if kind == 'data' and column == 1)


def measure(wharf, name, type_name, data):
    wide = SIGNED.get(type_name, type_name)
    values = array.array(CODES[wide], array.array(CODES[type_name], data))
    for codec in 'rle1', 'rle2':
        ours = our_nbytes(wharf, codec, wide, values.tobytes())
        theirs = their_nbytes(codec, memoryview(values))
        print(json.dumps({'what': 'orc size', 'codec': codec, 'data': name, 'type': wide,
                          'values_nbytes': len(values) * values.itemsize, 'nbytes': ours,
                          'peer': f'pyarrow {pyarrow.__version__}', 'peer_nbytes': theirs,
                          'times_peer_nbytes': round(ours / theirs, 4)}), flush=True)


def main():
    wharf, columns, *files = sys.argv[1:]
    for name, type_name in COLUMNS.items():
        made = subprocess.run([columns, name, str(8 << 20), '1'], stdout=subprocess.PIPE, check=True)
        measure(wharf, name, type_name, made.stdout)
    for path in map(pathlib.Path, files):
        data = path.read_bytes()
        name = path.name.partition('.bin')[0]
        measure(wharf, name, name.rpartition('.')[2],
                gzip.decompress(data) if path.suffix == '.gz' else data)


main()
