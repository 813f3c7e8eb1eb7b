#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""orc_vectors.py FOLDER OUT: the integer streams of a folder of ORC files, as vectors in OUT.

FOLDER/expected/orc.json holds, for each stream of each file, what the ORC project's own decoder makes
of it.  Each stream becomes a file in OUT, and a table of them, as test_vector.h reads it, goes to
standard output.  Of long streams there is a beginning too, cut where a run begins, for engines that
take long: rle_model.py says what is in it.  Streams in compressions that Python does not bring are
counted on standard error.  FOLDER/orc-rle-unit holds streams with their values beside them.
"""
import hashlib
import json
import pathlib
import sys

import orc_file
import rle_model

FOLDER, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
SHORT_NBYTES = 500


class Table:
    def __init__(self):
        self.n_vectors = 0

    def add(self, name, codec, is_signed, stream, out_nbytes, sha256):
        name = name.replace('/', '.')
        (OUT / name).write_bytes(stream)
        parameter = rle_model.TYPES.index('i64' if is_signed else 'u64')
        print(f'vector {name}\ncodec {codec}\nparameter {parameter}\nresult ok\nreason none\n'
              f'in_nbytes {len(stream)}\nout_nbytes {out_nbytes}\nsha256 {sha256}\n')
        self.n_vectors += 1


def beginning(codec, is_signed, stream):
    """The whole runs of a stream's first bytes, and their values as bytes."""
    reader = rle_model.Reader(stream, is_signed)
    values, end = [], 0
    while end < SHORT_NBYTES:
        values += rle_model.GROUPS[codec](reader)
        end = reader.at
    return stream[:end], rle_model.as_bytes(codec, 'i64', values)


def add_file(table, path, entry):
    """Returns how many streams Python cannot uncompress."""
    wanted = {(s['stripe'], s['kind'], s['col']): s for s in entry['streams'] if 'n' in s}
    try:
        found = {(stripe, kind, column): stream for stripe, kind, column, _, stream
                 in orc_file.File((FOLDER / path).read_bytes()).streams()}
    except NotImplementedError:
        return len(wanted)
    for key, stream in wanted.items():
        data = found[key]
        codec, name = f'rle{stream["rle"]}', f'{path}-{"-".join(map(str, key))}'
        table.add(name, codec, stream['signed'], data, 8 * stream['n'], stream['i64sha256'])
        if len(data) > SHORT_NBYTES:
            short, values = beginning(codec, stream['signed'], data)
            table.add(f'{name}-beginning', codec, stream['signed'], short, len(values),
                      hashlib.sha256(values).hexdigest())
    return 0


def add_units(table):
    for path in sorted(FOLDER.glob('orc-rle-unit/*.rle')):
        values = path.with_suffix('.i64').read_bytes()
        table.add(path.name, 'rle' + path.name[1], '.s.' in path.name, path.read_bytes(),
                  len(values), hashlib.sha256(values).hexdigest())


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    table, n_others = Table(), 0
    with open(FOLDER / 'expected/orc.json', encoding='utf-8') as file:
        entries = json.load(file)
    for path, entry in sorted(entries.items()):
        # Files that are cut off or damaged have no streams to speak of.
        if entry.get('streams') and entry['ok'] and '/corrupt/' not in path:
            n_others += add_file(table, path, entry)
    add_units(table)
    print(f'count {table.n_vectors}')
    print(f'{n_others} streams in compressions that Python does not bring', file=sys.stderr)


main()
