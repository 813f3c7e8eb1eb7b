#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_line_vectors.py FOLDER: writes the vectors of bdi, fpc, cpack, best and palette.

Each is named for what is special about it, and verified by the decoder here, which was written from
encoders/line/LINES.md: it must decode the good ones and refuse the bad ones, for the reason and at
the bit that is given.
"""
import hashlib
import pathlib
import random
import struct
import sys
import zlib

FOLDER = pathlib.Path(sys.argv[1])
NUMBERS = {'bdi': 11, 'fpc': 12, 'cpack': 13, 'best': 14, 'palette': 15}
BIG = 2 << 20
GROUP = 4096
BDI = {2: (8, 1), 3: (8, 2), 4: (8, 4), 5: (4, 1), 6: (4, 2), 7: (2, 1)}
SEGMENTS = (0, 2, 4, 8, 8, 8, 4, 16)
# Bits of exponent, bits of field, whether there is a low byte.
TYPES = ((8, 8, False), (5, 3, True), (4, 4, False), (5, 3, False))


class Bad(Exception):
    """Reason, and the bit where it stands."""


def signed(value, nbits):
    value &= (1 << nbits) - 1
    return value - (1 << nbits) if value >> (nbits - 1) else value


def number(data):
    return int.from_bytes(data, 'little')


def field(data, i, nbits):
    return number(data) >> (i * nbits) & ((1 << nbits) - 1)


class Shape:
    def __init__(self, codec, shift, layout, kind, raw_nbytes):
        self.codec, self.shift, self.layout, self.kind = codec, shift, layout, kind
        self.raw_nbytes, self.line = raw_nbytes, 1 << shift
        self.per_group = GROUP >> shift
        self.nbits = 4 if codec in ('bdi', 'palette') or shift == 5 else 8
        self.record = (0 if layout else 4) + self.per_group * self.nbits // 8
        self.n_lines = -(-raw_nbytes // self.line)
        self.n_groups = -(-raw_nbytes // GROUP)
        self.heads_at = -(-(16 + self.n_groups * self.record) // 16) * 16
        self.data_at = self.heads_at + (16 * self.n_groups if codec == 'palette' else 0)

    def header(self):
        return struct.pack('<8BQ', 1, NUMBERS[self.codec], self.shift, self.layout, self.kind,
                           0, 0, 0, self.raw_nbytes)


def explain_bdi(code, line):
    if code == 1:
        return 'bdi', (8, 0), 8
    base, delta = BDI[code]
    count = line // base
    return 'bdi', (base, delta), -(-count // 8) + base + count * delta


def explain_fpc(pairs, line):
    nbytes = -(-3 * line // 128) + 2 * pairs
    return ('fpc', pairs, nbytes) if nbytes < line else None


def explain_cpack(code, line):
    words, step = line // 4, 4 if line == 32 else 1
    n_words, n_bytes = divmod(code, words // step + 1)
    if n_words > 4:
        return None
    return 'cpack', (n_words, n_bytes * step), line // 8 + 4 * n_words + n_bytes * step


def explain(shape, width, code):
    """Scheme, its parameters, bytes of content; None for a wrong code."""
    line = shape.line
    if code == 0:
        return 'zeros', None, 0
    if code == (1 << shape.nbits) - 1:
        return 'raw', None, line
    if shape.codec == 'palette':
        _, f, has_low = TYPES[shape.kind]
        count = line // 2 if shape.kind < 2 else line
        nbytes = count * (f + width + 8 * has_low) // 8 + code - 1
        return ('palette', code - 1, nbytes) if nbytes < line else None
    if shape.codec in ('bdi', 'best') and code < 8:
        return explain_bdi(code, line)
    if shape.codec == 'bdi':
        return None
    if shape.codec == 'fpc':
        return explain_fpc(code, line)
    if shape.codec == 'cpack':
        return explain_cpack(code, line)
    if line == 32:
        return explain_fpc((2, 5, 8, 10)[code - 8], 32) if code < 12 else \
            explain_cpack(3 * code - 31, 32)
    n_fpc = {64: 30, 128: 62}[line]
    return explain_fpc(code - 7, line) if code - 7 <= n_fpc else \
        explain_cpack(code - 7 - n_fpc, line)


def read_bdi(content, parameters, line):
    base_nbytes, delta_nbytes = parameters
    if delta_nbytes == 0:
        return content * (line // 8)
    count = line // base_nbytes
    mask, rest = content[:-(-count // 8)], content[-(-count // 8):]
    base, deltas = number(rest[:base_nbytes]), rest[base_nbytes:]
    out = b''
    for i in range(count):
        value = signed(field(deltas, i, 8 * delta_nbytes), 8 * delta_nbytes)
        value += 0 if field(mask, i, 1) else base
        out += (value & ((1 << 8 * base_nbytes) - 1)).to_bytes(base_nbytes, 'little')
    return out


def read_fpc_word(segment, pattern, i):
    if pattern == 0:
        return 0
    if pattern < 4:
        nbits = 2 << pattern
        return signed(field(segment, i, nbits), nbits)
    if pattern == 4:
        return field(segment, i, 16) << 16
    if pattern == 5:
        low, high = (signed(field(segment, 2 * i + k, 8), 8) for k in (0, 1))
        return (low & 0xffff) | high << 16
    return field(segment, i, 8) * 0x01010101 if pattern == 6 else field(segment, i, 32)


def read_fpc(content, pairs, line):
    head = -(-3 * line // 128)
    patterns = [field(content[:head], i, 3) for i in range(line // 16)]
    if sum(SEGMENTS[p] for p in patterns) > 2 * pairs:
        return None
    out, at = b'', head
    for pattern in patterns:
        segment = content[at:at + SEGMENTS[pattern]]
        for i in range(4):
            out += (read_fpc_word(segment, pattern, i) & 0xffffffff).to_bytes(4, 'little')
        at += SEGMENTS[pattern]
    return out


def read_cpack(content, parameters, line):
    n_words, n_bytes = parameters
    words = content[line // 8:line // 8 + 4 * n_words]
    low = list(content[line // 8 + 4 * n_words:][:n_bytes])
    out = b''
    for i in range(line // 4):
        nibble = field(content[:line // 8], i, 4)
        source = nibble & 7
        if source > n_words:
            return None
        word = words[4 * source - 4:4 * source] if source else bytes(4)
        if nibble & 8:
            if not low:
                return None
            word = bytes([low.pop(0)]) + word[1:]
        out += word
    return out


def read_palette(content, n_escapes, shape, head):
    e, f, has_low = TYPES[shape.kind]
    count = shape.line // 2 if shape.kind < 2 else shape.line
    width, at = head[15], count if has_low else 0
    fields = content[at:at + count * f // 8]
    at += count * f // 8
    indexes = content[at:at + count * width // 8]
    escapes = list(content[at + count * width // 8:][:n_escapes])
    out = b''
    for i in range(count):
        index = field(indexes, i, width)
        if index == (1 << width) - 1:
            if not escapes:
                return None
            exponent = escapes.pop(0)
        else:
            exponent = head[index]
        upper = (exponent & ((1 << e) - 1)) << f | field(fields, i, f)
        upper = upper >> 1 | (upper & 1) << (e + f - 1)
        value = upper << 8 | content[i] if has_low else upper
        out += value.to_bytes(2 if shape.kind < 2 else 1, 'little')
    return out


def read_line(shape, meaning, content, head):
    scheme, parameters, _ = meaning
    if scheme == 'zeros':
        return bytes(shape.line)
    if scheme == 'raw':
        return content
    if scheme == 'palette':
        return read_palette(content, parameters, shape, head)
    return {'bdi': read_bdi, 'fpc': read_fpc, 'cpack': read_cpack}[scheme](
        content, parameters, shape.line)


def read_header(codec, stream, room):
    if len(stream) < 16:
        raise Bad('input_truncated', 0)
    version, its_codec, shift, layout, kind, *reserved, raw_nbytes = struct.unpack('<8BQ', stream[:16])
    if version != 1:
        raise Bad('line_version', 0)
    wrong = ((its_codec != NUMBERS[codec], 1), (shift not in (5, 6, 7), 2), (layout > 1, 3),
             (kind > (3 if codec == 'palette' else 0), 4), (any(reserved), 5),
             (raw_nbytes > 1 << 35, 8))
    for is_wrong, at in wrong:
        if is_wrong:
            raise Bad('line_header', 8 * at)
    if raw_nbytes > room:
        raise Bad('output_full', 64)
    shape = Shape(codec, shift, layout, kind, raw_nbytes)
    if len(stream) < shape.data_at:
        index_end = 16 + shape.n_groups * shape.record
        at = len(stream) - (len(stream) - 16) % shape.record if len(stream) < index_end else \
            index_end if len(stream) < shape.heads_at else len(stream) // 16 * 16
        raise Bad('input_truncated', 8 * at)
    return shape


def read_group(shape, stream, group, at):
    """The group's output, and where the next one's lines begin."""
    record_at = 16 + group * shape.record
    record = stream[record_at:record_at + shape.record]
    head_at = shape.heads_at + 16 * group
    head = stream[head_at:head_at + 16] if shape.codec == 'palette' else bytes(15) + b'\x03'
    if not shape.layout and 16 * number(record[:4]) != at - shape.data_at:
        raise Bad('line_offset', 8 * record_at)
    if head[15] != 3 and (head[15] != 4 or shape.kind == 2):
        raise Bad('line_palette', 8 * (head_at + 15))
    codes_at = record_at + (0 if shape.layout else 4)
    count = min(shape.per_group, shape.n_lines - group * shape.per_group)
    meanings = []
    for i in range(shape.per_group):
        code = field(record[codes_at - record_at:], i, shape.nbits)
        meanings.append(explain(shape, head[15], code))
        if meanings[i] is None or (i >= count and code):
            raise Bad('line_code', 8 * codes_at + i * shape.nbits)
    out = b''
    for meaning in meanings[:count]:
        extent = shape.line if shape.layout else meaning[2]
        if at + extent > len(stream):
            raise Bad('input_truncated', 8 * at)
        line = read_line(shape, meaning, stream[at:at + meaning[2]], head)
        if line is None:
            raise Bad('line_content', 8 * at)
        out += line
        at += extent
    if -(-at // 16) * 16 > len(stream):
        raise Bad('input_truncated', 8 * at)
    return out, -(-at // 16) * 16


def decode(codec, stream, room):
    """The output, and how much of the stream it took."""
    shape = read_header(codec, stream, room)
    out, at = b'', shape.data_at
    for group in range(shape.n_groups):
        more, at = read_group(shape, stream, group, at)
        out += more
    return out[:shape.raw_nbytes], at


# ---- writing ------------------------------------------------------------------------------------

def build(codec, lines, shift=7, layout=0, kind=0, raw_nbytes=None, head=None):
    """A stream of lines, each a code and its content; `head` for all groups of palette."""
    shape = Shape(codec, shift, layout, kind,
                  len(lines) << shift if raw_nbytes is None else raw_nbytes)
    index, data = b'', b''
    for first in range(0, len(lines), shape.per_group):
        if not layout:
            index += (len(data) // 16).to_bytes(4, 'little')
        codes = 0
        for i, (code, content) in enumerate(lines[first:first + shape.per_group]):
            codes |= code << i * shape.nbits
            data += content.ljust(shape.line if layout else 0, b'\0')
        index += codes.to_bytes(shape.per_group * shape.nbits // 8, 'little')
        data += bytes(-len(data) % 16)
    heads = (head or b'') * shape.n_groups
    return (shape.header() + index).ljust(shape.heads_at, b'\0') + heads + data


def put(codec, name, stream, kind, lines):
    folder = FOLDER / codec / kind
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(stream)
    (folder / f'{name}.expect').write_text(''.join(f'{line}\n' for line in lines))


def good(codec, name, stream):
    out, nbytes = decode(codec, stream, BIG)
    put(codec, name, stream, 'ok', [
        'result ok', f'in_nbytes {nbytes}', f'out_nbytes {len(out)}',
        f'crc32 {zlib.crc32(out):08x}', f'sha256 {hashlib.sha256(out).hexdigest()}'])


def bad(codec, name, stream, reason, bit, room=BIG, result='bad_data'):
    try:
        decode(codec, stream, room)
    except Bad as error:
        assert error.args == (reason, bit), (codec, name, error.args)
    else:
        assert False, (codec, name)
    put(codec, name, stream, 'bad', [
        f'result {result}', f'reason {reason}', f'bit_offset {bit}', f'out_avail {room}'])


def change(stream, at, value):
    return stream[:at] + bytes([value]) + stream[at + 1:]


SOURCE = random.Random(7)


def noise(count):
    return bytes(SOURCE.randrange(256) for _ in range(count))


def any_line(shape, code, width=3):
    """A line of that code whose content is right, whatever it says."""
    scheme, parameters, nbytes = explain(shape, width, code)
    if scheme == 'fpc':
        patterns, left = [], 2 * parameters
        for _ in range(shape.line // 16):
            patterns.append(SOURCE.choice([p for p in range(8) if SEGMENTS[p] <= left]))
            left -= SEGMENTS[patterns[-1]]
        head = sum(p << 3 * i for i, p in enumerate(patterns))
        head_nbytes = -(-3 * shape.line // 128)
        return code, head.to_bytes(head_nbytes, 'little') + noise(nbytes - head_nbytes)
    if scheme == 'cpack':
        n_words, n_bytes = parameters
        nibbles = [SOURCE.randrange(n_words + 1) for _ in range(shape.line // 4)]
        for i in SOURCE.sample(range(len(nibbles)), min(n_bytes, len(nibbles))):
            nibbles[i] |= 8
        value = sum(n << 4 * i for i, n in enumerate(nibbles))
        return code, value.to_bytes(shape.line // 8, 'little') + noise(nbytes - shape.line // 8)
    if scheme == 'palette':
        e, f, has_low = TYPES[shape.kind]
        count = shape.line // 2 if shape.kind < 2 else shape.line
        escape = (1 << width) - 1
        indexes = [SOURCE.randrange(escape) for _ in range(count)]
        for i in SOURCE.sample(range(count), parameters):
            indexes[i] = escape
        value = sum(n << width * i for i, n in enumerate(indexes))
        before = noise(count * (f + 8 * has_low) // 8)
        return code, before + value.to_bytes(count * width // 8, 'little') + noise(parameters)
    return code, noise(nbytes)


def valid_codes(shape, width=3):
    return [code for code in range(1 << shape.nbits) if explain(shape, width, code)]


def write_good(codec, shift, layout, kind=0, width=3):
    shape = Shape(codec, shift, layout, kind, GROUP)
    head = noise(15) + bytes([width]) if codec == 'palette' else None
    codes = valid_codes(shape, width)
    lines = [any_line(shape, code, width) for code in codes]
    lines += [any_line(shape, SOURCE.choice(codes), width) for _ in range(5)]
    name = f'{8 << (shift - 3)}-byte-lines-of-all-codes' + ('-in-slots' if layout else '')
    if codec == 'palette':
        name += f'-{("bf16", "f16", "e4m3", "e5m2")[kind]}-by-{width}-bits'
    good(codec, name, build(codec, lines, shift, layout, kind, head=head,
                            raw_nbytes=(len(lines) << shift) - 3))


def write_common_bad(codec):
    head = bytes(15) + b'\x03' if codec == 'palette' else None
    shape = Shape(codec, 7, 0, 0, GROUP)
    codes = valid_codes(shape)
    lines = [any_line(shape, codes[1 + i % (len(codes) - 1)]) for i in range(40)]
    stream = build(codec, lines, head=head)
    shape = read_header(codec, stream, BIG)
    bad(codec, 'nothing', b'', 'input_truncated', 0)
    bad(codec, 'header-cut-off', stream[:15], 'input_truncated', 0)
    bad(codec, 'version-2', change(stream, 0, 2), 'line_version', 0, result='unsupported')
    bad(codec, 'another-codec', change(stream, 1, 10), 'line_header', 8)
    bad(codec, 'lines-of-16', change(stream, 2, 4), 'line_header', 16)
    bad(codec, 'lines-of-256', change(stream, 2, 8), 'line_header', 16)
    bad(codec, 'layout-2', change(stream, 3, 2), 'line_header', 24)
    bad(codec, 'no-such-type', change(stream, 4, 4), 'line_header', 32)
    bad(codec, 'reserved-byte', change(stream, 7, 1), 'line_header', 40)
    bad(codec, 'larger-than-can-be', change(stream, 12, 9), 'line_header', 64)
    bad(codec, 'no-room', stream, 'output_full', 64, room=len(lines) * 128 - 1,
        result='output_too_small')
    bad(codec, 'record-cut-off', stream[:16 + shape.record + 3], 'input_truncated',
        8 * (16 + shape.record))
    bad(codec, 'data-missing', stream[:shape.data_at], 'input_truncated', 8 * shape.data_at)
    short = next(code for code in codes if explain(shape, 3, code)[2] % 16)
    single = build(codec, [any_line(shape, short)], head=head)
    bad(codec, 'filling-cut-off', single[:-1], 'input_truncated',
        8 * (64 if codec != 'bdi' else 48) + 8 * explain(shape, 3, short)[2])
    bad(codec, 'first-offset', change(stream, 16, 1), 'line_offset', 128)
    bad(codec, 'second-offset', change(stream, 16 + shape.record, 0), 'line_offset',
        8 * (16 + shape.record))
    last = 16 + 2 * shape.record - 1
    bad(codec, 'code-without-a-line', change(stream, last, 0x10), 'line_code',
        8 * last + (4 if shape.nbits == 4 else 0))


def write_own_bad():
    one = 16 + 4
    bad('bdi', 'code-8', change(build('bdi', [(1, bytes(8))]), one, 8), 'line_code', 8 * one)
    bad('fpc', 'code-63', change(build('fpc', [(1, bytes(5))]), one, 63), 'line_code', 8 * one)
    bad('cpack', 'code-165', change(build('cpack', [(1, bytes(17))]), one, 165), 'line_code', 8 * one)
    bad('best', 'code-234', change(build('best', [(1, bytes(8))]), one, 234), 'line_code', 8 * one)
    head = bytes(15) + b'\x04'
    bad('palette', 'code-of-a-line-that-is-not-smaller',
        build('palette', [(9, bytes(128))], kind=1, head=head), 'line_code', 8 * one)
    for codec, code in (('fpc', 3), ('best', 10)):
        stream = build(codec, [(code, b'\x07' + bytes(8))])
        bad(codec, 'segments-of-more-bytes', stream, 'line_content', 8 * 64)
    for codec, code in (('cpack', 34), ('best', 103)):
        bad(codec, 'source-that-the-dictionary-lacks', build(codec, [(code, b'\x02' + bytes(20))]),
            'line_content', 8 * 64)
        bad(codec, 'more-low-bytes', build(codec, [(code, b'\x99' + bytes(20))]), 'line_content',
            8 * 64)
    head = bytes(15) + b'\x03'
    stream = build('palette', [(2, bytes(64) + b'\x3f' + bytes(24))], head=head)
    bad('palette', 'more-escapes', stream, 'line_content', 8 * 64)
    for width in (0, 2, 5, 255):
        bad('palette', f'width-{width}', change(stream, 63, width), 'line_palette', 8 * 63)
    bad('palette', 'e4m3-by-4-bits', change(change(stream, 4, 2), 63, 4), 'line_palette', 8 * 63)
    bad('palette', 'head-cut-off', stream[:50], 'input_truncated', 8 * 48)
    slots = build('bdi', [(2, noise(26))] * 2, layout=1)
    bad('bdi', 'slot-cut-off', slots[:-1], 'input_truncated', 8 * (len(slots) - 128))


for name in NUMBERS:
    empty = Shape(name, 7, 0, 0, 0).header()
    good(name, 'nothing', empty)
    good(name, 'bytes-behind-the-end', empty + b'more')
    for line_shift in (5, 6, 7):
        for slots_or_not in (0, 1):
            if name != 'palette':
                write_good(name, line_shift, slots_or_not)
    write_common_bad(name)
for value_kind in range(4):
    for index_width in (3, 4):
        if (value_kind, index_width) != (2, 4):
            for line_shift in (5, 7):
                write_good('palette', line_shift, 0, value_kind, index_width)
    write_good('palette', 6, 1, value_kind)
write_own_bad()
