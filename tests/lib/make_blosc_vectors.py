#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_blosc_vectors.py FOLDER: writes the vectors of blosc.

It needs numpy and the packages blosc, blosc2 and bitshuffle, which make the chunks and say what is in
them; nothing else in the tree needs them.  Bad chunks are good ones that are made bad in one place,
and what is wrong there is said here.
"""
import hashlib
import itertools
import pathlib
import struct
import sys
import zlib

import bitshuffle
import blosc
import blosc2
import numpy as np
from blosc2 import Codec, Filter, SpecialValue, SplitMode

FOLDER = pathlib.Path(sys.argv[1])
UNSUPPORTED = {'blosc_version', 'blosc_flags', 'blosc_filter', 'blosc_codec'}
LZ4, ZSTD = 256, 512


def write(kind, name, stream, expectation):
    folder = FOLDER / 'blosc' / kind
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(stream)
    (folder / (name + '.expect')).write_text(
        ''.join(f'{key} {value}\n' for key, value in expectation.items()), encoding='ascii')


def good(name, stream, output, parameter=0, in_nbytes=None):
    output = bytes(output)
    assert not (FOLDER / 'blosc' / 'ok' / name).exists(), name
    expectation = {
        'result': 'ok', 'reason': 'none', 'in_nbytes': in_nbytes or len(stream),
        'out_nbytes': len(output), 'crc32': f'{zlib.crc32(output):08x}',
        'sha256': hashlib.sha256(output).hexdigest()}
    if parameter:
        expectation['parameter'] = parameter
    write('ok', name, stream, expectation)


def bad(name, stream, reason, at, parameter=0):
    result = ('output_too_small' if reason == 'output_full' else
              'unsupported' if reason in UNSUPPORTED else 'bad_data')
    expectation = {'result': result, 'reason': reason, 'bit_offset': 8 * at, 'out_avail': 65536}
    if parameter:
        expectation['parameter'] = parameter
    write('bad', name, stream, expectation)


# ---- chunks of Blosc 2 ------------------------------------------------------------------------

def numbers(nbytes, typesize, seed=1):
    """Numbers that grow slowly, with some noise, and so with bytes that are alike."""
    random = np.random.default_rng(seed)
    kind = {1: 'u1', 2: '<i2', 4: '<f4', 8: '<f8'}.get(typesize, 'u1')
    n = nbytes // np.dtype(kind).itemsize + 1
    steps = random.integers(0, 3, n)
    values = np.cumsum(steps) / (7 if kind in ('<f4', '<f8') else 1)
    if kind == 'u1':
        values = (np.arange(n) % max(typesize, 1) * 3 + np.cumsum(steps) // typesize) % 251
    return values.astype(kind).tobytes()[:nbytes]


def pipeline(*filters):
    """The last ones of six, with their metas."""
    filters = [f if isinstance(f, tuple) else (f, 0) for f in filters]
    filters = [(Filter.NOFILTER, 0)] * (6 - len(filters)) + filters
    return {'filters': [f for f, _ in filters], 'filters_meta': [meta for _, meta in filters]}


def pack(data, typesize, codec, **settings):
    settings = {'clevel': 5, 'nthreads': 1, 'splitmode': SplitMode.AUTO_SPLIT, **settings}
    return blosc2.compress2(data, typesize=typesize, codec=codec, **settings)


def chunk(name, data, typesize, codec, **settings):
    packed = pack(data, typesize, codec, **settings)
    good(name, packed, blosc2.decompress2(packed))


CODECS = [Codec.BLOSCLZ, Codec.LZ4, Codec.LZ4HC, Codec.ZLIB, Codec.ZSTD]
PIPELINES = {
    'bytes': pipeline(),
    'shuffle': pipeline(Filter.SHUFFLE),
    'bitshuffle': pipeline(Filter.BITSHUFFLE),
    'delta': pipeline(Filter.DELTA),
    'delta-shuffle': pipeline(Filter.DELTA, Filter.SHUFFLE),
    'delta-bitshuffle': pipeline(Filter.DELTA, Filter.BITSHUFFLE),
}


def write_codecs_and_filters():
    for codec, (name, settings) in itertools.product(CODECS, PIPELINES.items()):
        for typesize in (4, 8):
            chunk(f'{codec.name.lower()}-{name}-{typesize}', numbers(1500, typesize), typesize, codec,
                  blocksize=512, **settings)


def write_type_sizes():
    for typesize in (1, 2, 3, 5, 6, 7, 12, 16, 17, 24, 32, 33, 64, 100, 128, 255):
        data = numbers(45 * typesize + 301, typesize)
        for name in ('shuffle', 'bitshuffle', 'delta-shuffle'):
            chunk(f'type-{typesize}-{name}', data, typesize, Codec.LZ4, blocksize=typesize * 40,
                  **PIPELINES[name])


def write_sizes():
    for nbytes in (0, 1, 7, 31, 32, 33, 127, 128, 129, 1000, 1023, 1025, 4099):
        for name in ('shuffle', 'bitshuffle'):
            chunk(f'size-{nbytes}-{name}', numbers(nbytes, 4), 4, Codec.ZSTD,
                  blocksize=1024 if nbytes > 1024 else 0, **PIPELINES[name])
    noise = np.random.default_rng(3).bytes(1500)
    chunk('copy', noise, 4, Codec.LZ4, **PIPELINES['shuffle'])
    chunk('copy-of-level-0', numbers(1000, 4), 4, Codec.LZ4, clevel=0, **PIPELINES['shuffle'])
    good('bytes-behind-the-chunk', pack(numbers(900, 4), 4, Codec.LZ4) + b'what is this',
         numbers(900, 4), in_nbytes=len(pack(numbers(900, 4), 4, Codec.LZ4)))


def write_splits():
    for mode, codec in itertools.product(SplitMode, (Codec.BLOSCLZ, Codec.LZ4, Codec.ZSTD)):
        for typesize in (2, 8):
            chunk(f'split-{mode.name.lower()[:-6].replace("_", "-")}-{codec.name.lower()}-{typesize}',
                  numbers(2500, typesize), typesize, codec, splitmode=mode, blocksize=1024,
                  **PIPELINES['shuffle'])
    # Streams of zeros, of another byte, and as they are.
    random = np.random.default_rng(5)
    values = random.integers(0, 1 << 16, 2000).astype('<u4') | 0xab000000
    chunk('runs-and-copies-of-streams', values.tobytes(), 4, Codec.LZ4,
          splitmode=SplitMode.ALWAYS_SPLIT, blocksize=2000, **PIPELINES['shuffle'])
    values = np.zeros(3000, '<u8')
    values[1700] = 5
    chunk('streams-of-zeros', values.tobytes(), 8, Codec.ZSTD, splitmode=SplitMode.ALWAYS_SPLIT,
          blocksize=4096, **PIPELINES['shuffle'])


def write_precision():
    for typesize, bits in ((4, 5), (4, 12), (4, 20), (8, 5), (8, 30), (8, 48)):
        truncated = (Filter.TRUNC_PREC, bits)
        data = numbers(4000, typesize)
        chunk(f'precision-{typesize}-{bits}-shuffle', data, typesize, Codec.ZSTD, blocksize=2048,
              **pipeline(truncated, Filter.SHUFFLE))
        chunk(f'precision-{typesize}-{bits}-delta-bitshuffle', data, typesize, Codec.LZ4,
              blocksize=2048, **pipeline(truncated, Filter.DELTA, Filter.BITSHUFFLE))


def write_pipelines():
    data = numbers(2300, 4)
    for name, filters in {
            'shuffle-twice': (Filter.SHUFFLE, Filter.SHUFFLE),
            'shuffle-and-bitshuffle': (Filter.SHUFFLE, Filter.BITSHUFFLE),
            'bitshuffle-and-shuffle': (Filter.BITSHUFFLE, Filter.SHUFFLE),
            'shuffle-by-two': ((Filter.SHUFFLE, 2),),
            'shuffle-by-eight': ((Filter.SHUFFLE, 8),),
            'shuffle-by-seven': ((Filter.SHUFFLE, 7),),
            'six-filters': (Filter.TRUNC_PREC, Filter.DELTA, Filter.SHUFFLE, Filter.NOFILTER,
                            Filter.BITSHUFFLE, Filter.SHUFFLE)}.items():
        filters = [(f, 20) if f == Filter.TRUNC_PREC else f for f in filters]
        chunk(name, data, 4, Codec.LZ4, blocksize=1000, **pipeline(*filters))


def write_specials():
    for typesize, kind in ((1, 'u1'), (2, '<i2'), (4, '<f4'), (8, '<f8')):
        for value in (SpecialValue.ZERO, SpecialValue.NAN, SpecialValue.UNINIT, SpecialValue.VALUE):
            if value == SpecialValue.NAN and typesize < 4:
                continue
            store = blosc2.SChunk(chunksize=3000 * typesize, cparams={'typesize': typesize})
            argument = np.array(77, kind)[()] if value == SpecialValue.VALUE else None
            store.fill_special(3000, value, *([] if argument is None else [argument]))
            packed = store.get_chunk(0)
            output = (np.zeros(3000, kind) if value == SpecialValue.UNINIT else
                      np.frombuffer(blosc2.decompress2(packed), np.uint8))
            good(f'special-{value.name.lower()}-{typesize}', packed, output.tobytes())
    # Values of a size that the header cannot say, made by hand.
    value = bytes(range(1, 201)) * 2
    packed = bytearray(pack(bytes(4000), 4, Codec.LZ4))
    packed = header(packed[:32], nbytes=4000, cbytes=432, special=3) + value
    good('special-value-400', packed, value * 10)


def write_large():
    """Blocks that are larger than scratch: they are put in order in the output."""
    for typesize, name in itertools.product((2, 3, 4, 8, 200), ('shuffle', 'bitshuffle')):
        data = (np.arange(100001) // 50 % 7).astype('<u4').tobytes()[:392000 + typesize // 2]
        chunk(f'large-{typesize}-{name}', data, typesize, Codec.ZSTD, clevel=9,
              splitmode=SplitMode.NEVER_SPLIT, blocksize=len(data) // typesize // 8 * 8 * typesize,
              **PIPELINES[name])


# ---- chunks of Blosc 1 ------------------------------------------------------------------------

def write_blosc_1():
    for codec in ('blosclz', 'lz4', 'lz4hc', 'zlib', 'zstd'):
        for shuffle in (0, 1, 2):
            for typesize in (4, 17):
                data = numbers(1503, typesize)
                packed = blosc.compress(data, typesize, 5, shuffle, codec)
                good(f'blosc1-{codec}-{shuffle}-{typesize}', packed, data)
    good('blosc1-nothing', blosc.compress(b'', 4), b'')


# ---- bitshuffle's framing ---------------------------------------------------------------------

def frame(data, kind, block=0, codec=LZ4):
    """The framing of elements, with blocks of so many."""
    array = np.frombuffer(data, kind)
    block = block or max(8192 // array.itemsize // 8 * 8, 128)
    compress = bitshuffle.compress_lz4 if codec == LZ4 else bitshuffle.compress_zstd
    return (struct.pack('>QI', array.nbytes, block * array.itemsize) +
            compress(array, block).tobytes())


def write_frames():
    for kind, n, block in itertools.product(('u1', '<u2', '<f4', '<f8', 'V3', 'V16'), (8, 205), (0, 64)):
        size = np.dtype(kind).itemsize
        data = numbers(n * size, size)
        good(f'bitshuffle-lz4-{size}-{n}-{block}', frame(data, kind, block), data, LZ4 + size)
    for size, kind in ((2, '<u2'), (8, '<f8')):
        data = numbers(1003 * size, size)
        good(f'bitshuffle-zstd-{size}', frame(data, kind, 256, ZSTD), data, ZSTD + size)
    good('bitshuffle-nothing', struct.pack('>QI', 0, 64), b'', LZ4 + 4)
    good('bitshuffle-less-than-eight', struct.pack('>QI', 20, 64) + b'abcdefghijklmnopqrst',
         b'abcdefghijklmnopqrst', LZ4 + 4)


# ---- bad ones ---------------------------------------------------------------------------------

def header(packed, **fields):
    """With other values in the header."""
    packed = bytearray(packed)
    for name, value in fields.items():
        if name in ('nbytes', 'blocksize', 'cbytes'):
            struct.pack_into('<i', packed, {'nbytes': 4, 'blocksize': 8, 'cbytes': 12}[name], value)
        elif name == 'special':
            packed[31] |= value << 4
        else:
            packed[{'version': 0, 'flags': 2, 'typesize': 3, 'filter': 21, 'flags2': 30,
                    'flags3': 31}[name]] = value
    return bytes(packed)


def at32(packed, place, value):
    packed = bytearray(packed)
    struct.pack_into('<i', packed, place, value)
    return bytes(packed)


def write_bad_headers():
    packed = pack(numbers(3000, 4), 4, Codec.LZ4, blocksize=1024, **PIPELINES['shuffle'])
    codec_bits = packed[2] & 31
    for name, fields, reason in (
            ('version-1', {'version': 1}, 'blosc_version'),
            ('version-7', {'version': 7}, 'blosc_version'),
            ('elements-of-nothing', {'typesize': 0}, 'blosc_header'),
            ('negative-output', {'nbytes': -1}, 'blosc_header'),
            ('negative-block', {'blocksize': -5}, 'blosc_header'),
            ('block-of-nothing', {'blocksize': 0}, 'blosc_header'),
            ('negative-chunk', {'cbytes': -1}, 'blosc_header'),
            ('chunk-without-header', {'cbytes': 31}, 'blosc_header'),
            ('chunk-past-the-source', {'cbytes': len(packed) + 1}, 'input_truncated'),
            ('more-blocks-than-starts', {'blocksize': 1}, 'blosc_header'),
            ('variable-blocks', {'flags2': 1}, 'blosc_flags'),
            ('lazy', {'flags3': 8}, 'blosc_flags'),
            ('instrumented', {'flags3': 128}, 'blosc_flags'),
            ('special-5', {'special': 5}, 'blosc_flags'),
            ('special-7', {'special': 7}, 'blosc_flags'),
            ('filter-of-users', {'filter': 35}, 'blosc_filter'),
            ('filter-5', {'filter': 5}, 'blosc_filter'),
            ('snappy-of-blosc-2', {'flags': codec_bits | 2 << 5}, 'blosc_codec'),
            ('codec-of-users', {'flags': codec_bits | 6 << 5}, 'blosc_codec'),
            ('copy-of-another-size', {'flags': packed[2] | 2}, 'blosc_header'),
            ('value-that-does-not-add-up', {'special': 3}, 'blosc_header'),
            ('too-much-output', {'nbytes': 70000, 'blocksize': 70000}, 'output_full')):
        bad(name, header(packed, **fields), reason, 0)
    bad('nan-of-two-bytes', header(packed, special=2, typesize=2), 'blosc_header', 0)
    for nbytes in (0, 15, 16, 31):
        bad(f'header-of-{nbytes}', packed[:nbytes], 'input_truncated', 0)


def write_bad_blocks():
    packed = pack(numbers(3000, 4), 4, Codec.LZ4, blocksize=1024, splitmode=SplitMode.NEVER_SPLIT,
                  **PIPELINES['shuffle'])
    n = len(packed)
    starts = struct.unpack_from('<3i', packed, 32)
    first = starts[0]
    size = struct.unpack_from('<i', packed, first)[0]
    bad('start-in-the-header', at32(packed, 32, 31), 'blosc_start', 32)
    bad('start-in-the-starts', at32(packed, 36, 40), 'blosc_start', 36)
    bad('start-at-the-end', at32(packed, 40, n - 3), 'blosc_start', 40)
    bad('start-negative', at32(packed, 32, -1), 'blosc_start', 32)
    bad('stream-past-the-end', at32(packed, first, n), 'blosc_stream', first)
    bad('stream-of-an-unknown-run', at32(packed, first, -1)[:first + 4] + b'\2' + packed[first + 5:],
        'blosc_stream', first)
    bad('stream-of-a-run-of-256', at32(packed, first, -256)[:first + 4] + b'\1' + packed[first + 5:],
        'blosc_stream', first)
    bad('stream-cut-short', at32(packed, first, size - 1), 'input_truncated|lz4_end|blosc_stream',
        first)
    write('bad', 'stream-cut-short', at32(packed, first, size - 1), {'result': 'bad_data'})
    # All blocks in the last one's place but one.
    longest = max(starts[:2], key=lambda at: struct.unpack_from('<i', packed, at)[0])
    overlapping = packed
    for k in range(3):
        overlapping = at32(overlapping, 32 + 4 * k, longest)
    overlapping = header(overlapping, nbytes=3072)
    total = n - 44
    used = 4 + struct.unpack_from('<i', packed, longest)[0]
    assert 3 * used > total, (used, total)
    bad('streams-that-overlap', overlapping, 'blosc_overlap', longest)
    bad('lz4-with-offset-0', one_block(b'\x10a\0\0\x50bbbbb', 100, 1), 'lz4_offset', 40)
    bad('stream-with-less-output', one_block(b'\x50bbbbb', 100, 1), 'blosc_stream', 36)
    bad('stream-with-more-output', one_block(b'\x60bbbbbb', 5, 1), 'blosc_stream', 36)
    bad('blosclz-match-before-the-output', one_block(b'\0a\x20\1\0b', 100, 0), 'blosc_lz_offset', 42)
    bad('blosclz-match-at-the-end', one_block(b'\0a\x20\0', 4, 0), 'blosc_stream', 36)
    write('bad', 'blosclz-match-at-the-end', one_block(b'\0a\x20\0', 5, 0),
          {'result': 'bad_data', 'reason': 'input_truncated', 'bit_offset': 8 * 42})
    bad('blosclz-literals-missing', one_block(b'\3ab', 100, 0), 'input_truncated', 40)
    bad('zlib-with-a-wrong-checksum', one_block(zlib.compress(b'abc' * 20)[:-1] + b'?', 60, 3),
        'zlib_checksum', 0)
    broken = one_block(zlib.compress(b'abc' * 20)[:-1] + b'?', 60, 3)
    write('bad', 'zlib-with-a-wrong-checksum', broken,
          {'result': 'bad_checksum', 'reason': 'zlib_checksum', 'bit_offset': 8 * (len(broken) - 4),
           'out_avail': 60})


def one_block(stream, nbytes, inside):
    """A chunk of one block with one stream."""
    head = struct.pack('<BBBBiii', 5, 1, 0x15 | inside << 5, 1, nbytes, nbytes, 40 + len(stream))
    return head + bytes(16) + struct.pack('<ii', 36, len(stream)) + stream


def write_bad_frames():
    data = numbers(4004, 4)
    packed = frame(data, '<f4', 256)
    bad('bitshuffle-cut-in-the-header', packed[:11], 'input_truncated', 0, LZ4 + 4)
    bad('bitshuffle-half-an-element', struct.pack('>QI', 4002, 1024) + packed[12:], 'blosc_header', 0,
        LZ4 + 4)
    bad('bitshuffle-block-of-nothing', struct.pack('>QI', 4004, 0) + packed[12:], 'blosc_header', 0,
        LZ4 + 4)
    bad('bitshuffle-block-of-half-eights', struct.pack('>QI', 4004, 1028) + packed[12:],
        'blosc_header', 0, LZ4 + 4)
    bad('bitshuffle-too-much-output', struct.pack('>QI', 1 << 40, 1024) + packed[12:], 'output_full',
        0, LZ4 + 4)
    bad('bitshuffle-cut-in-a-size', packed[:14], 'input_truncated', 12, LZ4 + 4)
    bad('bitshuffle-cut-in-a-stream', packed[:30], 'blosc_stream', 12, LZ4 + 4)
    bad('bitshuffle-cut-in-the-rest', packed[:-1], 'input_truncated', len(packed) - 4, LZ4 + 4)


write_codecs_and_filters()
write_type_sizes()
write_sizes()
write_splits()
write_precision()
write_pipelines()
write_specials()
write_large()
write_blosc_1()
write_frames()
write_bad_headers()
write_bad_blocks()
write_bad_frames()
