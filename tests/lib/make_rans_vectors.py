#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_rans_vectors.py FOLDER: writes the vectors of rans.

Each is named for what is special about it, made and verified by rans_model.py: it must decode the
good ones and refuse the bad ones, for the reason that is given here.
"""
import hashlib
import pathlib
import random
import sys
import zlib

import rans_model as rans

FOLDER = pathlib.Path(sys.argv[1])


def write(name, stream, reason=None, nbytes=1, room=None, plain=None):
    expectation = {'parameter': nbytes - 1}
    try:
        output = rans.decode(stream, nbytes, room)
        assert reason is None, f'{name} is good'
        assert plain is None or plain == output, f'{name} gives something else'
        expectation |= {'result': 'ok', 'reason': 'none', 'in_nbytes': len(stream),
                        'out_nbytes': len(output), 'crc32': f'{zlib.crc32(output):08x}',
                        'sha256': hashlib.sha256(output).hexdigest()}
    except rans.Bad as bad:
        assert bad.reason == reason, f'{name}: {bad}'
        expectation |= {'result': bad.result, 'reason': reason, 'bit_offset': bad.bit}
        if room is not None:
            expectation['out_avail'] = room
    path = FOLDER / 'rans' / ('bad' if reason else 'ok') / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(stream)
    lines = ''.join(f'{key} {value}\n' for key, value in expectation.items())
    path.with_name(name + '.expect').write_text(lines, encoding='ascii')


def falling(seed, count, rate=0.08, most=255):
    source = random.Random(seed)
    return [min(most, int(source.expovariate(rate))) for _ in range(count)]


def counts_of(symbols, alphabet=None):
    counts = [0] * (alphabet or max(symbols, default=0) + 1)
    for symbol in symbols:
        counts[symbol] += 1
    return counts if symbols else [1] + counts[1:]


class Case:
    """Symbols with a model of their own statistics, coded; parts may be changed before bytes()."""

    def __init__(self, symbols, n=11, nbytes=1, n_splits=1):
        self.symbols, self.n, self.nbytes = symbols, n, nbytes
        self.rows = [rans.even_frequencies(counts_of(symbols), n)]
        self.coded = rans.Coded(symbols, n, self.rows, n_splits=n_splits)
        self.model, self.indexes = None, b''

    def bytes(self):
        return rans.stream(self.coded, self.n, self.nbytes, self.rows, self.indexes, self.model)

    def plain(self):
        return b''.join(s.to_bytes(self.nbytes, 'little') for s in self.symbols)

    def write(self, name, reason=None, room=None):
        write(name, self.bytes(), reason, self.nbytes, room, None if reason else self.plain())


def indexed(seed, n, nbytes, n_distributions, count):
    case = Case(falling(seed, count, 0.02, 256 ** nbytes - 1 if nbytes == 1 else 700), n, nbytes)
    source = random.Random(seed + 1)
    case.indexes = bytes(source.randrange(n_distributions) for _ in case.symbols)
    alphabet = max(case.symbols) + 1
    for d in range(n_distributions):
        mine = [s for s, i in zip(case.symbols, case.indexes) if i == d]
        case.rows[d:d + 1] = [rans.even_frequencies(counts_of(mine or [d % alphabet], alphabet), n)]
    case.coded = rans.Coded(case.symbols, n, case.rows, case.indexes, n_splits=4)
    return case


def good():
    for count in (0, 1, 2, 31, 32, 33, 63, 64, 65):
        Case(falling(count, count)).write(f'of-{count}-symbols')
        Case(falling(count, count, 0.002, 9999), 14, 2).write(f'of-{count}-symbols-of-16-bits')
    for n in range(8, 17):
        Case(falling(n, 3000), n, n_splits=5).write(f'bytes-of-{n}-bits')
        Case(falling(n, 1500, 0.05, 65535), n, 2, 3).write(f'words-of-{n}-bits')
    for m in (2, 3, 16, 60):
        Case(falling(m, 6000), 11, n_splits=m).write(f'splits-{m}')
    Case([7] * 1000).write('one-symbol-alone')
    Case([65535] * 100 + [0] * 50, 16, 2, 2).write('both-ends-of-16-bits')
    Case(([3] * 900 + falling(3, 100)) * 6, 16, n_splits=12).write('stretches-without-words')
    Case([1] * 4096 + [0], 12, n_splits=3).write('nearly-all-the-same')
    source = random.Random(5)
    Case([source.randrange(256) for _ in range(2000)], 8, n_splits=6).write('even-bytes-of-8-bits')
    for n, nbytes, d in ((8, 1, 2), (8, 1, 200), (11, 1, 32), (12, 2, 16), (15, 2, 2)):
        indexed(n, n, nbytes, d, 2500).write(f'indexed-{d}-distributions-of-{n}-bits')
    case = Case(falling(1, 700), 12)
    case.rows[0][case.rows[0].index(max(case.rows[0]))] -= 40
    case.coded = rans.Coded(case.symbols, 12, case.rows)
    case.write('slots-of-nobody')
    case = Case(falling(2, 500))
    case.model = rans.pack_model(case.rows, [17] * -(-len(case.rows[0]) // 32))
    case.write('widths-larger-than-need-be')
    case = Case(falling(4, 3000), n_splits=8)
    case.coded.splits = case.coded.splits[1::3]
    case.write('thinned-by-hand')


def bad_fronts():
    plain = Case(falling(6, 900), n_splits=3)
    stream = plain.bytes()
    for size in range(16):
        if size in (0, 1, 15):
            write(f'header-cut-off-after-{size}', stream[:size], 'input_truncated')
    for name, at, value, reason in (
            ('version-0', 0, 0, 'rans_version'), ('version-2', 0, 2, 'rans_version'),
            ('bits-7', 1, 7, 'rans_header'), ('bits-17', 1, 17, 'rans_header'),
            ('symbols-of-0-bytes', 2, 0, 'rans_header'),
            ('symbols-of-2-bytes-where-1-is-set', 2, 2, 'rans_header'),
            ('symbols-of-3-bytes', 2, 3, 'rans_header'), ('flags', 3, 1, 'rans_header'),
            ('alphabet-of-257-bytes', 7, 1, 'rans_header'),
            ('more-slots-than-allowed', 5, 1, 'rans_header'),
            ('indexes-for-one-distribution', 12, 1, 'rans_header'),
            ('model-larger-than-the-stream', 11, 255, 'input_truncated')):
        write(name, stream[:at] + bytes([value]) + stream[at + 1:], reason)
    write('two-distributions-without-indexes', stream[:4] + b'\1' + stream[5:], 'rans_header')
    write('symbols-of-1-byte-where-2-are-set', stream, 'rans_header', 2)
    plain.write('no-room', 'output_full', 899)
    model = rans.pack_model(plain.rows)
    for name, changed in (('model-of-nothing', b''), ('model-one-byte-short', model[:-1]),
                          ('model-one-byte-long', model + b'\0'),
                          ('model-width-18', bytes([model[0] & 0xe0 | 18]) + model[1:]),
                          ('model-of-zeros', rans.pack_model([[0] * len(plain.rows[0])])),
                          ('model-with-a-slot-too-many', None)):
        if changed is None:
            row = list(plain.rows[0])
            row[0] += 1
            changed = rans.pack_model([row])
        plain.model = changed
        plain.write(name, 'rans_model')
    # Of two faults that which is looked at first.
    stream = plain.bytes()
    write('bad-model-and-body-cut-off', stream[:len(stream) - 1], 'input_truncated')
    write('bad-model-and-symbols-of-another-size', stream, 'rans_header', 2)
    write('body-cut-off-and-symbols-of-another-size', stream[:-1], 'input_truncated', 2)
    plain.write('bad-model-and-no-room', 'rans_model', 899)


def bad_indexes():
    case = indexed(9, 8, 1, 5, 700)
    case.indexes = case.indexes[:-1] + b'\5'
    case.write('index-past-the-last-distribution', 'rans_header')
    case.indexes = case.indexes[:-1]
    case.write('an-index-too-few', 'rans_header')
    case.indexes = case.indexes + b'\0\0'
    case.write('an-index-too-many', 'rans_header')
    splits = case.coded.splits
    splits[1], splits[2] = splits[2], splits[1]
    case.write('an-index-too-many-and-splits-in-the-wrong-order', 'rans_split')
    stream = indexed(9, 8, 1, 5, 700).bytes()
    write('indexes-cut-off', stream[:16 + int.from_bytes(stream[8:12], 'little') + 300],
          'input_truncated')


def bad_bodies():
    def changed(name, reason, change, count=3000, n_splits=6):
        case = Case(falling(8, count), n_splits=n_splits)
        change(case.coded)
        case.write(name, reason)

    def put(target, key, value):
        target[key] = value

    plain = Case(falling(8, 3000), n_splits=6)
    stream, body = plain.bytes(), plain.coded.body()
    body_at = len(stream) - len(body)
    write('states-cut-off', stream[:body_at + 120], 'input_truncated')
    write('fields-cut-off', stream[:body_at + 140], 'input_truncated')
    write('split-states-cut-off', stream[:body_at + 400], 'input_truncated')
    write('half-a-word', stream + b'\0', 'input_truncated')
    states = b'\1\0\0\0' * 32
    core = stream[:body_at]
    write('no-splits-and-not-one', core + states + rans.bytes_of([0, 0, 0]), 'rans_header')
    write('symbols-beyond-the-limit', core + states +
          rans.bytes_of([0b0000_1_11111_111111, 0xffff, 0xffff, 0, 0]), 'rans_header')
    write('symbols-without-words', core + states + rans.bytes_of([0b0000_1_00111_111111, 0xc000]),
          'input_truncated')
    last = len(plain.coded.splits) - 1
    for s in (0, last):
        where = 'first' if s == 0 else 'last'
        for by in (-1, 1):
            side = 'low' if by < 0 else 'high'
            changed(f'cut-too-{side}-in-the-{where}-split', 'rans_split',
                    lambda c, s=s, by=by: put(c.splits[s], 0, c.splits[s][0] + by))
            changed(f'all-starts-too-{side}-in-the-{where}-split', 'rans_split',
                    lambda c, s=s, by=by: put(c.splits[s], 1, [g + by for g in c.splits[s][1]]))
        for lane in (0, 17, 31):
            changed(f'state-of-lane-{lane}-wrong-in-the-{where}-split', 'rans_split',
                    lambda c, s=s, lane=lane: put(c.splits[s][2], lane,
                                                  c.splits[s][2][lane] ^ 0x100))
            changed(f'start-of-lane-{lane}-wrong-in-the-{where}-split', 'rans_split',
                    lambda c, s=s, lane=lane: put(c.splits[s][1], lane, c.splits[s][1][lane] + 1))
    changed('cut-behind-the-words', 'rans_split',
            lambda c: put(c.splits[0], 0, len(c.words)))
    changed('cut-before-the-words', 'rans_split', lambda c: put(c.splits[last], 0, -1))
    changed('cuts-in-the-wrong-order', 'rans_split',
            lambda c: put(c.splits[2], 0, c.splits[1][0]))
    changed('windows-that-overlap', 'rans_split',
            lambda c: put(c.splits[2], 1, [min(g, max(c.splits[1][1])) for g in c.splits[2][1]]))
    changed('windows-in-the-wrong-order', 'rans_split', lambda c: c.splits.reverse())
    changed('window-past-the-last-group', 'rans_split',
            lambda c: put(c.splits[last][1], 5, c.n_groups))
    changed('window-before-the-first-group', 'rans_split',
            lambda c: put(c.splits[0][1], 5, -1))
    changed('one-split-twice', 'rans_split', lambda c: c.splits.insert(0, c.splits[0]))
    for lane in (0, 31):
        changed(f'final-state-of-lane-{lane}-too-small', 'rans_state',
                lambda c, lane=lane: put(c.states, lane, 0xffff), 100, 1)
        changed(f'last-state-of-lane-{lane}-wrong', 'rans_state',
                lambda c, lane=lane: put(c.states, lane, 0x10001), 1 if lane else 0, 1)
    changed('a-word-too-few', 'input_truncated', lambda c: c.words.pop(0), 500, 1)
    changed('a-word-too-many', 'rans_words_left', lambda c: c.words.insert(0, 7), 500, 1)
    changed('words-for-nothing', 'rans_words_left', lambda c: c.words.insert(0, 7), 0, 1)
    for n_splits, name in ((1, 'a-slot-of-nobody'), (9, 'a-slot-of-nobody-among-splits')):
        symbols = falling(1, 4000)
        symbols[2500] = max(symbols) + 1
        case = Case(symbols, 12, n_splits=n_splits)
        case.rows[0].pop()
        case.write(name, 'rans_symbol')


def main():
    good()
    bad_fronts()
    bad_indexes()
    bad_bodies()


if __name__ == '__main__':
    main()
