#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_zstd_vectors.py FOLDER: writes the vectors of zstd.

Each is named for what is special about it.  What good ones decode to is known from how they are made
(zstd_frame.py); bad ones are made bad in one place, and what is wrong there is said here.
"""
import hashlib
import pathlib
import random
import sys
import zlib

import zstd_frame as z

FOLDER = pathlib.Path(sys.argv[1])
BIG = 2 << 20
TEXT = (b'It was the best of times, it was the worst of times, it was the age of wisdom, it was the age '
        b'of foolishness, it was the epoch of belief, it was the epoch of incredulity. ')


def write(kind, name, stream, expectation):
    folder = FOLDER / 'zstd' / kind
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(stream)
    (folder / (name + '.expect')).write_text(
        ''.join(f'{key} {value}\n' for key, value in expectation.items()), encoding='ascii')


def good(name, stream, output):
    output = bytes(output)
    write('ok', name, stream, {
        'result': 'ok', 'reason': 'none', 'in_nbytes': len(stream), 'out_nbytes': len(output),
        'crc32': f'{zlib.crc32(output):08x}', 'sha256': hashlib.sha256(output).hexdigest()})


UNSUPPORTED = {'zstd_version', 'zstd_reserved', 'zstd_window', 'zstd_dictionary'}


def bad(name, stream, reason, at, out_avail=None):
    result = ('unsupported' if reason in UNSUPPORTED else 'bad_checksum' if reason == 'zstd_checksum'
              else 'output_too_small' if reason == 'output_full' else 'bad_data')
    expectation = {'result': result, 'reason': reason, 'bit_offset': 8 * at}
    if out_avail is not None:
        expectation['out_avail'] = out_avail
    write('bad', name, stream, expectation)


# ---- parts --------------------------------------------------------------------------------------

HEAD = z.frame_header(window=0x38)           # 128 KiB, size unknown
END = z.block(z.RAW, b'', True)


def one(body, header=HEAD):
    """A frame of one compressed block."""
    return header + z.block(z.COMPRESSED, body, True)


# Where the parts of such a frame begin.
BLOCK_AT = len(HEAD)
BODY_AT = BLOCK_AT + 3

# A tree for a few letters, and the same with 200 literals in it.
FEW_LENGTHS = [0] * 97 + [1, 2, 3, 4, 5, 5]
FEW = z.weights_for(FEW_LENGTHS)
FEW_BYTES = z.plain_weights_bytes(FEW)
LETTERS = [97, 98, 99, 100, 101, 102]


def letters(count, seed=1):
    rng = random.Random(seed)
    return bytes(rng.choice(LETTERS) for _ in range(count))


def block_output(literals, sequences, before=b'', last=None):
    output = bytearray(before)
    z.execute(output, 0, literals, sequences, last or [1, 4, 8])
    return output


def check_simple():
    good('of-nothing', HEAD + END, b'')
    good('raw', HEAD + z.block(z.RAW, TEXT, True), TEXT)
    good('rle', HEAD + z.block(z.RLE, b'x', True, 70000), b'x' * 70000)
    good('rle-of-nothing', HEAD + z.block(z.RLE, b'x', True, 0), b'')
    good('rle-of-a-whole-block', HEAD + z.block(z.RLE, b'x', True, z.BLOCK_MAX), b'x' * z.BLOCK_MAX)
    good('compressed-block-of-no-bytes', HEAD + z.block(z.COMPRESSED, b'') + END, b'')
    good('empty-blocks-between', HEAD + z.block(z.RAW, b'') + z.block(z.RAW, b'abc') +
         z.block(z.RAW, b'') + z.block(z.RLE, b'd', False, 2) + END, b'abcdd')
    good('two-frames', 2 * (HEAD + z.block(z.RAW, b'abc', True)), b'abcabc')
    good('skippable-alone', z.skippable(b'what nobody reads'), b'')
    good('skippable-around', z.skippable(b'') + HEAD + z.block(z.RAW, b'abc', True) +
         z.skippable(TEXT, 15) + z.skippable(b'x', 3), b'abc')
    good('unused-bit', z.frame_header(window=0, unused=1) + z.block(z.RAW, b'abc', True), b'abc')
    good('dictionary-0', z.frame_header(window=0, dictionary=(0, 4)) + z.block(z.RAW, b'abc', True),
         b'abc')
    good('window-of-128-mib', z.frame_header(window=17 << 3) + z.block(z.RAW, b'abc', True), b'abc')
    good('window-with-eighths', z.frame_header(window=5) + z.block(z.RLE, b'a', True, 1664),
         b'a' * 1664)
    for size in 1, 2, 4, 8:
        text = (TEXT * 2)[:300]
        text = text[:255] if size == 1 else text
        for window in None, 8:
            if size == 1 and window is not None:
                continue
            name = f'content-size-of-{size}-bytes' + ('' if window is None else '-with-a-window')
            good(name, z.frame_header(len(text), size, window) + z.block(z.RAW, text, True), text)
    good('content-size-0', z.frame_header(0, 1) + END, b'')
    for size in 0, 1, 3, 4, 5, 8, 11, 12, 15, 31, 32, 33, 63, 64, 100, len(TEXT):
        good(f'checksum-of-{size}', z.frame_header(window=0, checksum=True) +
             z.block(z.RAW, TEXT[:size], True) + z.checksum(TEXT[:size]), TEXT[:size])
    parts = [TEXT[i:i + 13] for i in range(0, len(TEXT), 13)]
    good('checksum-over-blocks', z.frame_header(len(TEXT), 1, checksum=True) + b''.join(
        z.block(z.RAW, part) for part in parts) + END + z.checksum(TEXT), TEXT)


def check_literals():
    for form in 0, 1, 2, 3:
        good(f'raw-literals-form-{form}', one(z.raw_literals(b'abcdefg', form) + b'\0'), b'abcdefg')
        good(f'rle-literals-form-{form}', one(z.rle_literals(65, 7, form) + b'\0'), b'A' * 7)
    good('literals-of-none', one(z.raw_literals(b'') + b'\0'), b'')
    good('raw-literals-4095', one(z.raw_literals((TEXT * 30)[:4095]) + b'\0'), (TEXT * 30)[:4095])
    good('raw-literals-4096', one(z.raw_literals((TEXT * 30)[:4096]) + b'\0'), (TEXT * 30)[:4096])
    good('rle-literals-of-a-whole-block', one(z.rle_literals(7, z.BLOCK_MAX) + b'\0'),
         b'\7' * z.BLOCK_MAX)
    text = letters(700)
    for form in 0, 1, 2, 3:
        good(f'tree-form-{form}', one(z.coded_literals(text, FEW, FEW_BYTES, form) + b'\0'), text)
    for count in 6, 7, 8, 9, 10, 11, 12, 13, 1023, 1024, 16383, 16384, 100000:
        text = letters(count)
        good(f'tree-{count}-literals', one(z.coded_literals(
            text, FEW, FEW_BYTES, form=1 if count < 600 else None) + b'\0'), text)
    for count in 0, 1, 2, 5:
        text = letters(count)
        good(f'tree-one-stream-{count}-literals',
             one(z.coded_literals(text, FEW, FEW_BYTES, 0) + b'\0'), text)
    two = z.weights_for([0] * 50 + [1, 1])
    text = bytes([50, 51, 51, 50, 51, 50, 50, 50])
    good('tree-of-two', one(z.coded_literals(text, two, z.plain_weights_bytes(two)) + b'\0'), text)
    for most in 11, 12:
        deep = z.weights_for(list(range(1, most + 1)) + [most])
        text = bytes(random.Random(2).randrange(most + 1) for _ in range(900))
        good(f'tree-of-{most}-bits', one(z.coded_literals(
            text, deep, z.plain_weights_bytes(deep)) + b'\0'), text)
        good(f'tree-of-{most}-bits-one-stream', one(z.coded_literals(
            text[:100], deep, z.plain_weights_bytes(deep), 0) + b'\0'), text[:100])
    many = fit([7] * 60 + [0, 0, 6] * 20 + [8] * 20 + [9] * 8)
    text = bytes(random.Random(3).choice([i for i, w in enumerate(many) if w]) for _ in range(3000))
    for log in 5, 6:
        good(f'tree-with-coded-weights-log-{log}', one(z.coded_literals(
            text, many, z.coded_weights_bytes(many, log)) + b'\0'), text)
    good('tree-with-coded-weights-odd', one(z.coded_literals(
        letters(80), FEW, z.coded_weights_bytes(FEW)) + b'\0'), letters(80))
    even = z.weights_for([0] * 96 + FEW_LENGTHS[97:])
    text = bytes(letter - 1 for letter in letters(80))
    good('tree-with-coded-weights-even', one(z.coded_literals(
        text, even, z.coded_weights_bytes(even, 5)) + b'\0'), text)
    a, b, c = letters(90, 4), letters(50, 5), letters(3, 6)
    good('tree-again', HEAD + z.block(z.COMPRESSED, z.coded_literals(a, FEW, FEW_BYTES) + b'\0') +
         z.block(z.RAW, b'raw') +
         z.block(z.COMPRESSED, z.coded_literals(b, FEW, None) + b'\0') +
         z.block(z.COMPRESSED, z.raw_literals(b'xyz') + b'\0') +
         z.block(z.COMPRESSED, z.coded_literals(c, FEW, None, 0) + b'\0', True),
         a + b'raw' + b + b'xyz' + c)


def fit(lengths):
    """Weights of a full code: adds the literals that the lengths leave room for."""
    most = max(lengths)
    left = (1 << most) - sum(1 << most - n for n in lengths if n)
    assert left > 0
    while left:
        n = most - (left.bit_length() - 1)
        lengths = lengths + [n]
        left -= 1 << most - n
    return z.weights_for(lengths)


# ---- sequences ----------------------------------------------------------------------------------

def check_sequences():
    def case(name, sequences, literals=TEXT, **how):
        body = z.raw_literals(literals) + z.sequences_section(sequences, z.Tables(), **how)
        good(name, one(body), block_output(literals, sequences))

    case('one-sequence', [(20, 13, 5)])
    for length in list(range(3, 20)) + [31, 34, 35, 36, 130, 131, 258, 259, 1026, 65538, 65539, 130899]:
        case(f'match-{length}', [(20, 13, length)])
    for distance in list(range(1, 20)) + [31, 32, 33, 63, 64, 65]:
        case(f'distance-{distance}', [(70, distance + 3, 90)])
    for count in 15, 16, 17, 18, 24, 32, 47, 48, 63, 64, 127, 128, 65535, 65536, 100000:
        literals = (TEXT * 1000)[:count + 3]
        case(f'sequence-with-{count}-literals', [(count, 8, 4)], literals)
    for value in 1, 2, 3:
        for count in 0, 1:
            case(f'repeated-offset-{value}-with-{"" if count else "no-"}literals',
                 [(30, 14, 4), (3, 20, 4), (2, 9, 5), (count, value, 4), (1, 1, 3), (0, 1, 3)])
    case('offsets-of-a-frames-beginning', [(20, 1, 3), (1, 2, 4), (1, 3, 5)])
    case('distance-1-is-offset-1-less', [(20, 5, 4), (0, 3, 6)])
    case('literals-end-with-the-sequences', [(len(TEXT), 4, 4)])
    case('no-literals-at-all-after-the-first', [(1, 4, 3)] + [(0, 2, 3), (0, 1, 3)] * 5)
    many = [(random.Random(i).randrange(3), 4 + random.Random(i).randrange(5), 3 + i % 40)
            for i in range(127)]
    many[0] = (9, 4, 3)
    case('127-sequences', many, TEXT * 2)
    for count in 128, 129, 5000, 0x7eff, 0x7f00, 0x7f01, 40000:
        rng = random.Random(count)
        case(f'{count}-sequences', [(3, 4, 3)] + [(0, rng.choice((1, 2, 4, 5)), 3)
                                                  for _ in range(count - 1)], TEXT)
    mixed = [(4, 4 + i % 4, 3 + i % 7) for i in range(30)]
    for kind, what in enumerate(('literal-lengths', 'offsets', 'match-lengths')):
        for log in range(5, z.MOST_LOGS[kind] + 1):
            modes, logs = [z.USUAL] * 3, [6, 5, 6]
            modes[kind], logs[kind] = z.DESCRIBED, log
            case(f'{what}-of-{1 << log}-states', mixed, TEXT * 2, modes=modes, logs=logs,
                 rng=random.Random(log))
        modes = [z.USUAL] * 3
        modes[kind] = z.ONE
        case(f'one-of-{what}', [(4, 5, 3)] * 30, TEXT * 2, modes=modes)
    case('one-of-all', [(4, 5, 3)] * 30, TEXT, modes=[z.ONE] * 3)
    case('all-described', mixed, TEXT * 2, modes=[z.DESCRIBED] * 3, logs=z.MOST_LOGS)
    tables, last, output = z.Tables(), [1, 4, 8], bytearray()
    stream = HEAD
    for i, modes in enumerate(([z.DESCRIBED] * 3, [z.AGAIN] * 3, [z.USUAL, z.AGAIN, z.ONE],
                               [z.AGAIN] * 3, [z.ONE, z.USUAL, z.AGAIN], [z.AGAIN] * 3)):
        sequences = [(4, 5, 3)] * 9 if i else mixed
        z.execute(output, 0, TEXT * 2, sequences, last)
        stream += z.block(z.COMPRESSED, z.raw_literals(TEXT * 2) +
                          z.sequences_section(sequences, tables, modes), i == 5)
    good('tables-again', stream, output)
    check_offsets_over_blocks()
    check_far_match()
    check_window()


def check_offsets_over_blocks():
    tables, last, output = z.Tables(), [1, 4, 8], bytearray()
    stream = HEAD
    for i, sequences in enumerate(([(9, 8, 4), (2, 9, 4)], [(0, 3, 4), (1, 1, 3)], [], [(0, 2, 3)])):
        z.execute(output, 0, TEXT[:11], sequences, last)
        stream += z.block(z.COMPRESSED, z.raw_literals(TEXT[:11]) +
                          z.sequences_section(sequences, tables), i == 3)
    good('offsets-over-blocks', stream, output)
    second = HEAD + z.block(z.COMPRESSED, z.raw_literals(TEXT[:11]) + z.sequences_section(
        [(9, 1, 4), (1, 2, 3)], z.Tables()), True)
    good('offsets-begin-again-with-a-frame', stream + second,
         output + block_output(TEXT[:11], [(9, 1, 4), (1, 2, 3)]))


def check_far_match():
    """A match from 2 MiB before, of which most is runs."""
    output = bytearray(TEXT)
    stream = z.frame_header(window=12 << 3) + z.block(z.RAW, TEXT)
    for i in range(16):
        stream += z.block(z.RLE, bytes([i]), False, z.BLOCK_MAX)
        output += bytes([i]) * z.BLOCK_MAX
    sequences = [(2, len(output) + 2 + 3, 100), (1, 3 + 90, 70)]
    stream += z.block(z.COMPRESSED, z.raw_literals(b'abcdef') + z.sequences_section(
        sequences, z.Tables(), modes=[z.USUAL, z.DESCRIBED, z.USUAL], logs=[6, 5, 6]), True)
    z.execute(output, 0, b'abcdef', sequences, [1, 4, 8])
    good('distance-of-2-mib', stream, output)


def window_frame(distance):
    """A frame with a window of 1 KiB and twice as much output, and then a match from `distance`
    before: the stream, where its sequences' bits are, and the output."""
    first = (TEXT * (2048 // len(TEXT) + 1))[:2048]
    stream = z.frame_header(window=0) + z.block(z.RAW, first[:1024]) + z.block(z.RAW, first[1024:])
    literals = z.raw_literals(b'abc')
    at = len(stream) + 3 + len(literals) + 2
    stream += z.block(z.COMPRESSED, literals + z.sequences_section([(3, distance + 3, 5)], z.Tables()), True)
    output = bytearray(first)
    z.execute(output, 0, b'abc', [(3, distance + 3, 5)], [1, 4, 8])
    return stream, at, output


def check_window():
    for distance in 1023, 1024:
        stream, _, output = window_frame(distance)
        good(f'distance-of-{distance}-in-a-window-of-1-kib', stream, output)
    for distance in 1025, 2051:
        stream, at, _ = window_frame(distance)
        bad(f'distance-of-{distance}-in-a-window-of-1-kib', stream, 'zstd_offset', at)


# ---- bad ones -----------------------------------------------------------------------------------

def check_bad_frames():
    good_frame = HEAD + z.block(z.RAW, b'abc', True)
    bad('nothing', b'', 'input_truncated', 0)
    for count in 1, 2, 3, 4, 5:
        bad(f'frame-header-cut-to-{count}', good_frame[:count], 'input_truncated', 0)
    bad('skippable-header-cut', z.skippable(b'')[:7], 'input_truncated', 0)
    bad('skippable-cut', z.skippable(TEXT)[:-1], 'input_truncated', 0)
    bad('magic', b'abcd' + good_frame[4:], 'zstd_magic', 0)
    bad('magic-cut', b'(\xb5x', 'zstd_magic', 0)
    bad('magic-behind', good_frame + b'x', 'zstd_magic', len(good_frame))
    bad('zeros-behind', good_frame + bytes(9), 'zstd_magic', len(good_frame))
    for version in range(2, 8):
        bad(f'format-0-{version}', bytes([0x20 + version, 0xb5, 0x2f, 0xfd]) + good_frame[4:],
            'zstd_version', 0)
    bad('format-0-1', b'\xfd\x2f\xb5\x1e' + good_frame[4:], 'zstd_version', 0)
    bad('reserved-bit', z.frame_header(window=0, reserved=1) + good_frame[6:], 'zstd_reserved', 0)
    bad('window-over-128-mib', z.frame_header(window=(17 << 3) + 1) + END, 'zstd_window', 0)
    bad('window-largest', z.frame_header(window=255) + END, 'zstd_window', 0)
    bad('single-segment-over-128-mib', z.frame_header((1 << 27) + 1, 4) + END, 'zstd_window', 0)
    bad('content-size-largest', z.frame_header((1 << 64) - 1, 8) + END, 'zstd_window', 0)
    for size in 1, 2, 4:
        bad(f'dictionary-number-of-{size}-bytes', z.frame_header(window=0, dictionary=(7, size)) + END,
            'zstd_dictionary', 0)
    bad('second-frames-header', good_frame + z.frame_header(window=0, reserved=1) + END,
        'zstd_reserved', len(good_frame))
    bad('content-size-more', z.frame_header(9, 1) + z.block(z.RAW, b'abc', True), 'zstd_content_size', 0)
    bad('content-size-less', z.frame_header(5, 1) + z.block(z.RAW, b'abc') +
        z.block(z.RAW, b'def', True), 'zstd_content_size', 0)
    bad('content-size-less-by-rle', z.frame_header(5, 4, window=0) + z.block(z.RLE, b'a', True, 6),
        'zstd_content_size', 0)
    bad('content-size-less-by-literals', z.frame_header(260, 2, window=0) +
        z.block(z.RLE, b'a', False, 255) + z.block(z.COMPRESSED, z.raw_literals(b'abcdef') + b'\0', True),
        'zstd_content_size', 0)
    bad('content-size-less-by-a-match', z.frame_header(260, 2, window=0) + z.block(
        z.RLE, b'a', False, 255) + z.block(z.COMPRESSED, z.raw_literals(b'ab') + z.sequences_section(
            [(1, 4, 4)], z.Tables()), True), 'zstd_content_size', 0)
    bad('content-size-more-and-last-block-empty', z.frame_header(9, 1) + z.block(z.RAW, b'abc') + END,
        'zstd_content_size', 0)
    with_checksum = z.frame_header(window=0, checksum=True) + z.block(z.RAW, b'abc', True)
    bad('checksum', with_checksum + z.checksum(b'abd'), 'zstd_checksum', len(with_checksum))
    bad('checksum-cut', with_checksum + z.checksum(b'abc')[:3], 'input_truncated', len(with_checksum))


def check_bad_blocks():
    bad('block-missing', HEAD, 'input_truncated', BLOCK_AT)
    bad('block-header-cut', HEAD + END[:2], 'input_truncated', BLOCK_AT)
    bad('second-block-missing', HEAD + z.block(z.RAW, b'abc'), 'input_truncated', BLOCK_AT + 6)
    bad('block-type-3', HEAD + z.block(3, b'abc', True), 'zstd_block', BLOCK_AT)
    bad('raw-block-cut', (HEAD + z.block(z.RAW, b'abc', True))[:-1], 'input_truncated', BLOCK_AT)
    bad('rle-block-cut', HEAD + z.block(z.RLE, b'', True, 5), 'input_truncated', BLOCK_AT)
    bad('compressed-block-cut', HEAD + z.block(z.COMPRESSED, bytes(9), True, 10), 'input_truncated',
        BLOCK_AT)
    small = z.frame_header(window=0)
    for kind, name in (z.RAW, 'raw'), (z.COMPRESSED, 'compressed'):
        bad(f'{name}-block-over-the-window', small + z.block(kind, bytes(1025), True), 'zstd_block', 6)
    bad('rle-block-over-the-window', small + z.block(z.RLE, b'x', True, 1025), 'zstd_block', 6)
    bad('rle-block-over-128-kib', HEAD + z.block(z.RLE, b'x', True, z.BLOCK_MAX + 1), 'zstd_block',
        BLOCK_AT)
    bad('rle-block-of-a-frame-of-nothing', z.frame_header(0, 1) + z.block(z.RLE, b'x', True, 0),
        'zstd_block', 6)
    bad('literals-over-the-window', small + z.block(z.COMPRESSED, z.rle_literals(1, 1025) + b'\0', True),
        'zstd_block_size', 9)
    bad('match-over-the-window', small + z.block(z.COMPRESSED, z.raw_literals(TEXT[:3]) +
                                                 z.sequences_section([(2, 4, 1022)], z.Tables()), True),
        'zstd_block_size', 9 + 4 + 2)
    body = z.raw_literals(TEXT[:8]) + z.sequences_section([(4, 4, 10)], z.Tables())
    bad('no-room-for-a-match', one(body), 'output_full', BODY_AT + 9 + 2, 17)
    bad('no-room-for-literals', one(body), 'output_full', BODY_AT, 7)
    bad('no-room-for-raw', HEAD + z.block(z.RAW, b'abc', True), 'output_full', BLOCK_AT, 2)
    bad('no-room-for-rle', HEAD + z.block(z.RLE, b'a', True, 9), 'output_full', BLOCK_AT, 8)


def check_bad_literals():
    def case(name, body, reason, at=0):
        bad(name, one(body), reason, BODY_AT + at)

    case('raw-literals-header-cut', b'\x04', 'zstd_literals')
    case('long-raw-literals-header-cut', b'\x0c\x00', 'zstd_literals')
    case('raw-literals-cut', z.raw_literals(b'abc')[:-1], 'zstd_literals')
    case('rle-literal-missing', z.rle_literals(0, 3)[:1], 'zstd_literals')
    case('tree-section-of-4-bytes', bytes([z.TREE, 0, 0, 0]), 'zstd_literals')
    text = letters(40)
    section = z.coded_literals(text, FEW, FEW_BYTES)
    case('tree-section-cut', section[:-1], 'zstd_literals')
    case('five-literals-in-four-streams',
         z.literals_header(z.TREE, 5, 20, 1) + bytes(20) + b'\0', 'zstd_literals')
    case('no-tree-to-go-on-with', z.coded_literals(text, FEW, None) + b'\0', 'zstd_tree')
    head = 3

    def tree(name, description, at=head):
        body = description + b'\x01' * 12
        case(name, z.literals_header(z.TREE, 4, len(body), 0) + body + b'\0', 'zstd_tree', at)

    tree('tree-cut', b'\x20' + bytes(3))
    tree('tree-plain-cut', b'\xff' + bytes(3))
    tree('tree-without-weights', bytes([131, 0, 0]))
    tree('tree-no-power-of-two', bytes([130, 0x34, 0x10]))
    tree('tree-with-weight-13', bytes([129, 0xd1]))
    tree('tree-of-13-bits', bytes([139, 0xcb, 0xa9, 0x87, 0x65, 0x43, 0x2c]))
    tree('tree-without-the-longest', bytes([129, 0x22]))
    tree('tree-of-no-coded-bytes', b'\x00')
    tree('tree-coded-with-too-many-states', b'\x05\x02' + bytes(4))
    coded = z.coded_weights_bytes(FEW)
    tree('tree-coded-without-last-bit', bytes([coded[0]]) + coded[1:-1] + b'\x00')
    tree('tree-coded-with-bits-for-one-state',
         bytes([len(z.counts_bytes(6, z.counts_for(FEW[:-1], 6))) + 1]) +
         z.counts_bytes(6, z.counts_for(FEW[:-1], 6)) + b'\x7f')
    body = FEW_BYTES
    case('nothing-behind-the-tree', z.literals_header(z.TREE, 4, len(body), 0) + body + b'\0',
         'zstd_tree', head)
    at = head + len(FEW_BYTES)

    def four(name, streams, stands, size=40):
        case(name, z.coded_literals(text[:size], FEW, FEW_BYTES, 1, streams) + b'\0', 'zstd_streams',
             at + stands)

    codes = z.codes_for(FEW)
    parts = [z.stream_bytes(text[i:i + 10], codes) for i in range(0, 40, 10)]

    def joined(parts, sizes=None):
        sizes = sizes or [len(part) for part in parts]
        return b''.join(z.number_bytes(size, 2) for size in sizes[:3]) + b''.join(parts)

    four('jump-table-cut', bytes(5), 0)
    four('streams-past-the-section', joined(parts, [len(p) for p in parts[:2]] + [200, 0]), 0)
    for i in range(4):
        before = 6 + sum(len(part) for part in parts[:i])
        four(f'stream-{i + 1}-empty', joined(parts[:i] + [b''] + parts[i + 1:]), before)
        four(f'stream-{i + 1}-without-last-bit', joined(parts[:i] + [b'\0'] + parts[i + 1:]), before)
        longer = z.stream_bytes(text[10 * i:10 * i + 10] + b'a', codes)
        four(f'stream-{i + 1}-with-a-bit-left', joined(parts[:i] + [longer] + parts[i + 1:]), before)
        shorter = z.stream_bytes(text[10 * i:10 * i + 9], codes)
        four(f'stream-{i + 1}-too-short', joined(parts[:i] + [shorter] + parts[i + 1:]), before)
    one_stream = z.stream_bytes(b'abcd', codes)
    case('one-stream-with-bits-left', z.coded_literals(
        b'abc', FEW, FEW_BYTES, 0, one_stream) + b'\0', 'zstd_streams', at)
    case('one-stream-too-short', z.coded_literals(
        b'abcde', FEW, FEW_BYTES, 0, one_stream) + b'\0', 'zstd_streams', at)


def check_bad_sequences():
    literals = z.raw_literals(TEXT)
    at = len(literals)

    def case(name, section, reason, where=0):
        bad(name, one(literals + section), reason, BODY_AT + at + where)

    case('sequences-missing', b'', 'zstd_sequences_header')
    case('sequences-number-cut', b'\x80', 'zstd_sequences_header')
    case('sequences-long-number-cut', b'\xff\x00', 'zstd_sequences_header')
    case('bytes-behind-no-sequences', b'\x00\x00', 'zstd_sequences_header')
    case('bytes-behind-no-sequences-in-two-bytes', b'\x80\x00\x00', 'zstd_sequences_header')
    case('modes-missing', b'\x01', 'zstd_sequences_header')
    for bit in 0, 1:
        case(f'modes-reserved-bit-{bit}', bytes([1, 1 << bit, 1, 1]), 'zstd_sequences_header')
    for kind, (name, symbols) in enumerate((('literal-length', 36), ('offset', 32),
                                            ('match-length', 53))):
        mode = lambda which, kind=kind: bytes([1, which << 6 - 2 * kind])
        case(f'one-{name}-missing', mode(z.ONE), 'zstd_table', 2)
        case(f'one-{name}-too-large', mode(z.ONE) + bytes([symbols, 1]), 'zstd_table', 2)
        case(f'no-{name}-table-to-go-on-with', mode(z.AGAIN) + b'\x01', 'zstd_table', 2)
        case(f'{name}-table-missing', mode(z.DESCRIBED), 'zstd_table', 2)
        case(f'{name}-table-cut', mode(z.DESCRIBED) + z.counts_bytes(*z.USUAL_COUNTS[kind])[:-1],
             'zstd_table', 2)
        case(f'{name}-table-of-too-many-states', mode(z.DESCRIBED) + bytes([z.MOST_LOGS[kind] - 4]) +
             bytes(30), 'zstd_table', 2)
        case(f'{name}-table-with-too-many-symbols',
             mode(z.DESCRIBED) + z.counts_bytes(6 if kind != 1 else 7, [1] * symbols +
                                                [(1 << (6 if kind != 1 else 7)) - symbols]),
             'zstd_table', 2)
    section = z.sequences_section([(20, 13, 5)], z.Tables())
    case('sequences-without-bits', section[:2], 'zstd_sequences', 2)
    case('sequences-without-last-bit', section[:-1] + b'\0', 'zstd_sequences', 2)
    case('sequences-with-too-few-bits-for-states', section[:2] + b'\x7f', 'zstd_sequences', 2)
    case('sequences-with-a-bit-left', z.sequences_section([(20, 13, 5)], z.Tables(), extra_bits=1),
         'zstd_sequences', 2)
    case('sequences-with-a-byte-left', z.sequences_section([(20, 13, 5)], z.Tables(), extra_bits=8),
         'zstd_sequences', 2)
    two = z.sequences_section([(20, 13, 5), (9, 30, 40)], z.Tables())
    case('sequences-more-than-their-bits', b'\x03' + two[1:], 'zstd_sequences', 2)
    case('sequences-fewer-than-their-bits', b'\x01' + two[1:], 'zstd_sequences', 2)
    size = len(TEXT)
    case('more-literals-than-there-are', z.sequences_section([(size + 1, 4, 3)], z.Tables()),
         'zstd_sequence_literals', 2)
    case('more-literals-than-are-left', z.sequences_section(
        [(size - 3, 4, 3), (4, 4, 3)], z.Tables()), 'zstd_sequence_literals', 2)
    case('distance-to-before-the-frame', z.sequences_section([(20, 21 + 3, 3)], z.Tables()),
         'zstd_offset', 2)
    case('distance-from-nothing', z.sequences_section([(0, 4, 3)], z.Tables()), 'zstd_offset', 2)
    case('distance-0', z.sequences_section([(20, 4, 3), (0, 3, 3)], z.Tables()), 'zstd_offset', 2)
    case('distance-of-4-gib', z.sequences_section(
        [(20, (1 << 32) - 1, 3)], z.Tables(), modes=[0, z.ONE, 0]), 'zstd_offset', 3)
    many = [(1, 4, 3)] * 100
    for i in 50, 99:
        late = many[:i] + [(1, 4 + 5000, 3)] + many[i + 1:]
        case(f'distance-too-far-in-sequence-{i}', z.sequences_section(late, z.Tables()),
             'zstd_offset', 2)
        late = many[:i] + [(500, 4, 3)] + many[i + 1:]
        case(f'too-many-literals-in-sequence-{i}', z.sequences_section(late, z.Tables()),
             'zstd_sequence_literals', 2)
    stream = HEAD + z.block(z.RAW, TEXT, True)
    second = HEAD + z.block(z.COMPRESSED, z.raw_literals(b'abc') + z.sequences_section(
        [(3, 4 + 3, 3)], z.Tables()), True)
    bad('distance-to-the-frame-before', stream + second, 'zstd_offset', len(stream) + BODY_AT + 4 + 2)
    bad('tables-of-the-frame-before', one(literals + section) + one(
        literals + bytes([1, 0xfc, 1])), 'zstd_table', len(one(literals + section)) + BODY_AT + at + 2)


def main():
    check_simple()
    check_literals()
    check_sequences()
    check_bad_frames()
    check_bad_blocks()
    check_bad_literals()
    check_bad_sequences()


if __name__ == '__main__':
    main()
