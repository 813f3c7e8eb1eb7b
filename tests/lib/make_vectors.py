#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_vectors.py FOLDER: writes the vectors of stored, deflate, zlib and gzip.

Each is named for what is special about it.  zlib is asked about every one of them: it must decode
the good ones, whose output it gives, and refuse the bad ones, of which the reason and the place
follow from how they were written.  Streams that zlib compresses differ between its versions;
all others are the same wherever this runs.
"""
import pathlib
import random
import struct
import sys
import zlib

from deflate_bits import DISTANCE_BASES, DISTANCE_EXTRAS, LENGTH_BASES, LENGTH_EXTRAS, Stream

FOLDER = pathlib.Path(sys.argv[1])
WBITS = {'deflate': -15, 'zlib': 15, 'gzip': 31}


def noise(nbytes, seed=1):
    return random.Random(seed).randbytes(nbytes)


def words(nbytes):
    source = random.Random(2)
    vocabulary = [source.randbytes(2).hex() + 'ing the of and to'[:source.randrange(9)]
                  for _ in range(300)]
    text = ''
    while len(text) < nbytes:
        text += source.choice(vocabulary[:source.randrange(1, 300)]) + source.choice('  \n')
    return text[:nbytes].encode()


# -- writing them down

def verify(codec, data):
    """(output, bytes taken) as zlib has it, or None where it refuses; gzip with all members, of
    which a last byte 1f is one that is cut off."""
    if codec == 'stored':
        return data, len(data)
    output, rest = b'', data
    while True:
        decoder = zlib.decompressobj(WBITS[codec])
        try:
            output += decoder.decompress(rest)
        except zlib.error:
            return None
        if not decoder.eof:
            return None
        rest = decoder.unused_data
        if codec != 'gzip' or rest[:2] not in (b'\x1f\x8b', b'\x1f'):
            return output, len(data) - len(rest)


def write(codec, kind, name, data, expectation):
    path = FOLDER / codec / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    lines = ''.join(f'{key} {value}\n' for key, value in expectation.items())
    path.with_name(name + '.expect').write_text(lines, encoding='ascii')


def good(codec, name, data):
    data = data.bytes() if isinstance(data, Stream) else data
    answer = verify(codec, data)
    assert answer is not None, name
    output, taken = answer
    write(codec, 'ok', name, data, {
        'result': 'ok', 'reason': 'none', 'bit_offset': 0, 'in_nbytes': taken,
        'out_nbytes': len(output), 'crc32': f'{zlib.crc32(output):08x}'})


def bad(codec, name, data, reason, bit_offset, result='bad_data'):
    data = data.bytes() if isinstance(data, Stream) else data
    assert verify(codec, data) is None, name
    write(codec, 'bad', name, data,
          {'result': result, 'reason': reason, 'bit_offset': bit_offset})


def full(codec, name, data, out_avail, bit_offset):
    """A good stream for which the destination is too small."""
    write(codec, 'bad', name, data.bytes(), {
        'result': 'output_too_small', 'reason': 'output_full', 'bit_offset': bit_offset,
        'out_avail': out_avail})


# -- deflate

def deflate_blocks():
    good('deflate', 'stored-of-nothing', Stream().stored(b''))
    good('deflate', 'stored-of-65535', Stream().stored(noise(65535)))
    good('deflate', 'stored-with-ones-as-padding', Stream().stored(b'padding', ones=True))
    stream = Stream()
    for k in range(20):
        stream.stored(noise(k, k), final=k == 19)
    good('deflate', 'stored-twenty-times', stream)
    good('deflate', 'fixed-of-nothing', Stream().fixed().end())
    good('deflate', 'fixed-all-literals', Stream().fixed().literals(range(256)).end())
    stream = Stream()
    for k in range(200):
        stream.fixed(final=k == 199).literals(bytes([k % 256])).end()
    good('deflate', 'fixed-two-hundred-blocks', stream)
    # Three bits of block header and seven of its end: all eight alignments come up.
    stream = Stream()
    for k in range(16):
        stream.fixed(final=False).literals(b'x' * (k % 5)).end()
        stream.stored(b'<stored>', final=k == 15, ones=True)
    good('deflate', 'stored-at-every-bit-of-a-byte', stream)
    good('deflate', 'bytes-behind-the-end', Stream().fixed().literals(b'end').end().align(True).raw(
        b'these are left alone'))
    stream = Stream().fixed().literals(b'ones').end()
    good('deflate', 'ones-behind-the-end', stream.align(ones=True))


def deflate_matches():
    stream = Stream().fixed().literals(b'a')
    for length in range(3, 259):
        stream.match(length, 1)
    good('deflate', 'match-of-every-length', stream.end())
    # Length symbol 284 reaches 258 with its extra bits all ones, as symbol 285 does without any.
    good('deflate', 'length-258-by-symbol-284',
         Stream().fixed().literals(b'a').length_symbol(284, 31).distance_symbol(0, 0).end())
    stream = Stream().stored(noise(32768), final=False).fixed()
    for symbol, (base, nbits) in enumerate(zip(DISTANCE_BASES, DISTANCE_EXTRAS)):
        stream.match(3, base).match(4, base + (1 << nbits) - 1)
    good('deflate', 'match-from-every-distance-symbol', stream.end())
    good('deflate', 'match-from-32768-exactly',
         Stream().stored(noise(32768), final=False).fixed().match(258, 32768).end())
    stream = Stream().fixed()
    for distance in range(1, 68):
        stream.literals(noise(distance, distance)).match(258, distance).match(3 + distance, distance)
    good('deflate', 'match-that-overlaps-itself', stream.end())
    stream = Stream().fixed(final=False).literals(b'over the edge').end().fixed()
    good('deflate', 'match-from-the-block-before', stream.match(13, 13).end())
    # 4 bytes of output in 13 bits and 258 in 12: the most that a fixed block can give.
    stream = Stream().fixed().literals(b'z')
    for _ in range(3000):
        stream.match(258, 1)
    good('deflate', 'long-run-of-one-byte', stream.end())


def deflate_codes():
    good('deflate', 'dynamic-only-the-end', Stream().dynamic({256: 1}, {}).end())
    good('deflate', 'dynamic-no-distance-code',
         Stream().dynamic({65: 2, 66: 2, 67: 2, 256: 2}, {}).literals(b'ABCCBA').end())
    litlen = {65: 2, 66: 2, 256: 2, 257: 2}
    good('deflate', 'dynamic-one-distance-code',
         Stream().dynamic(litlen, {0: 1}).literals(b'AB').match(3, 1).end())
    good('deflate', 'dynamic-one-distance-code-far',
         Stream().dynamic(litlen, {3: 1}).literals(b'ABAB').match(3, 4).end())
    # Lengths 1, 2, ... 14, 15, 15: the longest words there can be.
    skewed = {k: k + 1 for k in range(15)} | {256: 15}
    stream = Stream().dynamic(skewed, {})
    good('deflate', 'dynamic-words-of-every-length', stream.literals(list(range(15)) * 3).end())
    distances = {k: k + 1 for k in range(15)} | {15: 15}
    litlen = {65: 1, 256: 2, 257: 2}
    stream = Stream().dynamic(litlen, distances).literals(b'A' * 300)
    for base in DISTANCE_BASES[:16]:
        stream.match(3, base)
    good('deflate', 'dynamic-distance-words-of-every-length', stream.end())
    # 226 words of 8 bits and 60 of 9; 2 of 4 and 28 of 5: both codes as large as they can be.
    stream = Stream().dynamic({s: 8 if s < 226 else 9 for s in range(286)},
                              {s: 4 if s < 2 else 5 for s in range(30)})
    stream.literals(noise(200)).literals(range(256)).match(258, 400)
    good('deflate', 'dynamic-most-codes', stream.end())
    stream = Stream()
    for k in range(30):
        stream.dynamic({k: 1, 200: 2, 256: 2}, {k % 30: 1}, final=k == 29)
        stream.literals([k, 200, k]).end()
    good('deflate', 'dynamic-thirty-blocks', stream)


def deflate_long_words():
    """Matches of up to 48 bits between literals of all lengths, at all places in a word: a decoder
    that refills too late for the symbol behind a match looks it up in bits that are not there."""
    source = random.Random(3)
    # Words of 2 bits for three literals, of 4 for three more, then 5, 6, ... 14, 15, 15.
    litlen = {97: 2, 98: 2, 99: 2, 100: 4, 101: 4, 102: 4, 103: 6, 104: 8, 105: 10, 106: 13,
              256: 14, 257: 5, 270: 7, 276: 9, 279: 11, 282: 12, 283: 15, 284: 15}
    distances = {0: 1, 10: 2, 20: 3, 22: 4, 24: 5, 25: 6, 26: 7, 27: 8, 28: 9, 4: 10, 6: 11, 8: 12,
                 12: 13, 14: 14, 16: 15, 29: 15}
    stream = Stream().fixed(final=False).literals(range(256))
    for _ in range(130):
        stream.match(258, 256)
    stream.end().dynamic(litlen, distances)
    for _ in range(800):
        stream.literals(source.choices(range(97, 107), k=source.randrange(5)))
        symbol = source.choice([s for s in litlen if s > 256])
        stream.length_symbol(symbol, source.getrandbits(LENGTH_EXTRAS[symbol - 257]))
        symbol = source.choice(list(distances))
        stream.distance_symbol(symbol, source.getrandbits(DISTANCE_EXTRAS[symbol]))
    good('deflate', 'long-words-of-matches-between-literals', stream.end())


def deflate_headers():
    # 144 lengths of 8, 112 of 9, 24 of 7, 8 - 2 of 8: the fixed code, said with repeats.
    precode = {0: 3, 1: 3, 7: 3, 8: 3, 9: 3, 16: 3, 17: 3, 18: 3}
    items = [8] + [(16, 3)] * 23 + [(16, 2)] + [9] + [(16, 3)] * 18 + [(16, 0)]
    items += [7, (16, 3), (16, 3), (16, 3), (16, 2)] + [8, (16, 2)] + [1, 1]
    # 144 + 112 + 24 + 6 = 286 lengths; two more words of 8 bits are missing: not complete.
    stream = Stream().header(286, 2, precode, items)
    bad('deflate', 'litlen-code-of-fixed-without-286-and-287', stream.field(0, 64),
        'deflate_litlen_code', 0)
    # 'A', the end and a length; no distance but the first.
    stream = Stream().header(258, 1, {1: 2, 2: 2, 17: 2, 18: 2},
                             [(18, 54), 1, (18, 127), (18, 41), 2, 2, 1])
    stream.litlen, stream.distance = {65: (0, 1), 256: (2, 2), 257: (3, 2)}, {0: (0, 1)}
    good('deflate', 'header-longest-zero-repeat', stream.literals(b'A').match(3, 1).end())
    # Length 2 for 256, then three more for 257 and two distances: of four words two are missing.
    stream = Stream().header(258, 2, {0: 2, 2: 2, 16: 2, 18: 2},
                             [(18, 127), (18, 107), 2, (16, 0)])
    bad('deflate', 'repeat-into-distances-of-incomplete-codes', stream.field(0, 64),
        'deflate_litlen_code', 0)
    stream = Stream().header(258, 1, {0: 2, 1: 2, 16: 2, 18: 2},
                             [(18, 127), (18, 107), 1, 1, 1])
    stream.litlen, stream.distance = {256: (0, 1), 257: (1, 1)}, {0: (0, 1)}
    good('deflate', 'header-of-end-and-a-length', stream.end())
    # Three lengths 1 in a row: 256, 257 and the one distance.
    stream = Stream().header(258, 2, {0: 2, 1: 2, 16: 2, 18: 2},
                             [(18, 127), (18, 107), 1, (16, 0)])
    stream.litlen = {256: (0, 1), 257: (1, 1)}
    good('deflate', 'repeat-from-litlen-into-distance-lengths', stream.end())
    # Precode words of 1 to 7 bits.
    precode = {18: 1, 0: 2, 1: 3, 2: 4, 17: 5, 16: 6, 3: 7, 4: 7}
    stream = Stream().header(257, 1, precode, [(18, 86), 2, 2, (17, 0), (18, 127), (18, 5), 1, 1])
    stream.litlen = {97: (2, 2), 98: (3, 2), 256: (0, 1)}
    good('deflate', 'header-with-precode-words-of-every-length', stream.literals(b'abba').end())
    # Only as many lengths of the precode as must be: 18, 0, 1 and what stands before them.
    stream = Stream().header(257, 1, {0: 1, 18: 2, 1: 2}, [(18, 127), (18, 107), 1, 0], n_precode=18)
    stream.litlen = {256: (0, 1)}
    good('deflate', 'header-with-eighteen-precode-lengths', stream.end())


def deflate_bad_headers():
    bad('deflate', 'nothing', b'', 'input_truncated', 0)
    bad('deflate', 'block-type-3', Stream().field(1, 1).field(3, 2).field(0, 40),
        'deflate_block_type', 0)
    stream = Stream().fixed(final=False).literals(b'abc').end()
    at = stream.n
    # The zeros up to the next byte are the header of a stored block, whose length is missing.
    bad('deflate', 'stored-length-missing-after-a-block', stream.align(), 'input_truncated', at)
    stream = Stream().fixed(final=False).literals(b'abc').end().field(1, 1).field(3, 2)
    bad('deflate', 'block-type-3-second', stream.field(0, 40), 'deflate_block_type', at)
    bad('deflate', 'stored-length-without-complement', Stream().stored(b'abc', nlen=3),
        'deflate_stored_length', 0)
    bad('deflate', 'stored-length-one-bit-off', Stream().stored(b'abc', nlen=~3 ^ 0x100),
        'deflate_stored_length', 0)
    bad('deflate', 'stored-length-cut-off', Stream().stored(b'abc').bytes()[:4],
        'input_truncated', 0)
    bad('deflate', 'stored-data-cut-off', Stream().stored(b'abc', length=5), 'input_truncated', 64)
    for count in (287, 288):
        stream = Stream().header(count, 1, {0: 1, 18: 1}, [], n_precode=4).field(0, 2000)
        bad('deflate', f'litlen-count-{count}', stream, 'deflate_code_count', 0)
    for count in (31, 32):
        stream = Stream().header(257, count, {0: 1, 18: 1}, [], n_precode=4).field(0, 2000)
        bad('deflate', f'distance-count-{count}', stream, 'deflate_code_count', 0)
    for name, precode in {
            'over-subscribed': {0: 1, 1: 1, 18: 1}, 'incomplete': {0: 1, 18: 2},
            'of-one-word': {0: 1}, 'over-subscribed-by-long-words': {0: 1, 1: 2, 2: 2, 18: 7},
    }.items():
        stream = Stream().header(257, 1, precode, []).field(0, 2000)
        bad('deflate', f'precode-{name}', stream, 'deflate_precode', 0)
    # Words of no precode at all stand for no length; so 256 has none.
    bad('deflate', 'precode-of-nothing', Stream().header(257, 1, {}, []).field(0, 2000),
        'deflate_no_end', 0)
    bad('deflate', 'repeat-of-no-length', Stream().header(
        257, 1, {0: 2, 1: 2, 16: 2, 18: 2}, [(16, 0)]).field(0, 2000), 'deflate_length_repeat', 0)
    for symbol, extra in ((16, 3), (17, 7), (18, 127)):
        precode = {0: 2, 1: 3, 16: 3, 17: 2, 18: 2}
        items = [(18, 127), (18, 107), 1, (symbol, extra)]
        bad('deflate', f'repeat-{symbol}-past-the-last-length', Stream().header(
            257, 1, precode, items).field(0, 2000), 'deflate_length_repeat', 0)
    bad('deflate', 'header-cut-off', Stream().dynamic({65: 1, 256: 1}, {0: 1}).bytes()[:20],
        'input_truncated', 0)


def deflate_bad_codes():
    bad('deflate', 'no-code-for-the-end', Stream().dynamic({65: 1, 66: 1}, {0: 1}).field(0, 64),
        'deflate_no_end', 0)
    for name, litlen in {'over-subscribed': {65: 1, 66: 1, 256: 1},
                         'incomplete': {65: 2, 66: 2, 256: 2},
                         'of-one-long-word': {256: 2}}.items():
        bad('deflate', f'litlen-code-{name}', Stream().dynamic(litlen, {0: 1}).field(0, 64),
            'deflate_litlen_code', 0)
    for name, distance in {'over-subscribed': {0: 1, 1: 1, 2: 1}, 'incomplete': {0: 2, 1: 2},
                           'of-one-long-word': {0: 2}}.items():
        stream = Stream().dynamic({65: 1, 256: 1}, distance)
        bad('deflate', f'distance-code-{name}', stream.field(0, 64), 'deflate_distance_code', 0)
    stream = Stream().fixed(final=False).literals(b'x').end()
    at = stream.n
    bad('deflate', 'litlen-code-bad-in-second-block',
        stream.dynamic({65: 2, 66: 2, 256: 2}, {0: 1}).field(0, 64), 'deflate_litlen_code', at)


def deflate_bad_symbols():
    for symbol in (286, 287):
        stream = Stream().fixed().literals(b'ab')
        at = stream.n
        bad('deflate', f'litlen-symbol-{symbol}', stream.word(*stream.litlen[symbol]).field(0, 64),
            'deflate_litlen_symbol', at)
    for symbol in (30, 31):
        stream = Stream().fixed().literals(b'abc')
        at = stream.n
        stream.length_symbol(257, 0).word(*stream.distance[symbol])
        bad('deflate', f'distance-symbol-{symbol}', stream.field(0, 64),
            'deflate_distance_symbol', at)
    stream = Stream().dynamic({256: 1}, {})
    at = stream.n
    bad('deflate', 'litlen-word-of-no-symbol', stream.field(1, 1).field(0, 64),
        'deflate_litlen_symbol', at)
    litlen = {65: 2, 66: 2, 256: 2, 257: 2}
    stream = Stream().dynamic(litlen, {0: 1}).literals(b'A')
    at = stream.n
    bad('deflate', 'distance-word-of-no-symbol', stream.length_symbol(257, 0).field(1, 1).field(0, 64),
        'deflate_distance_symbol', at)
    stream = Stream().dynamic(litlen, {}).literals(b'AB')
    at = stream.n
    bad('deflate', 'match-without-a-distance-code', stream.length_symbol(257, 0).field(0, 64),
        'deflate_distance_symbol', at)
    stream = Stream().fixed()
    at = stream.n
    bad('deflate', 'distance-before-the-first-byte', stream.match(3, 1).end(),
        'deflate_distance_too_far', at)
    stream = Stream().fixed().literals(b'abcd')
    at = stream.n
    bad('deflate', 'distance-one-too-far', stream.match(3, 5).end(), 'deflate_distance_too_far', at)
    stream = Stream().stored(noise(30000), final=False).fixed()
    at = stream.n
    bad('deflate', 'distance-too-far-over-blocks', stream.match(258, 30001).end(),
        'deflate_distance_too_far', at)
    # The error that comes first in the stream counts, not the one that is easier to see.
    stream = Stream().fixed().literals(b'a')
    at = stream.n
    stream.match(3, 2).word(*stream.litlen[287])
    bad('deflate', 'distance-too-far-before-a-bad-symbol', stream.field(0, 64),
        'deflate_distance_too_far', at)


def cut(stream):
    """The bytes of the stream that are whole: the last bits of it are cut off."""
    return stream.bytes()[:stream.n // 8]


def deflate_cut_off():
    """Ends in the middle of each part of a symbol; the symbol's first bit is where it stands."""
    # Literals of 8 bits after 3: the last one is cut off after 5 bits.
    stream = Stream().fixed().literals(b'abcd')
    bad('deflate', 'cut-off-in-a-literal', cut(stream), 'input_truncated', 3 + 3 * 8)
    bad('deflate', 'cut-off-before-the-end', Stream().fixed().literals(b'abc').bytes()[:3],
        'input_truncated', 3 + 2 * 8)
    for name, tail, n_literals in (('in-length-bits', lambda s: s.length_symbol(284, 0), 3),
                                   ('in-a-distance', lambda s: s.length_symbol(257, 0), 4),
                                   ('in-distance-bits', lambda s: s.length_symbol(257, 0)
                                    .distance_symbol(29, 0), 3)):
        stream = Stream().fixed().literals(b'a' * n_literals)
        at = stream.n
        bad('deflate', f'cut-off-{name}', cut(tail(stream)), 'input_truncated', at)
    stream = Stream().fixed().literals(b'a' * 1000).end()
    bad('deflate', 'cut-off-in-a-long-block', stream.bytes()[:500], 'input_truncated',
        3 + 8 * ((500 * 8 - 3) // 8))
    # Six words of nine bits: the block ends with a byte, and so does the input.
    stream = Stream().fixed(final=False).literals(bytes([200] * 6)).end()
    bad('deflate', 'cut-off-after-a-block', stream, 'input_truncated', 64)


def deflate_full():
    full('deflate', 'full-at-a-literal', Stream().fixed().literals(b'abc').end(), 2, 3 + 16)
    full('deflate', 'full-at-the-first-byte', Stream().fixed().literals(b'a').end(), 0, 3)
    full('deflate', 'full-inside-a-match', Stream().fixed().literals(b'a').match(258, 1).end(),
         200, 3 + 8)
    full('deflate', 'full-inside-stored', Stream().stored(b'0123456789'), 7, 8 * (5 + 7))
    full('deflate', 'full-long-before-the-end', Stream().fixed().literals(noise(1)).match(
        258, 1).match(258, 1).literals(b'abc').end(), 259, Stream().fixed().literals(
            noise(1)).match(258, 1).n)


# -- what zlib makes

def compress(codec, data, level, strategy=zlib.Z_DEFAULT_STRATEGY, wbits=None, memory=8):
    encoder = zlib.compressobj(level, zlib.DEFLATED, wbits or WBITS[codec], memory, strategy)
    return encoder.compress(data) + encoder.flush()


def flushed(data):
    """Full and sync flushes leave empty stored blocks at byte boundaries."""
    encoder = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = b''
    for at in range(0, len(data), 1000):
        packed += encoder.compress(data[at:at + 1000])
        packed += encoder.flush(zlib.Z_SYNC_FLUSH if at % 2000 else zlib.Z_FULL_FLUSH)
    return packed + encoder.flush()


def made_by_zlib():
    text = words(40000)
    for codec in WBITS:
        for level in (1, 6, 9):
            good(codec, f'text-level-{level}', compress(codec, text, level))
    good('deflate', 'noise-level-6', compress('deflate', noise(70000), 6))
    good('deflate', 'zeros-level-9', compress('deflate', bytes(100000), 9))
    good('deflate', 'text-huffman-only', compress('deflate', text, 6, zlib.Z_HUFFMAN_ONLY))
    good('deflate', 'text-run-lengths-only', compress('deflate', text, 6, zlib.Z_RLE))
    good('deflate', 'text-fixed-codes-only', compress('deflate', text, 6, zlib.Z_FIXED))
    good('deflate', 'text-in-small-blocks', compress('deflate', text, 6, memory=1))
    good('deflate', 'text-flushed', flushed(text[:10000]))


# -- zlib

def zlib_header(cmf=0x78, flags=0):
    """Two bytes with their check bits right, for flags whose check bits are zero."""
    return bytes([cmf, flags + -(256 * cmf + flags) % 31])


def zlib_vectors():
    body = Stream().fixed().literals(b'window').end().bytes()
    trailer = zlib.adler32(b'window').to_bytes(4, 'big')
    for bits in range(8, 16):
        good('zlib', f'window-of-{1 << bits}', zlib_header((bits - 8) << 4 | 8) + body + trailer)
    for level in range(4):
        good('zlib', f'header-level-{level}', zlib_header(flags=level << 6) + body + trailer)
    good('zlib', 'of-nothing', compress('zlib', b'', 6))
    good('zlib', 'bytes-behind-the-trailer', zlib_header() + body + trailer + b'left alone')
    bad('zlib', 'nothing', b'', 'input_truncated', 0)
    bad('zlib', 'one-byte', b'\x78', 'input_truncated', 0)
    bad('zlib', 'header-check', b'\x78\x02' + body + trailer, 'zlib_header', 0)
    bad('zlib', 'method-7', zlib_header(0x77) + body + trailer, 'zlib_method', 0)
    bad('zlib', 'window-of-65536', zlib_header(0x88) + body + trailer, 'zlib_window', 0)
    bad('zlib', 'dictionary', zlib_header(flags=0x20) + b'\x01\x02\x03\x04' + body + trailer,
        'zlib_dictionary', 0, 'unsupported')
    bad('zlib', 'dictionary-cut-off', zlib_header(flags=0x20) + b'\x01\x02', 'input_truncated', 0)
    at = 8 * (2 + len(body))
    bad('zlib', 'checksum', zlib_header() + body + bytes([trailer[0] ^ 1]) + trailer[1:],
        'zlib_checksum', at, 'bad_checksum')
    bad('zlib', 'checksum-other-way-round', zlib_header() + body + trailer[::-1],
        'zlib_checksum', at, 'bad_checksum')
    for n in range(4):
        bad('zlib', f'trailer-of-{n}-bytes', zlib_header() + body + trailer[:n],
            'input_truncated', at)
    stream = Stream(zlib_header()).fixed().literals(b'ab')
    at = stream.n
    bad('zlib', 'distance-too-far', stream.match(3, 3).end(), 'deflate_distance_too_far', at)
    bad('zlib', 'data-cut-off', zlib_header() + body[:3], 'input_truncated', 16 + 3 + 16)


# -- gzip

def gzip_header(flags=0, method=8, extra=None, name=b'', comment=b'', crc=None):
    head = b'\x1f\x8b' + bytes([method, flags]) + struct.pack('<IBB', 1, 0, 255)
    if extra is not None:
        head += struct.pack('<H', len(extra)) + extra
    head += name + comment
    if flags & 2:
        head += struct.pack('<H', (zlib.crc32(head) if crc is None else crc) & 0xffff)
    return head


def gzip_member(data, head=None):
    body = Stream().fixed().literals(data).end().bytes()
    return (head or gzip_header()) + body + struct.pack('<II', zlib.crc32(data), len(data))


def bgzf_block(data):
    packed = compress('deflate', data, 6)
    extra = b'BC' + struct.pack('<HH', 2, 12 + 6 + len(packed) + 8 - 1)
    return gzip_header(4, extra=extra) + packed + struct.pack('<II', zlib.crc32(data), len(data))


def gzip_good():
    good('gzip', 'plain', gzip_member(b'plain'))
    good('gzip', 'of-nothing', gzip_member(b''))
    good('gzip', 'header-text-flag', gzip_member(b'text', gzip_header(1)))
    good('gzip', 'header-extra', gzip_member(b'extra', gzip_header(4, extra=b'ab\x02\0cd')))
    good('gzip', 'header-extra-of-nothing', gzip_member(b'extra', gzip_header(4, extra=b'')))
    good('gzip', 'header-extra-of-65535', gzip_member(b'x', gzip_header(4, extra=noise(65535))))
    good('gzip', 'header-name', gzip_member(b'name', gzip_header(8, name=b'file\0')))
    good('gzip', 'header-comment', gzip_member(b'word', gzip_header(16, comment=b'a word\0')))
    good('gzip', 'header-crc', gzip_member(b'crc', gzip_header(2)))
    good('gzip', 'header-with-everything', gzip_member(b'all', gzip_header(
        31, extra=b'zz\0\0', name=b'name\0', comment=b'comment\0')))
    good('gzip', 'members-two', gzip_member(b'one ') + gzip_member(b'two'))
    good('gzip', 'members-hundred', b''.join(gzip_member(bytes([65 + k % 26])) for k in range(100)))
    good('gzip', 'members-with-an-empty-one', gzip_member(b'a') + gzip_member(b'') + gzip_member(b'b'))
    good('gzip', 'zeros-behind-the-end', gzip_member(b'tape') + bytes(100))
    good('gzip', 'bytes-behind-the-end', gzip_member(b'tail') + b'left alone')
    for byte in (0x00, 0x1e, 0x20, 0x78, 0x8b, 0xff):
        good('gzip', f'one-byte-{byte:02x}-behind-the-end', gzip_member(b'tail') + bytes([byte]))
    good('gzip', 'first-magic-byte-twice-behind-the-end', gzip_member(b'tail') + b'\x1f\x1f')
    good('gzip', 'first-magic-byte-behind-zeros', gzip_member(b'tail') + b'\0\x1f')
    text = words(150000)
    blocks = b''.join(bgzf_block(text[at:at + 65280]) for at in range(0, len(text), 65280))
    good('gzip', 'bgzf', blocks + bgzf_block(b''))
    good('gzip', 'bgzf-without-end-block', blocks)


def gzip_bad():
    bad('gzip', 'nothing', b'', 'input_truncated', 0)
    bad('gzip', 'magic-first-byte', b'\x1e' + gzip_member(b'x')[1:], 'gzip_magic', 0)
    bad('gzip', 'magic-second-byte', b'\x1f\x8a' + gzip_member(b'x')[2:], 'gzip_magic', 0)
    bad('gzip', 'method-7', gzip_member(b'x', gzip_header(method=7)), 'gzip_method', 0)
    for bit in (5, 6, 7):
        bad('gzip', f'reserved-flag-{bit}', gzip_member(b'x', gzip_header(1 << bit)), 'gzip_flags', 0)
    bad('gzip', 'header-crc', gzip_member(b'x', gzip_header(2, crc=0x1234)), 'gzip_header_crc', 0)
    head = gzip_header(31, extra=b'zz\0\0', name=b'name\0', comment=b'comment\0')
    for n in (1, 2, 3, 4, 9, 10, 11, 13, 16, 20, 25, len(head) - 2, len(head) - 1):
        bad('gzip', f'header-cut-off-after-{n}', head[:n], 'input_truncated', 0)
    member = gzip_member(b'trailer')
    at = 8 * (len(member) - 8)
    bad('gzip', 'checksum', member[:-8] + bytes([member[-8] ^ 1]) + member[-7:], 'gzip_checksum', at,
        'bad_checksum')
    bad('gzip', 'length', member[:-4] + bytes([member[-4] ^ 1]) + member[-3:], 'gzip_length', at,
        'bad_checksum')
    for n in range(8):
        bad('gzip', f'trailer-of-{n}-bytes', member[:len(member) - 8 + n], 'input_truncated', at)
    # The checksum is checked before the length.
    wrong = member[:-8] + bytes([member[-8] ^ 1]) + member[-7:-1]
    bad('gzip', 'checksum-and-length-cut-off', wrong, 'gzip_checksum', at, 'bad_checksum')
    first = gzip_member(b'first')
    at = 8 * len(first)
    bad('gzip', 'second-member-is-only-magic', first + b'\x1f\x8b', 'input_truncated', at)
    for n in (1, 3, 9, 10, len(head) - 1):
        bad('gzip', f'second-member-of-{n}-bytes', first + head[:n], 'input_truncated', at)
    bad('gzip', 'third-member-of-1-byte', 2 * first + b'\x1f', 'input_truncated', 2 * at)
    block = bgzf_block(b'block')
    bad('gzip', 'bgzf-of-one-more-byte', block + b'\x1f', 'input_truncated', 8 * len(block))
    end = bgzf_block(b'')
    bad('gzip', 'bgzf-of-one-byte-behind-its-end', block + end + b'\x1f', 'input_truncated',
        8 * len(block + end))
    bad('gzip', 'second-member-method-7', first + gzip_member(b'x', gzip_header(method=7)),
        'gzip_method', at)
    bad('gzip', 'second-member-checksum', first + member[:-8] + bytes(4) + member[-4:],
        'gzip_checksum', at + 8 * (len(member) - 8), 'bad_checksum')
    stream = Stream(first + gzip_header()).fixed()
    bad('gzip', 'match-into-the-member-before', stream.match(3, 1).end(), 'deflate_distance_too_far',
        at + 80 + 3)


def main():
    good('stored', 'nothing', b'')
    good('stored', 'one-byte', b'\0')
    good('stored', 'noise', noise(5000))
    deflate_blocks()
    deflate_matches()
    deflate_codes()
    deflate_long_words()
    deflate_headers()
    deflate_bad_headers()
    deflate_bad_codes()
    deflate_bad_symbols()
    deflate_cut_off()
    deflate_full()
    made_by_zlib()
    zlib_vectors()
    gzip_good()
    gzip_bad()


if __name__ == '__main__':
    main()
