# SPDX-License-Identifier: Apache-2.0
"""orc_columns.py WHARF [FILE...]: what `wharf columns` makes of ORC files, against pyarrow.

Without files, of some that pyarrow writes: in all compressions and versions, with nulls of many kinds,
structures, and many stripes.

Every column of integers, booleans and bytes that pyarrow reads has to be there, with the same values
and nulls, and no other one.  Files that pyarrow refuses have to be refused, or are not compared.  Ends
with a line that says how many there were.
"""
import ast
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile

import pyarrow
from pyarrow import orc

NPY = {pyarrow.bool_(): '|b1', pyarrow.int8(): '|i1', pyarrow.int16(): '<i2', pyarrow.int32(): '<i4',
       pyarrow.int64(): '<i8'}
HEAD_NBYTES = 128


def flat(name, column):
    """(name, column) of it and all that is in structures."""
    if pyarrow.types.is_struct(column.type):
        chunks = column.combine_chunks()
        chunks = chunks if isinstance(chunks, pyarrow.Array) else chunks.chunk(0)
        for field, child in zip(column.type, chunks.flatten()):
            yield from flat(f'{name}.{field.name}' if name else field.name,
                            pyarrow.chunked_array([child]))
    elif column.type in NPY:
        yield name, column


def load(path, type_text):
    """The bytes behind a head that has to say this type and their number."""
    data = path.read_bytes()
    assert data[:10] == b'\x93NUMPY\1\0' + bytes([HEAD_NBYTES - 10, 0]), path
    head = ast.literal_eval(data[10:HEAD_NBYTES].decode())
    values = data[HEAD_NBYTES:]
    assert head == {'descr': type_text, 'fortran_order': False,
                    'shape': (len(values) // int(type_text[2:]),)}, (path, head)
    return values


def as_bytes(column):
    """Values, 0 where there are none, and which these are."""
    nbytes = int(NPY[column.type][2:])
    values = column.to_pylist()
    return (b''.join(((int(v) if v is not None else 0) % (1 << 8 * nbytes)).to_bytes(nbytes, 'little')
                     for v in values), bytes(v is None for v in values))


def check(condition, what):
    if not condition:
        sys.exit(f'not the same: {what}')


def compare(folder, wanted, path):
    """How many columns there are."""
    found = {p.name for p in folder.iterdir()}
    for name, column in wanted:
        file = name.replace('/', '%2F')
        values, nulls = as_bytes(column)
        check(file + '.npy' in found, f'{path}: {name} is missing')
        check(load(folder / (file + '.npy'), NPY[column.type]) == values, f'{path}: {name}')
        check((file + '.nulls' in found) == (1 in nulls), f'{path}: {name} has nulls, or has not')
        if 1 in nulls:
            check(load(folder / (file + '.nulls'), '|b1') == nulls, f'{path}: nulls of {name}')
        found -= {file + '.npy', file + '.nulls'}
    check(not found, f'{path}: {found} is too many')
    return len(wanted)


def read(path):
    try:
        table = orc.ORCFile(path).read()
    except (OSError, pyarrow.ArrowException):
        return None
    return [pair for name in table.column_names for pair in flat(name, table.column(name))]


def some(source, n, make):
    """Values with nulls: none, some, in runs, or all."""
    share = source.choice((0, 0, .01, .5, 1))
    length = source.choice((1, 1, 100))
    values = []
    while len(values) < n:
        is_null = source.random() < share
        values += [None if is_null else make() for _ in range(length)]
    return values[:n]


def numbers(source, nbits):
    """A maker of values in runs, counts, small ones and all that the type has."""
    at, step = source.getrandbits(nbits - 1), source.randrange(-3, 4)
    low, high = -1 << nbits - 1, (1 << nbits - 1) - 1
    kind = source.randrange(4)
    state = [at]

    def make():
        if kind == 0:
            return source.randint(low, high)
        if kind == 1:
            return source.randint(-5, 5)
        if kind == 2:
            return at
        state[0] = state[0] + step if low <= state[0] + step <= high else 0
        return state[0]
    return make


def table(source, n):
    columns = {'text': pyarrow.array(['x'] * n)}
    for name, kind, nbits in (('a', pyarrow.int8(), 8), ('b', pyarrow.int16(), 16), ('c', pyarrow.int32(), 32),
                              ('d', pyarrow.int64(), 64), ('e', pyarrow.int64(), 40)):
        columns[name] = pyarrow.array(some(source, n, numbers(source, nbits)), kind)
    columns['t/f'] = pyarrow.array(some(source, n, lambda: source.random() < .3), pyarrow.bool_())
    inner = pyarrow.struct([('y', pyarrow.int32()), ('z', pyarrow.bool_())])
    columns['s'] = pyarrow.array(some(source, n, lambda: {
        'x': source.choice((None, 5, source.getrandbits(30))),
        'deep': source.choice((None, {'y': source.choice((None, 1)), 'z': source.random() < .5}))}),
        pyarrow.struct([('x', pyarrow.int64()), ('deep', inner)]))
    return pyarrow.table(columns)


def write_some(folder):
    """Files by pyarrow; their paths."""
    source = random.Random(5)
    paths = []
    for compression, version in itertools.product(('uncompressed', 'zlib', 'snappy', 'lz4', 'zstd'),
                                                  ('0.11', '0.12')):
        for number, n in enumerate((1, 1000, 30000)):
            path = f'{folder}/{compression}-{version}-{n}.orc'
            # By many batches, of which each ends a stripe that is large enough.
            with orc.ORCWriter(path, compression=compression, file_version=version, stripe_size=4096,
                               batch_size=1000, compression_block_size=1 << 16 + number) as writer:
                whole = table(source, n)
                for at in range(0, n, 5000):
                    writer.write(whole.slice(at, 5000))
            paths.append(path)
    assert orc.ORCFile(paths[2]).nstripes > 3
    return paths


def main():
    wharf, *paths = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        compare_all(wharf, paths or write_some(folder))


def compare_all(wharf, paths):
    n_columns = n_files = n_refused = n_others = 0
    for path in paths:
        wanted = read(path)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([wharf, 'columns', '-q', '-o', folder, path], check=False,
                                  stderr=subprocess.PIPE, text=True)
            if done.returncode == 0 and wanted is not None:
                n_columns += compare(pathlib.Path(folder), wanted, path)
                n_files += 1
            elif wanted == [] or wanted is None or 'which wharf does not have' in done.stderr or \
                    'major version' in done.stderr:
                n_refused += done.returncode != 0
                n_others += done.returncode == 0
            else:
                sys.exit(f'{path}: status {done.returncode}: {done.stderr}')
    print(f'{n_columns} columns of {n_files} files, {n_refused} refused, {n_others} that pyarrow refuses')


main()
