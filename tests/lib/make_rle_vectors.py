#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_rle_vectors.py FOLDER: writes the vectors of rle1, rle2, byterle and boolrle.

Each is named for what is special about it, and verified by rle_model.py: it must decode the good ones
and refuse the bad ones, for the reason that is given here.
"""
import hashlib
import pathlib
import random
import sys
import zlib

import rle_model

FOLDER = pathlib.Path(sys.argv[1])


def write(codec, type_name, name, stream, reason=None, room=None):
    stream = bytes(stream)
    expectation = {}
    if codec in ('rle1', 'rle2'):
        expectation['parameter'] = rle_model.TYPES.index(type_name)
    try:
        values = rle_model.decode(codec, type_name, stream, room)
        assert reason is None, f'{codec} {name} is good'
        output = rle_model.as_bytes(codec, type_name, values)
        expectation |= {'result': 'ok', 'reason': 'none', 'in_nbytes': len(stream),
                        'out_nbytes': len(output), 'crc32': f'{zlib.crc32(output):08x}',
                        'sha256': hashlib.sha256(output).hexdigest()}
    except rle_model.Bad as bad:
        assert bad.args[0] == reason, f'{codec} {name}: {bad}'
        result = 'output_too_small' if reason == 'output_full' else 'bad_data'
        expectation |= {'result': result, 'reason': reason, 'bit_offset': 8 * bad.args[1]}
        if room is not None:
            nbytes = int(type_name[1:]) // 8 if codec in ('rle1', 'rle2') else 1
            expectation['out_avail'] = room * nbytes
    path = FOLDER / codec / ('bad' if reason else 'ok') / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(stream)
    lines = ''.join(f'{key} {value}\n' for key, value in expectation.items())
    path.with_name(name + '.expect').write_text(lines, encoding='ascii')


def varint(number):
    out = []
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return out + [number]


def zigzag(value):
    return 2 * value if value >= 0 else -2 * value - 1


def packed(numbers, width):
    bits = 0
    for number in numbers:
        bits = bits << width | number
    nbits = len(numbers) * width
    return list((bits << -nbits % 8).to_bytes((nbits + 7) // 8, 'big'))


def head(kind, code, count):
    return [kind << 6 | code << 1 | count - 1 >> 8, count - 1 & 255]


def literals(numbers):
    return [256 - len(numbers)] + [byte for number in numbers for byte in varint(number)]


def rle1():
    source = random.Random(1)
    write('rle1', 'i64', 'of-nothing', [])
    write('rle1', 'u8', 'shortest-run', [0, 0, 7])
    write('rle1', 'i64', 'longest-run', [127, 0x80] + varint(zigzag(-5)))
    write('rle1', 'u64', 'run-past-the-largest-number', [5, 1] + varint((1 << 64) - 3))
    write('rle1', 'i64', 'run-past-the-smallest-number', [5, 0xff] + varint(zigzag(2 - (1 << 63))))
    write('rle1', 'u8', 'run-down-to-zero', [253, 4, 3, 2, 7, 0xff, 9])
    for name in rle_model.TYPES:
        low, high = rle_model.type_range(name)
        numbers = [zigzag(v) if low else v for v in (low, high, low + 1, high - 1, high // 2)]
        write('rle1', name, f'ends-of-{name}', literals(numbers))
        low_run = [2, 0xff] + varint(zigzag(low + 4) if low else 4)
        high_run = [2, 1] + varint(zigzag(high - 4) if low else high - 4)
        write('rle1', name, f'runs-to-the-ends-of-{name}', low_run + high_run)
        if name[1:] == '64':
            continue
        beyond = zigzag(high + 1) if low else high + 1
        write('rle1', name, f'literal-over-{name}', [0, 0, 5] + literals([3, 2, beyond, 1]),
              'rle_value')
        write('rle1', name, f'run-over-{name}', [0, 0, 5, 2, 1] +
              varint(zigzag(high - 3) if low else high - 3), 'rle_value')
        write('rle1', name, f'run-under-{name}', [2, 0xff] + varint(zigzag(low + 3) if low else 3),
              'rle_value')
    write('rle1', 'u64', 'varints-of-every-length', literals([1 << 7 * k for k in range(10)]) +
          literals([(1 << 7 * k) - 1 for k in range(1, 10)]))
    write('rle1', 'u32', 'varints-longer-than-need-be', [254, 0x83, 0x80, 0x80, 0x80, 0x80, 0x80,
                                                         0x80, 0x80, 0x80, 0, 0xff, 0])
    write('rle1', 'u8', 'a-hundred-groups', [byte for k in range(50) for byte in
                                            [k, 0, k] + literals([1, 2, k][:1 + k % 3])])
    write('rle1', 'u8', 'literals-of-one-byte', literals([k % 128 for k in range(128)]) * 5)
    mixed = []
    for _ in range(150):
        if source.randrange(2):
            mixed += literals([source.randrange(1 << source.randrange(1, 31))
                               for _ in range(source.randrange(1, 129))])
        else:
            mixed += [source.randrange(128), source.randrange(256)]
            mixed += varint(zigzag(source.randrange(-1 << 30, 1 << 30)))
    write('rle1', 'i64', 'mixed', mixed)
    write('rle1', 'i32', 'mixed-32', mixed)
    write('rle1', 'u8', 'control-byte-alone', [0, 0, 5, 3], 'input_truncated')
    write('rle1', 'u8', 'run-without-its-value', [0, 0, 5, 3, 0], 'input_truncated')
    write('rle1', 'u8', 'value-cut-off', [0, 0, 5, 3, 0, 0x80], 'input_truncated')
    write('rle1', 'u8', 'literals-missing', [0, 0, 5] + literals([1, 2, 3, 4])[:4],
          'input_truncated')
    write('rle1', 'u64', 'varint-of-65-bits', [0, 0, 5, 255] + [0xff] * 9 + [3], 'rle_varint')
    write('rle1', 'u64', 'varint-of-eleven-bytes', [0, 0, 5, 255] + [0x80] * 10 + [0],
          'rle_varint')
    write('rle1', 'u8', 'value-over-in-what-is-cut-off', [0, 0, 5, 253, 0xff, 0x7f],
          'input_truncated')
    write('rle1', 'u16', 'room-for-a-part-of-a-run', [0, 0, 5, 9, 0, 6], 'output_full', 14)
    write('rle1', 'u16', 'room-for-a-part-of-the-literals', [0, 0, 5] + literals([9] * 9),
          'output_full', 11)
    write('rle1', 'u8', 'no-room-and-a-value-over', [9, 1] + varint(300), 'output_full', 5)
    write('rle1', 'u8', 'no-room-and-cut-off', [0, 0, 5, 250, 1, 2, 3, 4, 5], 'input_truncated', 4)


def rle2_direct():
    source = random.Random(2)
    for code, width in enumerate(rle_model.WIDTHS):
        stream = []
        for count in (1, 2, 31, 32, 33, 100, 512):
            numbers = [source.randrange(1 << width) for _ in range(count)]
            stream += head(1, code, count) + packed(numbers, width)
        for name in ('u64', 'i64'):
            write('rle2', name, f'direct-of-{width}-bits-{name}', stream)
        fits = max((name for name in rle_model.TYPES[:4] if int(name[1:]) >= width),
                   key=lambda name: -int(name[1:]))
        write('rle2', fits, f'direct-of-{width}-bits', stream)


def patched(width_code, patch_code, gap_width, base, base_nbytes, offsets, patches):
    """patches: (gap, bits)."""
    width = rle_model.WIDTHS[width_code]
    entry_width = min(w for w in rle_model.WIDTHS if w >= rle_model.WIDTHS[patch_code] + gap_width)
    third = base_nbytes - 1 << 5 | patch_code
    base_bytes = (abs(base) | (base < 0) << 8 * base_nbytes - 1).to_bytes(base_nbytes, 'big')
    entries = [gap << rle_model.WIDTHS[patch_code] | bits for gap, bits in patches]
    return (head(2, width_code, len(offsets)) + [third, gap_width - 1 << 5 | len(patches)] +
            list(base_bytes) + packed(offsets, width) + packed(entries, entry_width))


def rle2_patched():
    source = random.Random(3)
    plain = [source.randrange(16) for _ in range(512)]
    write('rle2', 'i64', 'patched-base', patched(3, 11, 3, -2000, 2, plain[:40], [(2, 77), (5, 9)]))
    write('rle2', 'u64', 'patched-at-both-ends', patched(3, 3, 8, 10, 1, plain,
                                                        [(0, 1), (255, 0), (255, 0), (1, 15)]))
    write('rle2', 'i64', 'patched-31-times', patched(3, 7, 4, 3, 1, plain[:400],
                                                     [(1 + k % 12, k) for k in range(31)]))
    write('rle2', 'i64', 'patches-of-64-bits', patched(3, 30, 8, -1, 8, plain[:20],
                                                       [(3, (1 << 56) - 1), (4, 1 << 55)]))
    write('rle2', 'i64', 'patch-bits-over-the-64th', patched(23, 29, 3, 7, 4, plain[:20],
                                                             [(3, (1 << 48) - 1)]))
    write('rle2', 'u64', 'patch-of-64-bit-offsets', patched(31, 3, 3, 7, 4, plain[:20], [(3, 15)]))
    write('rle2', 'i32', 'patched-with-a-base-of-minus-zero', head(2, 3, 4) + [0x00, 0x21, 0x80] +
          packed([1, 2, 3, 4], 4) + packed([2], 3))
    write('rle2', 'i64', 'no-patches', [0x0a, 1, 1] + patched(3, 3, 3, 5, 1, plain[:9], []),
          'rle_patches')
    write('rle2', 'i64', 'patches-over-64-bits', [0, 1] + patched(3, 30, 8, 5, 1, plain[:9], []) +
          [0] * 40, 'rle_patches')
    wide = patched(3, 3, 3, 5, 1, plain[:9], [(1, 1)])
    wide[2] |= 31
    write('rle2', 'i64', 'patches-of-65-bits', wide + [0] * 40, 'rle_patches')
    write('rle2', 'i64', 'patch-behind-the-run', patched(3, 3, 3, 5, 1, plain[:7], [(3, 1), (4, 1)]),
          'rle_patches')
    write('rle2', 'i64', 'patched-twice', patched(3, 3, 3, 5, 1, plain[:7], [(3, 1), (0, 1)]),
          'rle_patches')
    good = patched(3, 11, 3, -2000, 2, plain[:40], [(2, 77), (5, 9)])
    for nbytes, what in ((1, 'first'), (2, 'second'), (3, 'third'), (4, 'fourth'), (5, 'fifth'),
                         (25, 'offset'), (len(good) - 1, 'last')):
        write('rle2', 'i64', f'patched-base-cut-off-at-the-{what}-byte', [2, 9] + good[:nbytes],
              'input_truncated')
    write('rle2', 'i8', 'patched-value-over-i8', good, 'rle_value')
    write('rle2', 'i16', 'room-for-a-part-of-a-patched-run', good, 'output_full', 39)
    # Whether sums are of the type is seen from the base and the width, if they all are, or else
    # one by one.
    low = [k % 6 for k in range(21)]
    write('rle2', 'u8', 'patched-up-to-the-last-of-u8', patched(3, 3, 3, 250, 2, low[:6], [(0, 0)]))
    write('rle2', 'u8', 'patched-from-a-base-under-u8', patched(3, 3, 3, -9, 1,
                                                               [9 + v for v in low], [(2, 15)]))
    write('rle2', 'i16', 'patched-up-to-the-last-of-i16', patched(3, 7, 3, 32512, 2, [15] * 21,
                                                                 [(3, 15), (4, 14)]))
    write('rle2', 'i16', 'patched-value-over-i16', patched(3, 7, 3, 32512, 2, [15] * 21,
                                                          [(3, 15), (4, 16)]), 'rle_value')
    wider = [source.randrange(1 << 12) for _ in range(33)]
    for name in ('u16', 'i32', 'i64'):
        write('rle2', name, f'patched-of-12-bits-{name}', patched(11, 0, 3, 100, 1, wider, [(7, 1)]))


def delta(code, base, first, steps, is_signed=True):
    width = rle_model.WIDTHS[code]
    return (head(3, code, len(steps) + 2) + varint(zigzag(base) if is_signed else base) +
            varint(zigzag(first)) + packed(steps, width))


def rle2_delta():
    source = random.Random(4)
    for code, width in enumerate(rle_model.WIDTHS):
        if code == 0:
            continue
        steps = [source.randrange(1 << width) for _ in range(source.choice((1, 31, 100, 510)))]
        for first in (9, -9):
            side = 'up' if first > 0 else 'down'
            write('rle2', 'i64', f'delta-of-{width}-bits-{side}', delta(code, 5, first, steps) * 2)
    write('rle2', 'u16', 'delta-of-zero-goes-up', delta(2, 9, 0, [1, 0, 7], False))
    for count in (1, 2, 3, 10, 512):
        fixed = head(3, 0, count) + varint(zigzag(-100)) + varint(zigzag(7))
        write('rle2', 'i64', f'fixed-delta-of-{count}', fixed * 2)
    write('rle2', 'i32', 'delta-of-one-value', head(3, 4, 1) + [8, 6])
    write('rle2', 'i32', 'delta-of-two-values', head(3, 4, 2) + [8, 6])
    write('rle2', 'i64', 'fixed-delta-of-64-bits', head(3, 0, 512) + varint(zigzag(-1 << 63)) +
          varint(zigzag((1 << 63) - 1)))
    write('rle2', 'i8', 'delta-over-i8-in-the-middle', delta(8, 100, 20, [50, 3]), 'rle_value')
    write('rle2', 'u8', 'delta-round-past-64-bits', head(3, 31, 4) + [0] + varint(0) +
          packed([1 << 63, 1 << 63], 64), 'rle_value')
    write('rle2', 'u8', 'fixed-delta-round-past-64-bits', head(3, 0, 5) + [0] +
          varint(zigzag(1 << 62)), 'rle_value')
    write('rle2', 'u8', 'fixed-delta-under-u8', head(3, 0, 5) + [3] + varint(zigzag(-1)),
          'rle_value')
    good = delta(8, 1000, -20, [50, 3, 500])
    for nbytes, what in ((1, 'length'), (2, 'base'), (3, 'base-half'), (4, 'delta'),
                         (len(good) - 1, 'steps')):
        write('rle2', 'i64', f'delta-without-its-{what}', [2, 9] + good[:nbytes],
              'input_truncated')
    write('rle2', 'i64', 'delta-with-a-varint-of-65-bits', [2, 9] + head(3, 0, 9) + [0xff] * 9 +
          [2, 0], 'rle_varint')
    write('rle2', 'i64', 'delta-with-a-second-varint-of-65-bits', [2, 9] + head(3, 0, 9) + [0] +
          [0xff] * 9 + [2], 'rle_varint')
    write('rle2', 'i64', 'room-for-a-part-of-a-delta-run', good * 2, 'output_full', 9)


def rle2():
    write('rle2', 'i64', 'of-nothing', [])
    for nbytes in range(1, 9):
        number = int.from_bytes(bytes(range(0x91, 0x91 + nbytes)), 'big')
        write('rle2', 'i64', f'short-repeat-of-{nbytes}-bytes',
              [nbytes - 1 << 3 | nbytes - 1] + list(number.to_bytes(nbytes, 'big')))
    write('rle2', 'u8', 'short-repeat-with-zeros-in-front', [7 << 3, 0, 0, 0, 0, 0, 0, 0, 200])
    write('rle2', 'u8', 'short-repeats', [byte for k in range(200) for byte in (k % 8, k)])
    rle2_direct()
    rle2_patched()
    rle2_delta()
    write('rle2', 'u64', 'specification-direct', head(1, 15, 4) +
          packed([23713, 43806, 57005, 48879], 16))
    write('rle2', 'i64', 'short-repeat-cut-off', [2, 9, 8, 1], 'input_truncated')
    write('rle2', 'i64', 'direct-without-its-length', [2, 9, 0x42], 'input_truncated')
    write('rle2', 'i64', 'direct-cut-off', [2, 9] + head(1, 8, 9) + [1] * 10, 'input_truncated')
    write('rle2', 'u8', 'short-repeat-over-u8', [2, 9, 8, 1, 0], 'rle_value')
    write('rle2', 'i8', 'short-repeat-under-i8', [2, 9, 8, 1, 1], 'rle_value')
    write('rle2', 'u16', 'direct-over-u16', [2, 9] + head(1, 16, 3) + packed([5, 1 << 16, 5], 17),
          'rle_value')
    write('rle2', 'i16', 'direct-under-i16', [2, 9] + head(1, 16, 3) +
          packed([5, zigzag(-(1 << 15) - 1), 5], 17), 'rle_value')
    write('rle2', 'u32', 'room-for-a-part-of-a-direct-run', [2, 9] + head(1, 3, 100) + [7] * 50,
          'output_full', 104)
    write('rle2', 'u32', 'room-for-a-part-of-a-short-repeat', [2, 9, 3, 8], 'output_full', 10)
    write('rle2', 'u8', 'no-room-and-cut-off', [2, 9] + head(1, 7, 9) + [1] * 8, 'input_truncated',
          5)


def bytes_and_booleans():
    source = random.Random(5)
    mixed = []
    for _ in range(200):
        if source.randrange(2):
            count = source.randrange(1, 129)
            mixed += [256 - count] + [source.randrange(256) for _ in range(count)]
        else:
            mixed += [source.randrange(128), source.choice((0, 255, source.randrange(256)))]
    for codec in ('byterle', 'boolrle'):
        write(codec, 'u8', 'of-nothing', [])
        write(codec, 'u8', 'shortest-run', [0, 0xff])
        write(codec, 'u8', 'longest-run', [127, 0xa5])
        write(codec, 'u8', 'one-literal', [255, 0x80])
        write(codec, 'u8', 'longest-literals', [128] + list(range(128)))
        write(codec, 'u8', 'specification', [0x61, 0, 0xfe, 0x44, 0x45])
        write(codec, 'u8', 'mixed', mixed)
        write(codec, 'u8', 'control-byte-alone', [0, 7, 5], 'input_truncated')
        write(codec, 'u8', 'literals-missing', [0, 7, 253, 1, 2], 'input_truncated')
        scale = 8 if codec == 'boolrle' else 1
        write(codec, 'u8', 'room-for-a-part-of-a-run', [0, 7, 9, 1], 'output_full', 14 * scale)
        write(codec, 'u8', 'room-for-a-part-of-the-literals', [0, 7, 250, 1, 2, 3, 4, 5, 6],
              'output_full', 8 * scale)
        write(codec, 'u8', 'no-room-and-cut-off', [0, 7, 250, 1, 2, 3, 4, 5], 'input_truncated',
              5 * scale)
    write('boolrle', 'u8', 'room-for-seven-values-less-and-a-byte', [0, 7], 'output_full', 16)


rle1()
rle2()
bytes_and_booleans()
