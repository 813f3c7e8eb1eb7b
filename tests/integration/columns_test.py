#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""columns_test.py [PATTERN]: `wharf columns`, and what it says of ORC files that are hostile.

The files are made here, by lib/orc_file.py.  orc_test.sh compares with pyarrow.  Reports in the Test
Anything Protocol.
"""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import zlib

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import module_tests  # noqa: E402  pylint: disable=wrong-import-position
from orc_file import KINDS, MAGIC, TYPES, message  # noqa: E402  pylint: disable=wrong-import-position

WHARF = os.path.join(TOP, os.environ.get('BUILD', 'build/release'), 'wharf')
ZLIB, SNAPPY, LZO, LZ4, ZSTD, BROTLI = range(1, 7)
DIRECT, DICTIONARY, DIRECT_V2 = range(3)
PRESENT, DATA = KINDS.index('present'), KINDS.index('data')
HEAD_NBYTES = 128


# -- making files

def rle1(*values):
    """As literals, signed."""
    out = bytes([256 - len(values)])
    for value in values:
        number = value << 1 if value >= 0 else (-value << 1) - 1
        while number >= 128:
            out += bytes([number & 127 | 128])
            number >>= 7
        out += bytes([number])
    return out


def bits(*truths):
    """As literals of packed bytes."""
    text = ''.join('1' if truth else '0' for truth in truths)
    packed = int(text.ljust(-len(text) % 8 + len(text), '0'), 2).to_bytes((len(text) + 7) // 8, 'big')
    return bytes([256 - len(packed)]) + packed


class Blocks(bytes):
    """Is blocks already."""


def blocks(data, compression):
    """As one block, compressed or plain, if there is any compression."""
    if not compression or isinstance(data, Blocks):
        return data
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()
    if compression == ZLIB and len(packed) < len(data):
        return (len(packed) << 1).to_bytes(3, 'little') + packed
    return (len(data) << 1 | 1).to_bytes(3, 'little') + data


def many_blocks(data, nbytes):
    """Of so many bytes each."""
    return Blocks(b''.join(blocks(data[i:i + nbytes], ZLIB) for i in range(0, len(data), nbytes)))


def a_type(kind, *children):
    """A type; of a structure with its fields, (number, name)."""
    return message((1, TYPES.index(kind)), (2, [number for number, _ in children]),
                   (3, [name for _, name in children]))


class Maker:
    """A file of one column `v`, of which all can be changed before it is made."""

    def __init__(self, kind='bigint', streams=((DATA, 1, rle1(5, -6)),), n_rows=2):
        self.types = [a_type('struct', (1, b'v')), a_type(kind)]
        self.stripes = [(n_rows, list(streams))]
        self.encodings = None  # DIRECT for all
        self.compression = 0
        self.block_nbytes = 65536
        self.version = b'\0\x0c'
        self.magic = MAGIC
        self.changed = {}      # what of the messages is not as it should be
        self.footer = None     # instead of the one that is made
        self.footer_more = ()

    def set(self, **members):
        for name, value in members.items():
            assert hasattr(self, name), name
            setattr(self, name, value)
        return self

    def stripe(self, number, n_rows, streams, at):
        """The bytes of a stripe at `at`, and what the footer has to say of it."""
        change = self.changed.get
        data = [blocks(stream, self.compression) for _, _, stream in streams]
        encodings = self.encodings or [DIRECT] * len(self.types)
        footer = message(
            (1, [message((1, kind), (2, column), (3, change('stream_nbytes', len(packed))))
                 for (kind, column, _), packed in zip(streams, data)]),
            (2, [message((1, encoding)) for encoding in encodings]))
        footer = blocks(change('stripe_footer', footer), self.compression)
        body = b''.join(data)
        info = message((1, change(f'offset_{number}', change('offset', at))), (2, 0), (3, change('data_nbytes', len(body))),
                       (4, change('stripe_footer_nbytes', len(footer))),
                       (5, change(f'rows_{number}', n_rows)))
        return body + footer, info

    def make(self):
        out, infos = MAGIC, []
        for number, (n_rows, streams) in enumerate(self.stripes):
            body, info = self.stripe(number, n_rows, streams, len(out))
            out += body
            infos.append(info)
        total = sum(n_rows for n_rows, _ in self.stripes)
        footer = self.footer
        if footer is None:
            footer = message((3, infos), (4, self.types), (6, self.changed.get('n_rows', total)),
                             *self.footer_more)
        footer = blocks(footer, self.compression)
        postscript = message((1, self.changed.get('footer_nbytes', len(footer))), (2, self.compression),
                             (3, self.block_nbytes), (4, self.version), (8000, self.magic))
        return out + footer + postscript + bytes([len(postscript)])


# -- running

def columns(*arguments, status=0, **options):
    """What it says on standard error."""
    done = subprocess.run([WHARF, 'columns', *arguments], check=False, stderr=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, **options)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stderr


def write(name, data):
    with open(name, 'wb') as file:
        file.write(data.make() if isinstance(data, Maker) else data)
    return name


def read(name):
    with open(name, 'rb') as file:
        return file.read()


def ints(nbytes, *values):
    return b''.join((v % (1 << 8 * nbytes)).to_bytes(nbytes, 'little') for v in values)


def expect_said(said, pattern):
    assert re.search(pattern, said), f'{pattern!r} is not in {said!r}'
    assert all(line.startswith('wharf: ') for line in said.splitlines()), said


def in_folder(function):
    """A test in an empty folder of its own."""
    def inside():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                function()
            finally:
                os.chdir(TOP)
    return inside


# -- good files

@in_folder
def test_each_kind_has_its_values_and_nulls():
    for kind, nbytes, type_text, data, values in (
            ('boolean', 1, '|b1', bits(1, 0, 1), (1, 0, 1)),
            ('tinyint', 1, '|i1', b'\xfd\x80\x00\x7f', (-128, 0, 127)),
            ('smallint', 2, '<i2', rle1(-32768, 1, 32767), (-32768, 1, 32767)),
            ('int', 4, '<i4', rle1(-1 << 31, 2, (1 << 31) - 1), (-1 << 31, 2, (1 << 31) - 1)),
            ('bigint', 8, '<i8', rle1(-1 << 62, 3, 1 << 62), (-1 << 62, 3, 1 << 62))):
        for compression in 0, ZLIB:
            streams = [(PRESENT, 1, bits(0, 1, 1, 0, 1)), (DATA, 1, data)]
            write('x.orc', Maker(kind, streams, 5).set(compression=compression))
            columns('-f', 'x.orc')
            head = (f"{{'descr': '{type_text}', 'fortran_order': False, 'shape': (5,), }}").encode()
            assert read('x.orc.v.npy') == b'\x93NUMPY\1\0v\0' + head.ljust(HEAD_NBYTES - 11) + b'\n' + \
                ints(nbytes, 0, *values[:2], 0, values[2])
            assert read('x.orc.v.nulls')[HEAD_NBYTES:] == bytes([1, 0, 0, 1, 0])
            assert b"'|b1'" in read('x.orc.v.nulls')[:HEAD_NBYTES]
            columns('-f', '--raw', 'x.orc', 'v')
            assert read('x.orc.v.bin') == ints(nbytes, 0, *values[:2], 0, values[2])
            assert read('x.orc.v.nulls') == bytes([1, 0, 0, 1, 0])
    # Version 2: a short repeat.
    write('x.orc', Maker(streams=[(DATA, 1, b'\x02\x0a')], n_rows=5).set(encodings=[DIRECT, DIRECT_V2]))
    columns('-f', '--raw', 'x.orc')
    assert read('x.orc.v.bin') == ints(8, *[5] * 5)


@in_folder
def test_columns_in_structures_have_nulls_of_all_above():
    file = Maker().set(types=[a_type('struct', (1, b'a'), (4, b'a.b')), a_type('struct', (2, b'b'), (3, b'c')),
                              a_type('tinyint'), a_type('string'), a_type('boolean')],
                       stripes=[(4, [(PRESENT, 1, bits(1, 0, 1, 1)), (PRESENT, 2, bits(1, 0, 1)),
                                     (DATA, 2, b'\xfe\x07\x08'), (DATA, 4, bits(1, 1, 0, 1))])])
    write('s.orc', file)
    said = columns('--raw', 's.orc', status=2)
    expect_said(said, r"columns 2 and 4 are both called 'a\.b': .* as #4$")
    expect_said(columns('--raw', 's.orc', 'a.b', status=2), r"has several columns 'a\.b'")
    assert os.listdir() == ['s.orc']
    columns('--raw', 's.orc', '#2')
    assert read('s.orc.a.b.bin') == bytes([7, 0, 0, 8])
    assert read('s.orc.a.b.nulls') == bytes([0, 1, 1, 0])
    # A column without nulls takes away the nulls of another one that were there.
    columns('--raw', '-f', 's.orc', '#4')
    assert read('s.orc.a.b.bin') == bytes([1, 1, 0, 1])
    assert not os.path.exists('s.orc.a.b.nulls')


@in_folder
def test_missing_streams_are_rows_without_nulls_or_without_values():
    write('x.orc', Maker(streams=[(PRESENT, 1, bits(0, 0, 0))], n_rows=3))
    columns('--raw', 'x.orc')
    assert read('x.orc.v.bin') == bytes(24) and read('x.orc.v.nulls') == b'\1\1\1'
    write('y.orc', Maker(streams=[], n_rows=0).set(stripes=[]))
    columns('--raw', 'y.orc')
    assert read('y.orc.v.bin') == b'' and not os.path.exists('y.orc.v.nulls')
    # Values that no row needs are left alone, as pyarrow writes them for structures that are null.
    write('z.orc', Maker(streams=[(DATA, 1, rle1(5, 6, 7))], n_rows=2))
    columns('--raw', 'z.orc')
    assert read('z.orc.v.bin') == ints(8, 5, 6)


def many_stripes():
    return Maker().set(stripes=[(3, [(DATA, 1, rle1(i, -i, i * i))]) for i in range(300)])


@in_folder
def test_threads_make_no_difference():
    write('m.orc', many_stripes().set(compression=ZLIB))
    values = ints(8, *[v for i in range(300) for v in (i, -i, i * i)])
    for threads in '1', '2', '9':
        columns('-f', '--raw', '-T', threads, 'm.orc')
        assert read('m.orc.v.bin') == values
    # Nor which failure is told, of several.
    bad = many_stripes()
    for number in 123, 124, 200, 299:
        bad.stripes[number] = (3, [(DATA, 1, rle1(1, 2))])
    write('bad.orc', bad)
    said = {columns('--raw', '-T', threads, 'bad.orc', status=1) for threads in ('1', '2', '9') * 3}
    assert len(said) == 1, said
    expect_said(said.pop(), r'bad\.orc: column 1 \(v\), stripe 123, stream DATA, at byte \d+: it has too few values')
    assert sorted(os.listdir()) == ['bad.orc', 'm.orc', 'm.orc.v.bin']


@in_folder
def test_runs_go_on_over_blocks():
    values = [(i * 7919) % 100003 for i in range(5000)]
    stream = b''.join(rle1(*values[i:i + 100]) for i in range(0, 5000, 100))
    # Blocks of 7 bytes: runs end within them.
    pieces = Blocks(b''.join((len(p) << 1 | 1).to_bytes(3, 'little') + p
                             for p in (stream[i:i + 7] for i in range(0, len(stream), 7))))
    write('p.orc', Maker(streams=[(DATA, 1, pieces)], n_rows=5000).set(compression=ZLIB))
    columns('--raw', 'p.orc')
    assert read('p.orc.v.bin') == ints(8, *values)


def large_stripe(n_rows=100000, block_nbytes=8192):
    """A file of one column and one stripe, the values of its rows, and where DATA begins."""
    truths = [i * 40503 >> 7 & 1 for i in range(n_rows)]
    values = [i * 2654435761 % (1 << 40) for i in range(sum(truths))]
    data = b''.join(rle1(*values[i:i + 100]) for i in range(0, len(values), 100))
    present = b''.join(bits(*truths[i:i + 1000]) for i in range(0, n_rows, 1000))
    streams = [(PRESENT, 1, many_blocks(present, block_nbytes)), (DATA, 1, many_blocks(data, block_nbytes))]
    left = iter(values)
    rows = [next(left) if truth else 0 for truth in truths]
    return Maker(streams=streams, n_rows=n_rows).set(compression=ZLIB), rows, len(MAGIC) + len(streams[0][2])


@in_folder
def test_threads_share_the_blocks_of_one_stripe():
    file, rows, data_at = large_stripe()
    write('x.orc', file)
    for threads in '1', '2', '9':
        columns('-f', '--raw', '-T', threads, 'x.orc')
        assert read('x.orc.v.bin') == ints(8, *rows), threads
    # The first bad block is told, at its place, whoever finds which one first.
    whole = bytearray(file.make())
    starts = [data_at]
    while len(starts) < 30:
        starts.append(starts[-1] + 3 + (int.from_bytes(whole[starts[-1]:starts[-1] + 3], 'little') >> 1))
    for number in 20, 21, 29:
        whole[starts[number] + 3] = 0xff  # a Deflate block of the kind that there is not
    write('bad.orc', bytes(whole))
    for threads in ('1', '2', '9') * 3:
        said = columns('-f', '--raw', '-T', threads, 'bad.orc', status=1)
        expect_said(said, rf'column 1 \(v\), stripe 0, stream DATA, at byte {starts[20]}: a block does not decode')


@in_folder
def test_stripes_may_have_gaps_between_them():
    class Gaps(Maker):
        def stripe(self, number, n_rows, streams, at):
            body, info = super().stripe(number, n_rows, streams, at)
            return body + bytes(number * 7), info

    write('x.orc', Gaps().set(stripes=[(2, [(DATA, 1, rle1(i, -i))]) for i in range(9)]))
    columns('--raw', 'x.orc')
    assert read('x.orc.v.bin') == ints(8, *[v for i in range(9) for v in (i, -i)])


# -- names and outputs

@in_folder
def test_names_of_columns_leave_no_folder():
    names = [b'../up', b'/etc/x', b'', b'.', b'a b\n', b'%2F', 'größe'.encode()]
    file = Maker().set(types=[a_type('struct', *enumerate(names, 1))] + [a_type('tinyint')] * len(names),
                       stripes=[(1, [(DATA, i + 1, bytes([255, i])) for i in range(len(names))])])
    os.mkdir('in')
    os.chdir('in')
    os.mkdir('out')
    write('n.orc', file)
    columns('--raw', '-o', 'out', 'n.orc')
    wanted = ['%2E.%2Fup', '%2Fetc%2Fx', '%', '%2E', 'a%20b%0A', '%252F', 'größe']
    assert sorted(os.listdir('out')) == sorted(f'{name}.bin' for name in wanted)
    for i, name in enumerate(wanted):
        assert read(f'out/{name}.bin') == bytes([i])
    columns('--raw', 'n.orc', '../up')
    assert sorted(os.listdir('.')) == ['n.orc', 'n.orc.%2E.%2Fup.bin', 'out']
    assert os.listdir('..') == ['in']
    said = columns('--list', 'n.orc', stdout=subprocess.DEVNULL)
    assert said == ''


@in_folder
def test_what_is_asked_for_has_to_be_there():
    write('x.orc', Maker().set(types=[a_type('struct', (1, b'v'), (2, b'text'), (3, b'list')), a_type('bigint'),
                                      a_type('string'), a_type('array', (4, b'')), a_type('int')]))
    expect_said(columns('x.orc', 'w', status=2), r"x\.orc: has no column 'w'; --list shows")
    expect_said(columns('x.orc', '#5', status=2), r"x\.orc: has no column '#5'")
    expect_said(columns('x.orc', 'text', status=4), r"column 'text' \(string\) holds neither integers nor")
    expect_said(columns('x.orc', '#4', status=4), r"column '#4' \(int\) is in a list, a map or a union")
    assert os.listdir() == ['x.orc']
    expect_said(columns('x.orc'), r'x\.orc: 3 columns of other types are left out$')
    assert columns('-qf', 'x.orc', 'v', 'v') == ''
    write('s.orc', Maker('string', []))
    expect_said(columns('s.orc', status=4), 'has no column of integers, booleans or bytes')
    done = subprocess.run([WHARF, 'columns', '--list', 'x.orc'], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        '2 rows in 1 stripes', '', 'column  type       name', '     1  bigint     v',
        '     2  string     text  (not decoded)', '     3  array      list  (not decoded)',
        '     4  int        list.#4  (not decoded)'], done.stdout


@in_folder
def test_outputs_are_whole_or_not_there():
    write('x.orc', Maker())
    write('x.orc.v.npy', b'old')
    expect_said(columns('x.orc', status=4), r'x\.orc\.v\.npy: exists already; -f replaces it')
    assert read('x.orc.v.npy') == b'old'
    os.unlink('x.orc.v.npy')
    write('x.orc.v.nulls', b'old')
    expect_said(columns('x.orc', status=4), r'x\.orc\.v\.nulls: exists already')
    assert sorted(os.listdir()) == ['x.orc', 'x.orc.v.nulls']
    os.unlink('x.orc.v.nulls')
    os.symlink('x.orc', 'x.orc.v.npy')
    expect_said(columns('-f', 'x.orc', status=4), 'is the input itself')
    os.unlink('x.orc.v.npy')
    os.mkfifo('x.orc.v.npy')
    reader = os.open('x.orc.v.npy', os.O_RDONLY | os.O_NONBLOCK)
    expect_said(columns('-f', 'x.orc', status=4), 'is no regular file')
    os.close(reader)
    os.unlink('x.orc.v.npy')
    expect_said(columns('-o', 'nowhere', 'x.orc', status=2), "--output: 'nowhere' is no folder")

    # No room: nothing is left of the column.
    write('m.orc', many_stripes())
    expect_said(columns('m.orc', status=4,
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))),
                r'm\.orc\.v\.npy: cannot write: File too large; nothing is left of it')
    assert sorted(os.listdir()) == ['m.orc', 'x.orc']


@in_folder
def test_report_tells_what_was_done():
    write('x.orc', Maker())
    report = json.loads(columns('--report', 'x.orc').splitlines()[-1])
    assert (report['result'], report['in_nbytes'], report['out_nbytes'], report['engine']) == \
        ('ok', os.path.getsize('x.orc'), HEAD_NBYTES + 16, 'cpu'), report
    write('bad.orc', Maker(n_rows=3))
    report = json.loads(columns('--report', 'bad.orc', status=1).splitlines()[-1])
    assert (report['result'], report['bit_offset'], report['input']) == ('bad_data', 8 * 3, 'bad.orc'), report


@in_folder
def test_inputs_that_are_no_files_are_refused():
    write('empty', b'')
    expect_said(columns('empty', status=4), 'empty: is empty')
    expect_said(columns('missing', status=4), 'missing: .*No such file')
    with subprocess.Popen(['cat', '/dev/zero'], stdout=subprocess.PIPE) as cat:
        done = subprocess.run([WHARF, 'columns', '-'], check=False, stdin=cat.stdout, capture_output=True, text=True)
        cat.kill()
    assert done.returncode == 4 and 'is read from its end' in done.stderr, done
    expect_said(columns(status=2), 'name a FILE')


# -- hostile files

def no_end(n):
    """A run whose first number does not end for n bytes."""
    return b'\x00\x00' + b'\x80' * n


def two_stripes(**changed):
    return Maker().set(stripes=2 * [(2, [(DATA, 1, rle1(5, -6))])], changed=changed)


STRIPE_END = len(MAGIC) + len(Maker().stripe(0, 2, [(DATA, 1, rle1(5, -6))], 3)[0])
# Of Deflate's stored blocks without bytes, of which the last is the last.
EMPTY_BLOCK = (5 * 300 << 1).to_bytes(3, 'little') + 299 * b'\0\0\0\xff\xff' + b'\1\0\0\xff\xff'

HOSTILE = {
    # What: (file, status, what is said)
    'another format': (b'PAR1' + bytes(100) + b'PAR1', 1, 'it is no ORC file'),
    'the magic alone': (MAGIC, 1, 'the postscript, at byte 2: it is no message'),
    'one byte': (b'\0', 1, 'it is no ORC file'),
    'no magic in either place': (Maker().set(magic=b'OLC').make()[1:], 1, 'it is no ORC file'),
    'major version 1': (Maker().set(version=b'\1\0'), 4, "the format's major version is not 0"),
    'LZO': (Maker().set(compression=LZO), 4, 'the postscript.*compressed by LZO'),
    'Brotli': (Maker().set(compression=BROTLI), 4, 'compressed by what wharf does not know'),
    'blocks of no bytes': (Maker().set(compression=ZLIB, block_nbytes=0), 1, 'the block size is not possible'),
    'blocks of 2^40 bytes': (Maker().set(compression=ZLIB, block_nbytes=1 << 40), 1, 'the block size is not possible'),
    'a footer as large as 2^64': (Maker().set(changed={'footer_nbytes': (1 << 64) - 1}), 1, 'the footer is larger than the file'),
    'a footer as large as the file': (Maker().set(changed={'footer_nbytes': 40}), 1, 'the footer, at byte'),
    'a footer of other bytes': (Maker().set(footer=b'\xff' * 50), 1, 'the footer, at byte 22: it is no message'),
    'no types': (Maker().set(types=[]), 1, 'the footer.*there are no types'),
    'a type that has itself': (Maker().set(types=[a_type('struct', (0, b'v')), a_type('int')]), 1, 'the types are no tree'),
    'a type that is not there': (Maker().set(types=[a_type('struct', (9, b'v')), a_type('int')]), 1, 'the types are no tree'),
    'a type with two parents': (Maker().set(types=[a_type('struct', (1, b'v'), (1, b'w')), a_type('int')]), 1, 'no tree'),
    'fields without names': (Maker().set(types=[message((1, 12), (2, [1])), a_type('int')]), 1, 'the types are no tree'),
    'encryption': (Maker().set(footer_more=((10, b''),)), 4, 'the file is encrypted'),
    'another number of rows': (Maker().set(changed={'n_rows': 3}), 1, 'its number of rows is not that of all stripes'),
    '2^64 rows in two stripes': (Maker().set(stripes=2 * [(2, [])], changed={'rows_0': 1 << 63, 'rows_1': 1 << 63, 'n_rows': 0}), 1, 'more rows than any file has'),
    'a stripe behind the file': (Maker().set(changed={'offset': 1 << 30}), 1, 'stripe 0, the footer, at byte .*: a stripe is outside the file'),
    'a stripe that wraps around': (Maker().set(changed={'offset': (1 << 64) - 5, 'data_nbytes': 10}), 1, 'a stripe is outside the file'),
    'a large stripe footer': (Maker().set(changed={'stripe_footer_nbytes': 1 << 20}), 1, 'a stripe is outside the file'),
    'stripes that are one': (two_stripes(offset=3), 1, f'stripe 1, the footer, at byte 3: the stripe begins before the end of the one before it, at byte {STRIPE_END}$'),
    'stripes that overlap by a byte': (two_stripes(offset_1=STRIPE_END - 1), 1, f'stripe 1, the footer, at byte {STRIPE_END - 1}: the stripe begins before the end of the one before it, at byte {STRIPE_END}$'),
    'stripes in another order': (two_stripes(offset_0=STRIPE_END, offset_1=3), 1, 'stripe 1, the footer, at byte 3: the stripe begins before the end'),
    'a stripe without a footer': (Maker().set(changed={'stripe_footer_nbytes': 0}), 1, 'stripe 0, the footer, .*the stripe has no footer'),
    'a stripe footer of other bytes': (Maker().set(changed={'stripe_footer': b'\xff' * 9}), 1, 'stripe 0, the stripe footer, at byte 6: it is no message'),
    'a large stream': (Maker().set(changed={'stream_nbytes': 1 << 63}), 1, 'the stripe footer.*the streams are larger than the stripe'),
    'a stream twice': (Maker(streams=[(DATA, 1, b'')] * 2), 1, 'a stream is there twice'),
    'no encodings': (Maker().set(encodings=[DIRECT]), 1, r'column 1 \(v\), stripe 0, at byte .*does not say how it is coded'),
    'a dictionary': (Maker().set(encodings=[DIRECT, DICTIONARY]), 4, 'coded in a way that wharf does not know'),
    'bytes of version 2': (Maker('tinyint').set(encodings=[DIRECT, DIRECT_V2]), 4, 'coded in a way that wharf does not know'),
    'values, and no DATA': (Maker(streams=[]), 1, 'there are values, and no stream DATA'),
    'too few values': (Maker(n_rows=3), 1, r'column 1 \(v\), stripe 0, stream DATA, at byte 3: it has too few values'),
    'too few values for the nulls': (Maker(streams=[(PRESENT, 1, bits(1, 1, 0, 1)), (DATA, 1, rle1(1, 2))], n_rows=4), 1, 'stream DATA.*too few values'),
    'too few bits': (Maker('boolean', [(DATA, 1, bits(*8 * [1]))], 9), 1, 'stream DATA.*too few values'),
    'too few rows present': (Maker(streams=[(PRESENT, 1, bits(1)), (DATA, 1, rle1(1, 2))], n_rows=9), 1, 'stream PRESENT.*too few values'),
    '2^58 rows of two values': (Maker().set(changed={'rows_0': 1 << 58, 'n_rows': 1 << 58}), 1, 'stream DATA.*too few values'),
    'a value beyond the type': (Maker('smallint', [(DATA, 1, rle1(1 << 15))], 1), 1, 'stream DATA.*a run does not decode: .*value'),
    'half a run': (Maker(streams=[(DATA, 1, rle1(5, 1 << 40)[:-2])]), 1, 'a run does not decode: .*(cut|end)'),
    'a number of 9000 bytes': (Maker(streams=[(DATA, 1, no_end(9000))]), 1, 'a run does not decode: '),
    'a number of 9000 bytes, in blocks': (Maker(streams=[(DATA, 1, no_end(9000))]).set(compression=ZLIB, block_nbytes=9100), 1, 'a run does not decode: '),
    'a plain block beyond the block size': (Maker(streams=[(DATA, 1, rle1(*range(100)))]).set(compression=SNAPPY, block_nbytes=90), 1, 'a block is larger than the block size'),
    'a block that decodes to more': (Maker(streams=[(DATA, 1, rle1(5, 6) * 50)], n_rows=100).set(compression=ZLIB, block_nbytes=100), 1, 'a block does not decode: '),
    'blocks of no bytes': (Maker(streams=[(DATA, 1, Blocks(400 * b'\1\0\0' + blocks(rle1(5, -6), ZLIB)))]).set(compression=ZLIB), 1, r'stream DATA, at byte 1026: its blocks hold far less than they take'),
    'a large block of no bytes': (Maker(streams=[(DATA, 1, Blocks(EMPTY_BLOCK + blocks(rle1(5, -6), ZLIB)))]).set(compression=ZLIB), 1, r'stream DATA, at byte 3: its blocks hold far less than they take'),
    'a footer that decodes to more': (Maker().set(compression=ZLIB, block_nbytes=10), 1, 'the footer.*(a block does not decode|larger than the block size)'),
}


@in_folder
def test_hostile_files_are_refused_with_what_and_where():
    wrong = []
    for what, (file, status, pattern) in HOSTILE.items():
        write('x.orc', file)
        try:
            expect_said(columns('-f', '--raw', 'x.orc', status=status), r'^wharf: x\.orc: ')
            expect_said(columns('-f', '--raw', 'x.orc', status=status), pattern)
        except AssertionError as error:
            wrong.append(f'{what}: {error}')
        assert os.listdir() == ['x.orc'], what
    assert not wrong, '\n'.join(wrong)


@in_folder
def test_damaged_columns_leave_the_others_alone():
    file = Maker().set(types=[a_type('struct', (1, b'a'), (2, b'b'), (3, b'c'))] + [a_type('tinyint')] * 3,
                       stripes=[(2, [(DATA, 1, b'\xfe\1\2'), (DATA, 2, b'\xfe\3'), (DATA, 3, b'\xfe\4\5')])])
    write('x.orc', file)
    said = columns('--raw', 'x.orc', status=1)
    expect_said(said, r'column 2 \(b\), stripe 0, stream DATA, at byte 6: a run does not decode')
    expect_said(said, r'x\.orc\.b\.bin: not written')
    assert sorted(os.listdir()) == ['x.orc', 'x.orc.a.bin', 'x.orc.c.bin']
    # What is wrong with a stripe is said once, however many columns it has.
    n = 100
    file.set(types=[a_type('struct', *((1 + i, b'%d' % i) for i in range(n)))] + n * [a_type('int')])
    write('y.orc', file.set(changed={'stripe_footer': b'\xff'}))
    assert columns('y.orc', status=1).count('it is no message') == 1


@in_folder
def test_cut_and_changed_files_end_in_an_answer():
    whole = Maker(streams=[(PRESENT, 1, bits(1, 1, 0)), (DATA, 1, rle1(5, 6))], n_rows=3).set(compression=ZLIB).make()
    for n in range(1, len(whole)):
        write('x.orc', whole[:n])
        expect_said(columns('-f', 'x.orc', status=1), r'^wharf: x\.orc: .')
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        write('x.orc', bytes(changed))
        done = subprocess.run([WHARF, 'columns', '-qf', 'x.orc'], check=False, stderr=subprocess.PIPE, text=True)
        assert done.returncode in (0, 1, 4) and (done.returncode == 0) == (done.stderr == ''), (at, done)


@in_folder
def test_memory_is_bounded_by_the_file():
    # A megabyte of zeros as types, compressed to a kilobyte: messages of some bytes each, which take more.
    types = b'\x22\x00' * (1 << 21)
    file = Maker().set(footer=types, compression=ZLIB, block_nbytes=(1 << 23) - 1)
    write('x.orc', file)
    limit = 1 << 30
    sanitized = not os.path.basename(os.path.dirname(WHARF)).startswith('release')
    said = columns('x.orc', status=1,
                   preexec_fn=None if sanitized else lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    expect_said(said, 'the footer')


@in_folder
def test_names_are_bounded_by_the_file():
    def listed():
        return subprocess.run([WHARF, 'columns', '--list', 'x.orc'], check=True, stdout=subprocess.PIPE).stdout

    # One long name that stands before thousands of others.
    n = 2000
    fields = [a_type('struct', (1, b'n' * 30000)), a_type('struct', *((2 + i, b'%d' % i) for i in range(n)))]
    write('x.orc', Maker().set(types=fields + n * [a_type('int')], stripes=[]))
    assert len(listed()) < 64 * n
    columns('x.orc', '#1000')
    assert sorted(os.listdir()) == ['x.orc', 'x.orc.#1000.npy']
    # The longest one is that of a file.
    for nbytes, name in (255, 'n' * 255), (256, '#1'):
        write('x.orc', Maker().set(types=[a_type('struct', (1, b'n' * nbytes)), a_type('int')], stripes=[]))
        assert listed().split()[-1].decode() == name, nbytes
    # Structures in each other: no name has those of all.
    write('x.orc', Maker().set(types=[a_type('struct', (i + 1, b'n')) for i in range(n)] + [a_type('int')], stripes=[]))
    assert len(listed()) < 96 * n


@in_folder
def test_more_columns_than_files_have_are_refused():
    n = (1 << 16) + 1
    fields = [a_type('struct', *((1 + i, b'%d' % i) for i in range(n)))]
    write('x.orc', Maker().set(types=fields + n * [a_type('int')], stripes=[]))
    expect_said(columns('x.orc', status=4), 'more than 65536 columns: name those that you want')
    columns('x.orc', '7', '65536')
    assert sorted(os.listdir()) == ['x.orc', 'x.orc.65536.npy', 'x.orc.7.npy']
    # Columns and stripes that are too many together.
    n = 2000
    fields = [a_type('struct', *((1 + i, b'%d' % i) for i in range(n)))]
    write('y.orc', Maker().set(types=fields + n * [a_type('int')], stripes=3000 * [(0, [])], encodings=[DIRECT]))
    expect_said(columns('y.orc', status=4), 'y.orc: 2000 columns of 3000 stripes are too many at once: name fewer of them$')


if __name__ == '__main__':
    sys.exit(1 if module_tests.run(globals(), sys.argv[1] if len(sys.argv) > 1 else '.') else 0)
