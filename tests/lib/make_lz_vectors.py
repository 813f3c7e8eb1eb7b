#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_lz_vectors.py FOLDER: writes the vectors of lz4 and snappy.

Each is named for what is special about it, and verified by the two small decoders here, the third
ones: they must decode the good ones and refuse the bad ones, for the reason that is given.
"""
import hashlib
import pathlib
import random
import sys
import zlib

FOLDER = pathlib.Path(sys.argv[1])
BIG = 2 << 20


class Bad(Exception):
    """Reason, and the byte where it stands."""


class Reader:
    def __init__(self, stream):
        self.stream, self.at, self.start = stream, 0, 0

    def bytes(self, count):
        if count > len(self.stream) - self.at:
            raise Bad('input_truncated', self.start)
        self.at += count
        return self.stream[self.at - count:self.at]

    def number(self, count):
        return int.from_bytes(self.bytes(count), 'little')


def repeat(output, distance, length):
    for _ in range(length):
        output.append(output[-distance])


def decode_lz4(stream, room):
    reader, output, match = Reader(stream), bytearray(), None

    def length_of(nibble):
        length = byte = nibble
        if nibble == 15:
            byte = 255
        while byte == 255:
            byte = reader.number(1)
            length += byte
        return length if nibble == 15 else nibble

    def need(length):
        if length > room - len(output):
            raise Bad('output_full', reader.start)

    while True:
        reader.start = reader.at
        token = reader.number(1)
        count = length_of(token >> 4)
        literals = reader.bytes(count)
        need(count)
        output += literals
        if reader.at == len(stream):
            if match is not None and (count < 5 or len(output) - match < 12):
                raise Bad('lz4_end', reader.start)
            return bytes(output), reader.at
        distance = reader.number(2)
        if not 1 <= distance <= len(output):
            raise Bad('lz4_offset', reader.start)
        length = length_of(token & 15) + 4
        need(length)
        match = len(output)
        repeat(output, distance, length)


def decode_snappy(stream, room):
    reader, output, size, shift = Reader(stream), bytearray(), 0, 0
    while True:
        byte = reader.number(1)
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
        if shift == 35:
            raise Bad('snappy_length', 0)
    if size >> 32:
        raise Bad('snappy_length', 0)
    if size > room:
        raise Bad('output_full', 0)
    while len(output) < size:
        reader.start = reader.at
        tag = reader.number(1)
        if tag & 3 == 0:
            length = (tag >> 2) + 1 if tag >> 2 < 60 else reader.number((tag >> 2) - 59) + 1
            if length > size - len(output):
                raise Bad('snappy_past_end', reader.start)
            output += reader.bytes(length)
            continue
        if tag & 3 == 1:
            length, distance = 4 + (tag >> 2 & 7), reader.number(1) | tag >> 5 << 8
        else:
            length, distance = 1 + (tag >> 2), reader.number(2 if tag & 3 == 2 else 4)
        if not 1 <= distance <= len(output):
            raise Bad('snappy_offset', reader.start)
        if length > size - len(output):
            raise Bad('snappy_past_end', reader.start)
        repeat(output, distance, length)
    return bytes(output), reader.at


def write(codec, name, stream, reason=None, room=None):
    decode = {'lz4': decode_lz4, 'snappy': decode_snappy}[codec]
    stream = bytes(stream)
    expectation = {}
    try:
        output, taken = decode(stream, BIG if room is None else room)
        assert reason is None, f'{codec} {name} is good'
        expectation |= {'result': 'ok', 'reason': 'none', 'in_nbytes': taken,
                        'out_nbytes': len(output), 'crc32': f'{zlib.crc32(output):08x}',
                        'sha256': hashlib.sha256(output).hexdigest()}
    except Bad as bad:
        assert bad.args[0] == reason, f'{codec} {name}: {bad}'
        result = 'output_too_small' if reason == 'output_full' else 'bad_data'
        expectation |= {'result': result, 'reason': reason, 'bit_offset': 8 * bad.args[1]}
        if room is not None:
            expectation['out_avail'] = room
    path = FOLDER / codec / ('bad' if reason else 'ok') / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(stream)
    lines = ''.join(f'{key} {value}\n' for key, value in expectation.items())
    path.with_name(name + '.expect').write_text(lines, encoding='ascii')


# ---- lz4 -----------------------------------------------------------------------------------------

def more(length):
    """The length bytes behind a nibble of 15."""
    return [] if length < 15 else [255] * ((length - 15) // 255) + [(length - 15) % 255]


def sequence(literals, distance=None, length=4):
    literals = list(literals)
    low = 0 if distance is None else min(length - 4, 15)
    out = [min(len(literals), 15) << 4 | low] + more(len(literals)) + literals
    if distance is not None:
        out += list(distance.to_bytes(2, 'little')) + more(length - 4)
    return out


END = sequence(b'the end of it')


def lz4():
    source = random.Random(1)
    letters = bytes(source.choice(b'abcdefgh') for _ in range(70000))
    write('lz4', 'of-nothing', [0])
    write('lz4', 'one-literal', sequence(b'a'))
    for count in (14, 15, 16, 31, 32, 33, 269, 270, 271, 600, 5000):
        write('lz4', f'literals-{count}', sequence(letters[:count]))
    for distance in list(range(1, 20)) + [31, 32, 33, 64, 1000, 65535]:
        write('lz4', f'distance-{distance}', sequence(letters[:distance], distance, 100) + END)
    for length in (4, 5, 8, 15, 16, 17, 18, 19, 20, 32, 33, 273, 274, 275, 2000, 70000):
        write('lz4', f'match-{length}', sequence(b'0123456789', 10, length) + END)
        write('lz4', f'match-{length}-of-one-byte', sequence(b'x', 1, length) + END)
    write('lz4', 'no-literals-between', sequence(b'abcdef', 6) + sequence(b'', 3, 7) * 50 + END)
    mixed, size = sequence(letters[:40], 33, 60), 100
    for _ in range(600):
        count, length = source.randrange(20), source.randrange(4, 40)
        size += count
        mixed += sequence(letters[size:size + count], source.randrange(1, min(size, 65535) + 1),
                          length)
        size += length
    write('lz4', 'mixed', mixed + END)
    write('lz4', 'last-match-12-before-the-end', sequence(b'abc', 3, 7) + sequence(b'12345'))
    write('lz4', 'last-literals-5', sequence(b'abc', 3, 50) + sequence(b'12345'))

    write('lz4', 'nothing', [], 'input_truncated')
    write('lz4', 'token-missing', sequence(b'abc', 3), 'input_truncated')
    write('lz4', 'literal-length-missing', [0xf0], 'input_truncated')
    write('lz4', 'literal-length-goes-on', [0xf0] + [255] * 40, 'input_truncated')
    write('lz4', 'literals-missing', sequence(b'abcdef')[:-1], 'input_truncated')
    write('lz4', 'long-literals-missing', sequence(letters[:600])[:-1], 'input_truncated')
    write('lz4', 'offset-missing', sequence(b'abc', 3)[:-1], 'input_truncated')
    write('lz4', 'match-length-missing', sequence(b'abc', 3, 300)[:-1], 'input_truncated')
    write('lz4', 'match-length-goes-on', [0x1f, 97, 1, 0] + [255] * 1000, 'input_truncated')
    write('lz4', 'offset-0', sequence(b'abc', 0) + END, 'lz4_offset')
    write('lz4', 'offset-before-the-start', sequence(b'abc', 4) + END, 'lz4_offset')
    write('lz4', 'offset-before-any-output', sequence(b'', 1) + END, 'lz4_offset')
    write('lz4', 'offset-65535-too-far', sequence(letters[:300], 65535) + END, 'lz4_offset')
    write('lz4', 'last-literals-4', sequence(b'abc', 3, 50) + sequence(b'1234'), 'lz4_end')
    write('lz4', 'last-literals-0', sequence(b'abc', 3, 50) + [0], 'lz4_end')
    write('lz4', 'last-match-11-before-the-end', sequence(b'abc', 3, 6) + sequence(b'12345'),
          'lz4_end')
    write('lz4', 'room-for-a-part-of-the-literals', sequence(b'abcdefgh'), 'output_full', 7)
    write('lz4', 'room-for-a-part-of-long-literals', sequence(letters[:600]), 'output_full', 599)
    write('lz4', 'room-for-a-part-of-a-match', sequence(b'abc', 3, 9) + END, 'output_full', 11)
    write('lz4', 'room-for-a-part-of-a-long-match', sequence(b'abc', 3, 900) + END, 'output_full',
          902)
    write('lz4', 'no-room-and-cut-off', sequence(b'abcdefgh')[:-1], 'input_truncated', 3)
    write('lz4', 'no-room-and-offset-0', sequence(b'abc', 0, 90) + END, 'lz4_offset', 4)
    write('lz4', 'length-over-32-bits', [0x1f, 97, 1, 0] + [255] * (1 << 15) + [0] + END,
          'output_full')


# ---- snappy --------------------------------------------------------------------------------------

def varint(number):
    out = []
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return out + [number]


def literals(data, n_bytes=None):
    data, last = list(data), len(data) - 1
    if n_bytes is None:
        n_bytes = 0 if last < 60 else (last.bit_length() + 7) // 8
    head = [last << 2] if n_bytes == 0 else [59 + n_bytes << 2] + list(
        last.to_bytes(n_bytes, 'little'))
    return head + data


def near(distance, length):
    return [distance >> 8 << 5 | length - 4 << 2 | 1, distance & 255]


def match(distance, length, n_bytes=2):
    return [length - 1 << 2 | (2 if n_bytes == 2 else 3)] + list(distance.to_bytes(n_bytes,
                                                                                   'little'))


def snappy():
    source = random.Random(2)
    letters = bytes(source.choice(b'abcdefgh') for _ in range(70000))

    def stream(size, *parts):
        return varint(size) + [byte for part in parts for byte in part]

    write('snappy', 'of-nothing', [0])
    write('snappy', 'of-nothing-with-bytes-behind', [0, 1, 2, 3])
    write('snappy', 'one-literal', stream(1, literals(b'a')))
    for count in (59, 60, 61, 62, 256, 257, 65536, 65537):
        write('snappy', f'literals-{count}', stream(count, literals(letters[:count])))
    for n_bytes in (1, 2, 3, 4):
        write('snappy', f'literal-length-of-{n_bytes}-bytes',
              stream(7, literals(b'7 bytes', n_bytes)))
    for distance in list(range(1, 20)) + [31, 32, 33, 64, 1000, 2047]:
        write('snappy', f'near-distance-{distance}', stream(
            distance + 11, literals(letters[:distance]), near(distance, 11)))
    for distance in (1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 2048, 65535):
        write('snappy', f'distance-{distance}', stream(
            distance + 64, literals(letters[:distance]), match(distance, 64)))
    write('snappy', 'far-distance', stream(70050, literals(letters), match(69999, 50, 4)))
    write('snappy', 'far-match-that-is-near', stream(20, literals(b'0123456789'),
                                                     match(10, 10, 4)))
    for length in (1, 2, 3, 31, 32, 33, 63, 64):
        write('snappy', f'match-{length}', stream(50 + length, literals(letters[:50]),
                                                  match(47, length)))
    write('snappy', 'bytes-behind-the-end', stream(5, literals(b'12345'), b'more'))
    write('snappy', 'length-in-more-bytes-than-it-needs', [0x85, 0x80, 0x80, 0x80, 0x00] +
          literals(b'12345'))
    parts, size = [literals(letters[:40])], 40
    for _ in range(800):
        kind = source.randrange(3)
        if kind == 0:
            count = source.randrange(1, 90)
            parts.append(literals(letters[:count]))
        elif kind == 1:
            count = source.randrange(4, 12)
            parts.append(near(source.randrange(1, min(size, 2047) + 1), count))
        else:
            count = source.randrange(1, 65)
            parts.append(match(source.randrange(1, min(size, 65535) + 1), count))
        size += count
    write('snappy', 'mixed', stream(size, *parts))

    write('snappy', 'nothing', [], 'input_truncated')
    write('snappy', 'length-cut-off', [0x80, 0x80], 'input_truncated')
    write('snappy', 'length-of-33-bits', [0xff, 0xff, 0xff, 0xff, 0x1f], 'snappy_length')
    write('snappy', 'length-of-6-bytes', [0x85, 0x80, 0x80, 0x80, 0x80, 0], 'snappy_length')
    write('snappy', 'tag-missing', stream(5, literals(b'1234')), 'input_truncated')
    write('snappy', 'literal-length-missing', stream(500, [62 << 2, 1, 2]), 'input_truncated')
    write('snappy', 'literals-missing', stream(5, literals(b'12345')[:-1]), 'input_truncated')
    write('snappy', 'long-literals-missing', stream(600, literals(letters[:600])[:-1]),
          'input_truncated')
    for n_bytes, part in ((1, near(1, 4)), (2, match(1, 9)), (4, match(1, 9, 4))):
        write('snappy', f'distance-of-{n_bytes}-bytes-missing',
              stream(50, literals(b'1'), part[:-1]), 'input_truncated')
    for name, part in (('near', near(0, 4)), ('middling', match(0, 4)), ('far', match(0, 4, 4))):
        write('snappy', f'distance-0-{name}', stream(5, literals(b'1'), part), 'snappy_offset')
    write('snappy', 'distance-before-the-start', stream(50, literals(b'123'), near(4, 4)),
          'snappy_offset')
    write('snappy', 'distance-before-any-output', stream(50, match(1, 4)), 'snappy_offset')
    write('snappy', 'distance-of-32-bits', stream(50, literals(b'123'), match(0xffffffff, 4, 4)),
          'snappy_offset')
    write('snappy', 'literals-past-the-end', stream(3, literals(b'1234')), 'snappy_past_end')
    write('snappy', 'literals-of-2-to-the-32nd', stream(3, [63 << 2, 255, 255, 255, 255]),
          'snappy_past_end')
    write('snappy', 'match-past-the-end', stream(6, literals(b'123'), near(3, 4)),
          'snappy_past_end')
    write('snappy', 'literals-past-the-end-and-missing', stream(3, literals(b'1234')[:-2]),
          'snappy_past_end')
    write('snappy', 'match-past-the-end-and-distance-0', stream(6, literals(b'123'), near(0, 4)),
          'snappy_offset')
    write('snappy', 'more-than-there-is-room-for', stream(6, literals(b'123456')), 'output_full', 5)
    write('snappy', 'claims-4-gigabytes', stream(0xffffffff, literals(b'123456')), 'output_full')


lz4()
snappy()
