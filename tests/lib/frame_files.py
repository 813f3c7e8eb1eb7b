# SPDX-License-Identifier: Apache-2.0
"""Writes files of LZ4 frames, framed Snappy and Brotli, good and bad, by the formats' specifications.

`frame_files.py FOLDER` writes the cases there: tests/fuzz/corpus/frame_fuzz keeps them.
"""
import struct
import sys

MASK = 0xffffffff
PRIMES = (0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1)


def rotate(value, n):
    return (value << n | value >> (32 - n)) & MASK


def xxh32(data):
    p1, p2, p3, p4, p5 = PRIMES
    lanes = [p1 + p2 & MASK, p2, 0, -p1 & MASK]
    at = 0
    while len(data) - at >= 16:
        for i, word in enumerate(struct.unpack_from('<4I', data, at)):
            lanes[i] = rotate(lanes[i] + word * p2 & MASK, 13) * p1 & MASK
        at += 16
    value = sum(rotate(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) if at else p5
    value = value + len(data) & MASK
    while len(data) - at >= 4:
        value = rotate(value + struct.unpack_from('<I', data, at)[0] * p3 & MASK, 17) * p4 & MASK
        at += 4
    for byte in data[at:]:
        value = rotate(value + byte * p5 & MASK, 11) * p1 & MASK
    value = (value ^ value >> 15) * p2 & MASK
    value = (value ^ value >> 13) * p3 & MASK
    return value ^ value >> 16


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC32C = crc32c_table()


def crc32c(data):
    value = MASK
    for byte in data:
        value = value >> 8 ^ CRC32C[(value ^ byte) & 255]
    return value ^ MASK


def u32(value):
    return struct.pack('<I', value)


# ---- LZ4 -----------------------------------------------------------------------------------

LEGACY = u32(0x184c2102)
END = u32(0)


def length_bytes(n):
    return b'' if n < 15 else b'\xff' * ((n - 15) // 255) + bytes([(n - 15) % 255])


def sequence(literals, offset=0, length=0):
    """One of a block; without an offset the last one."""
    low = min(length - 4, 15) if offset else 0
    token = bytes([min(len(literals), 15) << 4 | low])
    out = token + length_bytes(len(literals)) + literals
    return out + struct.pack('<H', offset) + length_bytes(length - 4) if offset else out


def header(linked=False, block_checks=False, content=None, check=True, block=4, **wrong):
    flags = (wrong.get('version', 1) << 6 | (not linked) << 5 | block_checks << 4 |
             (content is not None) << 3 | check << 2 | wrong.get('flags', 0))
    head = bytes([flags, wrong.get('sizes', block << 4)])
    head += b'' if content is None else struct.pack('<Q', content)
    head += u32(7) if flags & 1 else b''
    return u32(0x184d2204) + head + bytes([(xxh32(head) >> 8 & 255) ^ wrong.get('damage', 0)])


def block(data, stored=False, check=False, damage=0):
    size = u32(len(data) | stored << 31)
    return size + data + (u32(xxh32(data) ^ damage) if check else b'')


def end(output=None, damage=0):
    return END + (b'' if output is None else u32(xxh32(output) ^ damage))


def skippable(data, number=0):
    return u32(0x184d2a50 + number) + u32(len(data)) + data


# ---- Snappy --------------------------------------------------------------------------------

IDENTIFIER = b'\xff\x06\0\0sNaPpY'


def chunk(kind, data):
    return bytes([kind]) + u32(len(data))[:3] + data


def mask(output):
    return u32((rotate(crc32c(output), 17) + 0xa282ead8) & MASK)


def varint(n):
    out = b''
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def literals(data):
    return bytes([61 << 2]) + struct.pack('<H', len(data) - 1) + data


def compressed(raw, output):
    return chunk(0, mask(output) + raw)


def stored(output):
    return chunk(1, mask(output) + output)


# ---- cases ---------------------------------------------------------------------------------

TEXT = b'what is framed stands in blocks, and blocks stand in frames. '
MORE = b'A second block may reach back.'
ZEROS = bytes(65536)
# A block of 64 KiB of zeros, and one of a byte more.
RUN = sequence(b'\0', 1, 65530) + sequence(bytes(5))
RUN_AND_1 = sequence(b'\0', 1, 65531) + sequence(bytes(5))
LINKED = sequence(b'', len(TEXT), 20) + sequence(MORE)
# 64 KiB of raw Snappy: a literal, and matches of up to 64 bytes.
SNAPPY_RUN = varint(65536) + b'\0\0' + b'\xfe\1\0' * 1023 + bytes([62 << 2 | 2, 1, 0])


def good_cases():
    plain = header() + block(sequence(TEXT)) + end(TEXT)
    both = TEXT + TEXT[:20] + MORE
    linked = header(linked=True) + block(sequence(TEXT)) + block(LINKED)
    identified = IDENTIFIER + stored(TEXT)
    yield 'lz4-one-block', plain, TEXT
    yield 'lz4-stored-block', header() + block(TEXT, True) + end(TEXT), TEXT
    yield 'lz4-stored-block-of-nothing', header() + block(b'', True) + end(b''), b''
    yield 'lz4-no-blocks', header() + end(b''), b''
    yield 'lz4-no-checks', header(check=False) + block(sequence(TEXT)) + end(), TEXT
    yield 'lz4-linked', linked + end(both), both
    yield ('lz4-linked-stored', header(linked=True) + block(TEXT, True) + block(LINKED) + end(both),
           both)
    yield ('lz4-all-checks', header(block_checks=True, content=len(TEXT)) +
           block(sequence(TEXT), check=True) + end(TEXT), TEXT)
    yield 'lz4-full-block', header() + block(RUN) + block(sequence(TEXT)) + end(ZEROS + TEXT), \
        ZEROS + TEXT
    yield 'lz4-block-of-4-mib', header(block=7) + block(RUN_AND_1) + end(ZEROS + b'\0'), ZEROS + b'\0'
    yield 'lz4-two-frames', plain + linked + end(both), TEXT + both
    yield ('lz4-skippable-frames', skippable(b'first') + skippable(b'', 15) + plain +
           skippable(b'between') + plain + skippable(b'last'), TEXT + TEXT)
    yield 'lz4-legacy', LEGACY + block(sequence(TEXT)) + block(RUN_AND_1), TEXT + ZEROS + b'\0'
    yield ('lz4-legacy-and-others', LEGACY + block(sequence(TEXT)) + plain + LEGACY +
           block(sequence(MORE)) + skippable(b'last'), TEXT + TEXT + MORE)
    yield 'snappy-stored', identified, TEXT
    yield 'snappy-compressed', IDENTIFIER + compressed(varint(len(TEXT)) + literals(TEXT), TEXT), TEXT
    yield 'snappy-full-chunks', IDENTIFIER + compressed(SNAPPY_RUN, ZEROS) + stored(ZEROS), ZEROS * 2
    yield 'snappy-nothing', IDENTIFIER + compressed(b'\0', b'') + stored(b''), b''
    yield 'snappy-identifier-alone', IDENTIFIER, b''
    yield ('snappy-padding', IDENTIFIER + chunk(0xfe, bytes(9)) + stored(TEXT) + chunk(0x80, b'skip') +
           chunk(0xfd, b'') + stored(MORE), TEXT + MORE)
    yield 'snappy-two-files', identified + identified, TEXT + TEXT
    yield 'snappy-longest-elements', IDENTIFIER + compressed(
        varint(300) + (bytes([63 << 2]) + u32(0) + b'a') * 300, b'a' * 300), b'a' * 300
    yield 'brotli-empty.br', b'\x06', b''
    yield 'brotli-stored.br', b'\x0b\x02\x80hello\x03', b'hello'


def bad_lz4_cases():
    plain = header() + block(sequence(TEXT))
    at = 8 * 7  # of the first block
    yield 'lz4-version', header(version=2) + end(), 'unsupported', 'lz4_frame_version', 0
    yield 'lz4-header-check', header(damage=1) + end(), 'bad_data', 'lz4_frame_header', 0
    yield 'lz4-reserved-flag', header(flags=2) + end(b''), 'unsupported', 'lz4_frame_reserved', 0
    yield 'lz4-reserved-size', header(sizes=0x41) + end(b''), 'unsupported', 'lz4_frame_reserved', 0
    yield 'lz4-block-size-3', header(sizes=0x30) + end(b''), 'unsupported', 'lz4_frame_reserved', 0
    yield 'lz4-dictionary', header(flags=1) + end(b''), 'unsupported', 'lz4_frame_dictionary', 0
    yield ('lz4-block-too-large', header() + u32(65537) + bytes(65541), 'bad_data',
           'lz4_frame_block_size', at)
    yield ('lz4-stored-too-large', header() + block(bytes(65537), True) + end(b''), 'bad_data',
           'lz4_frame_block_size', at)
    yield ('lz4-block-check', header(block_checks=True) + block(sequence(TEXT), False, True, 1) +
           end(TEXT), 'bad_checksum', 'lz4_frame_block_checksum', at + 8 * (4 + len(sequence(TEXT))))
    yield ('lz4-content-check', plain + end(TEXT, 1), 'bad_checksum', 'lz4_frame_checksum',
           8 * len(plain) + 32)
    wide = header(content=len(TEXT) + 1) + block(sequence(TEXT))
    yield 'lz4-too-little', wide + end(TEXT), 'bad_data', 'lz4_frame_content_size', 8 * len(wide)
    yield ('lz4-too-much', header(content=len(TEXT) - 1) + block(sequence(TEXT)) + end(TEXT), 'bad_data',
           'lz4_frame_content_size', 8 * 15)
    yield ('lz4-content-of-2-64', header(content=2**64 - 2) + block(sequence(TEXT)) + end(TEXT),
           'bad_data', 'lz4_frame_content_size', 8 * (15 + 4 + len(sequence(TEXT))))
    yield ('lz4-something-behind', plain + end(TEXT) + b'behind', 'bad_data', 'lz4_frame_magic',
           8 * len(plain + end(TEXT)))
    yield ('lz4-independent-reaches-back', plain + block(LINKED) + end(b''), 'bad_data', 'lz4_offset',
           8 * len(plain) + 32)
    linked = header(linked=True) + block(sequence(TEXT))
    yield ('lz4-linked-reaches-too-far', linked + block(sequence(b'', len(TEXT) + 1, 20) + sequence(MORE)) +
           end(b''), 'bad_data', 'lz4_offset', 8 * len(linked) + 32)
    first = header(linked=True) + block(sequence(TEXT)) + end(TEXT)
    second = header(linked=True)
    yield ('lz4-reaches-into-another-frame', first + second + block(LINKED) + end(b''), 'bad_data',
           'lz4_offset', 8 * len(first + second) + 32)
    yield ('lz4-more-than-a-block', header() + block(RUN_AND_1) + end(b''), 'bad_data', 'output_full',
           at + 32 + 8 * (len(RUN_AND_1) - 6))
    yield ('lz4-skippable-cut', plain + end(TEXT) + skippable(b'x')[:-1], 'bad_data', 'input_truncated',
           8 * len(plain + end(TEXT)))
    yield ('lz4-skippable-of-4-gib', plain + end(TEXT) + u32(0x184d2a50) + u32(MASK) + bytes(99),
           'bad_data', 'input_truncated', 8 * len(plain + end(TEXT)))
    yield ('lz4-legacy-empty-block', LEGACY + block(b''), 'bad_data', 'input_truncated', 64)
    yield ('lz4-legacy-largest-size', LEGACY + u32(8421520) + b'cut', 'bad_data', 'input_truncated', 32)
    yield ('lz4-legacy-size-of-none', LEGACY + u32(8421521) + b'cut', 'bad_data', 'lz4_frame_magic', 32)


def bad_snappy_cases():
    at = 8 * len(IDENTIFIER)
    yield ('snappy-second-identifier', IDENTIFIER + b'\xff\x06\0\0sNaPpy', 'bad_data',
           'snappy_frame_identifier', at)
    for kind in (2, 0x7f):
        yield (f'snappy-reserved-{kind}', IDENTIFIER + chunk(kind, b'data'), 'unsupported',
               'snappy_frame_reserved', at)
    for kind in (0, 1):
        yield (f'snappy-chunk-of-3-bytes-{kind}', IDENTIFIER + chunk(kind, b'abc'), 'bad_data',
               'snappy_frame_chunk_size', at)
    yield ('snappy-stored-too-large', IDENTIFIER + stored(bytes(65537)), 'bad_data',
           'snappy_frame_chunk_size', at)
    yield ('snappy-compressed-too-large', IDENTIFIER + chunk(0, bytes(4 + 5 + 6 * 65536 + 1)), 'bad_data',
           'snappy_frame_chunk_size', at)
    yield ('snappy-length-too-large', IDENTIFIER + compressed(varint(65537) + literals(TEXT), TEXT),
           'bad_data', 'output_full', at + 64)
    yield ('snappy-bytes-behind', IDENTIFIER + compressed(varint(len(TEXT)) + literals(TEXT) + b'x', TEXT),
           'bad_data', 'input_left', at + 64 + 8 * (1 + 3 + len(TEXT)))
    yield ('snappy-offset', IDENTIFIER + compressed(varint(5) + b'\0a' + b'\x0e\2\0', b'aaaaa'), 'bad_data',
           'snappy_offset', at + 64 + 24)
    for name, data in (('stored', stored(TEXT)),
                       ('compressed', compressed(varint(len(TEXT)) + literals(TEXT), TEXT))):
        yield (f'snappy-check-{name}', IDENTIFIER + data[:4] + b'\0' + data[5:], 'bad_checksum',
               'snappy_frame_checksum', at + 32)


def bad_brotli_cases():
    good = b'\x0b\x02\x80hello\x03'
    yield 'brotli-something-behind.br', good + b'\0', 'bad_data', 'input_left', 8 * len(good)
    yield 'brotli-cut.br', good[:-1], 'bad_data', 'input_truncated', 8 * (len(good) - 1)
    yield 'brotli-large-window.br', b'\x11' + bytes(9), 'bad_data', 'brotli_stream', None
    yield 'brotli-text.br', b'just text, which is no Brotli', 'bad_data', 'brotli_stream', None


def bad_cases():
    yield from bad_lz4_cases()
    yield from bad_snappy_cases()
    yield from bad_brotli_cases()


def kept(name, data):
    """Whether a case is kept as a file: none is large."""
    return len(data) < 4096 and not name.endswith('.br')


def main(folder):
    for name, data, *_ in list(good_cases()) + list(bad_cases()):
        if kept(name, data):
            with open(f'{folder}/{name}', 'wb') as file:
                file.write(data)


if __name__ == '__main__':
    assert crc32c(b'123456789') == 0xe3069283 and xxh32(b'') == 0x02cc5d05
    main(sys.argv[1])
