# SPDX-License-Identifier: Apache-2.0
"""orc_interop.py WHARF: streams to and from pyarrow, which brings the ORC project's own library.

Streams that `wharf pack` makes are set into ORC files, which pyarrow reads; streams of files that
pyarrow writes are decoded by `wharf decode`, and ours are at most 2 % longer.  Ends with a line that says how many there were.

Columns are such that no chunk of them is stored: their varints take less than 8 bytes.
"""
import io
import random
import struct
import subprocess
import sys
import tempfile

import orc_file
import pyarrow
from pyarrow import orc

WHARF = sys.argv[1]
FRAME_NBYTES, CHUNK, FILE_HEADER_NBYTES = 64, 0x4b484357, 32


def encode(codec, type_name, data):
    """As one stream: the payloads of a container's chunks, joined."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        kind = ['--type', type_name] if type_name else []
        packed = subprocess.run([WHARF, 'pack', '-c', codec, *kind, '-o', '-', file.name],
                                stdout=subprocess.PIPE, check=True).stdout
    stream, at = b'', FILE_HEADER_NBYTES
    while struct.unpack_from('<I', packed, at)[0] == CHUNK:
        number, _, nbytes = struct.unpack_from('<HHI', packed, at + 4)
        assert number != 0, f'{codec} stored a chunk'
        stream += packed[at + FRAME_NBYTES:at + FRAME_NBYTES + nbytes]
        at += FRAME_NBYTES + (nbytes + 15) // 16 * 16
    return stream


def decode(codec, type_name, count, stream):
    kind = ['--type', type_name] if type_name else []
    return subprocess.run([WHARF, 'decode', '-c', codec, *kind, '--count', str(count)],
                          input=stream, stdout=subprocess.PIPE, check=True).stdout


def as_bytes(nbytes, values):
    return b''.join((v % (1 << 8 * nbytes)).to_bytes(nbytes, 'little') for v in values)


def columns():
    """(name, values of 64 bits that both versions make smaller)"""
    source = random.Random(7)
    yield 'equal', [source.getrandbits(62)] * 1000
    yield 'counted', list(range(-500, 3000, 3))
    yield 'runs', [source.randrange(1 << 40) for _ in range(200) for _ in range(source.randrange(40))]
    yield 'small', [source.randrange(-9, 9) for _ in range(20000)]
    yield 'sorted', sorted(source.randrange(-1 << 45, 1 << 45) for _ in range(5000))
    yield 'sorted down', sorted((source.randrange(1 << 40) for _ in range(5000)), reverse=True)
    yield 'sorted from equal ones', sorted(source.randrange(3000) for _ in range(5000))
    yield 'some large ones', [source.randrange(1 << (47 if source.random() < .02 else 9)) - 1000
                              for _ in range(9000)]
    yield 'one large one', [source.randrange(100) for _ in range(511)] + [1 << 50]
    yield 'short', [5]
    yield 'ends', [(1 << 63) - 1] * 50 + [-1 << 63] * 50 + list(range(60))
    for width in range(1, 50, 3):
        yield f'{width} bits', [source.getrandbits(width) for _ in range(700)]


def check(condition, what):
    if not condition:
        sys.exit(f'not the same: {what}')


def read_back(type_name, count, stream, is_version_2):
    file = orc_file.write(type_name, count, [('data', stream)], is_version_2)
    return orc.read_table(io.BytesIO(file)).column('v').to_pylist()


def ours_to_theirs():
    number = 0
    for name, values in columns():
        for codec in 'rle1', 'rle2':
            stream = encode(codec, 'i64', as_bytes(8, values))
            got = read_back('bigint', len(values), stream, codec == 'rle2')
            check(got == values, f'{codec}, {name}')
            number += 1
    source = random.Random(8)
    small = [source.choice((0, 0, 0, 0, 0, 0, source.randrange(-128, 128))) for _ in range(5000)]
    stream = encode('byterle', None, as_bytes(1, small))
    check(read_back('tinyint', len(small), stream, False) == small, 'byterle')
    truths = [source.random() < .1 for _ in range(4999)]
    stream = encode('boolrle', None, bytes(truths))
    check(read_back('boolean', len(truths), stream, False) == truths, 'boolrle')
    return number + 2


def theirs(values, version):
    """The stream of a column as pyarrow writes it."""
    file = io.BytesIO()
    orc.write_table(pyarrow.table({'v': values}), file, file_version=version,
                    compression='uncompressed')
    found = [data for _, kind, column, _, data in orc_file.File(file.getvalue()).streams()
             if kind == 'data' and column == 1]
    assert len(found) == 1
    return found[0]


def theirs_to_ours():
    number = 0
    for name, values in columns():
        for codec, version in ('rle1', '0.11'), ('rle2', '0.12'):
            stream = theirs(pyarrow.array(values, pyarrow.int64()), version)
            got = decode(codec, 'i64', len(values), stream)
            check(got == as_bytes(8, values), f'{codec} by pyarrow, {name}')
            ours = len(encode(codec, 'i64', as_bytes(8, values)))
            if ours > 1.02 * len(stream) + 2:
                sys.exit(f'{codec}, {name}: {ours} bytes, {len(stream)} by pyarrow')
            number += 1
    source = random.Random(9)
    small = [source.choice((0, 0, 0, source.randrange(-128, 128))) for _ in range(5000)]
    check(decode('byterle', None, 5000, theirs(pyarrow.array(small, pyarrow.int8()), '0.12')) ==
          as_bytes(1, small), 'byterle by pyarrow')
    truths = [source.random() < .1 for _ in range(4999)]
    check(decode('boolrle', None, 4999, theirs(pyarrow.array(truths), '0.12')) == bytes(truths),
          'boolrle by pyarrow')
    return number + 2


print(f'{ours_to_theirs()} streams of ours, {theirs_to_ours()} of theirs')
