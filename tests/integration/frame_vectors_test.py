#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files of LZ4 frames, framed Snappy and Brotli through the command: each case of tests/lib/frame_files.py
with its output, or its reason and bit; each cut off everywhere, each with each bit flipped; and what
liblz4, libsnappy and libbrotlienc write."""
import ctypes
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import frame_files as ff  # noqa: E402  pylint: disable=wrong-import-position

WHARF = os.path.abspath(os.path.join(TOP, os.environ.get('BUILD', 'build/release'), 'wharf'))
CORPUS = os.path.join(TOP, 'tests', 'fuzz', 'corpus', 'frame_fuzz')
GOOD = list(ff.good_cases())
BAD = list(ff.bad_cases())


def wharf(command, *arguments, data=None):
    return subprocess.run([WHARF, command, '--embedded', *arguments], input=data, capture_output=True,
                          check=False)


def put(name, data):
    with open(name, 'wb') as file:
        file.write(data)
    return name


def option_of(name):
    return ['--codec', 'brotli'] if name.endswith('.br') else []


def test_cases_are_kept_as_files():
    for name, data, *_ in GOOD + BAD:
        if ff.kept(name, data):
            with open(f'{CORPUS}/{name}', 'rb') as file:
                assert file.read() == data, f'{name}: frame_files.py {CORPUS} writes it anew'


def test_good_files_give_their_output():
    for name, data, output in GOOD:
        put(name, data)
        for options in ([], ['--engine', 'reference'], ['-T', '1']):
            if name.endswith('.br') and 'reference' in options:
                continue
            done = wharf('cat', *options, name)
            assert (done.returncode, done.stdout, done.stderr) == (0, output, b''), (name, done)
        done = wharf('cat', *option_of(name), data=data)
        assert (done.returncode, done.stdout) == (0, output), (name, done)


def test_bad_files_are_bad_for_their_reason_at_their_bit():
    for name, data, result, reason, bit in BAD:
        put(name, data)
        for options in ([], ['--engine', 'reference']):
            if name.endswith('.br') and options:
                continue
            done = wharf('cat', '--report', *options, name)
            report = json.loads(done.stderr.splitlines()[-1])
            assert done.returncode == (4 if result == 'unsupported' else 1), (name, done)
            assert (report['result'], report['reason']) == (result, reason), (name, report)
            assert bit is None or report['bit_offset'] == bit, (name, report)


def verdicts(prefix, files):
    """Whether `wharf test` finds each of these good, by its message."""
    names = [put(f'{prefix}-{i:05}{".br" if prefix == "brotli" else ""}', data)
             for i, data in enumerate(files)]
    said = wharf('test', '-v', *names).stderr.decode().splitlines()
    good = {line.split(': ')[1] for line in said if ': good, ' in line}
    bad = {line.split(': ')[1] for line in said if ' at byte ' in line or ' is ' in line}
    assert len(good) + len(bad) == len(names), said[-1]
    for name in names:
        os.unlink(name)
    return [name in good for name in names]


FLIPPED = {
    'lz4': ff.header(block_checks=True, content=41) + ff.block(ff.sequence(ff.TEXT[:30]), check=True) +
           ff.block(ff.TEXT[:11], True, check=True) + ff.end(ff.TEXT[:30] + ff.TEXT[:11]),
    'snappy': ff.IDENTIFIER + ff.stored(ff.TEXT[:11]) +
              ff.compressed(ff.varint(30) + ff.literals(ff.TEXT[:30]), ff.TEXT[:30]),
    'brotli': b'\x0b\x02\x80hello\x03',
}


def test_files_that_are_cut_off_are_bad_everywhere():
    for name, data in FLIPPED.items():
        found = verdicts(name, [data[:n] for n in range(1, len(data))])
        # Framed Snappy has no end: what ends between two chunks is good.
        between = {10, 10 + 8 + 11} if name == 'snappy' else set()
        assert {i + 1 for i, good in enumerate(found) if good} == between, name
    legacy = ff.LEGACY + ff.block(ff.sequence(ff.TEXT)) + ff.block(ff.sequence(ff.MORE))
    found = verdicts('legacy', [legacy[:n] for n in range(1, len(legacy))])
    assert {i + 1 for i, good in enumerate(found) if good} == {4, 4 + 4 + len(ff.sequence(ff.TEXT))}


def test_every_flipped_bit_is_found():
    for name in ('lz4', 'snappy'):
        data = FLIPPED[name]
        flips = []
        for bit in range(8 * len(data)):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            flips.append(bytes(flipped))
        found = verdicts(name, flips)
        # A chunk of Snappy whose type becomes one to be passed over is passed over.
        passed = {8 * 10 + 7, 8 * (10 + 8 + 11) + 7} if name == 'snappy' else set()
        assert {i for i, good in enumerate(found) if good} == passed, name


# ---- other programs' libraries -----------------------------------------------------------------

class Preferences(ctypes.Structure):
    """LZ4F_preferences_t of liblz4 1.9."""
    _fields_ = [(name, kind) for name, kind in (
        ('block', ctypes.c_int), ('independent', ctypes.c_int), ('check', ctypes.c_int),
        ('frame', ctypes.c_int), ('content', ctypes.c_ulonglong), ('dictionary', ctypes.c_uint),
        ('block_check', ctypes.c_int), ('level', ctypes.c_int), ('flush', ctypes.c_uint),
        ('speed', ctypes.c_uint), ('reserved', ctypes.c_uint * 3))]


def library(name):
    loaded = ctypes.CDLL(name)
    for function in ('LZ4F_compressFrameBound', 'LZ4F_compressFrame', 'snappy_max_compressed_length'):
        if hasattr(loaded, function):
            getattr(loaded, function).restype = ctypes.c_size_t
    return loaded


def lz4_frame(lz4, data, **settings):
    preferences = Preferences(**settings)
    bound = lz4.LZ4F_compressFrameBound(ctypes.c_size_t(len(data)), ctypes.byref(preferences))
    out = ctypes.create_string_buffer(bound)
    n = lz4.LZ4F_compressFrame(out, ctypes.c_size_t(bound), data, ctypes.c_size_t(len(data)),
                               ctypes.byref(preferences))
    assert n <= bound
    return out.raw[:n]


def some_text(nbytes):
    """Words and numbers, some 3 to 1, with a stretch that does not compress."""
    draw = random.Random(nbytes)
    words = [bytes(draw.choices(b'etaoinshrdlu', k=draw.randrange(1, 9))) for _ in range(500)]
    text = b' '.join(draw.choices(words, k=nbytes // 4))[:nbytes * 3 // 4]
    return text + draw.randbytes(nbytes - len(text))


def agree(name, packed, data):
    put(name, packed)
    done = wharf('cat', name)
    assert done.returncode == 0 and done.stdout == data, (name, done.stderr)


def test_frames_of_liblz4():
    lz4 = library('liblz4.so.1')
    for nbytes in (0, 1, 65535, 65536, 65537, 700000):
        data = some_text(nbytes)
        for i, independent in enumerate((0, 1)):
            settings = {'block': 4 + i, 'independent': independent, 'check': i, 'block_check': 1 - i,
                        'content': nbytes * i, 'level': 9 * i}
            agree('liblz4', lz4_frame(lz4, data, **settings), data)
    data = some_text(5 << 20)
    agree('liblz4', lz4_frame(lz4, data, block=7, independent=1, check=1), data)
    agree('liblz4', lz4_frame(lz4, data, block=4, independent=0, check=1) +
          lz4_frame(lz4, data[:99], block=4), data + data[:99])


def framed_snappy(snappy, data):
    out = ff.IDENTIFIER
    for at in range(0, len(data), 65536):
        part = data[at:at + 65536]
        raw = ctypes.create_string_buffer(snappy.snappy_max_compressed_length(ctypes.c_size_t(len(part))))
        n = ctypes.c_size_t(len(raw))
        assert snappy.snappy_compress(part, ctypes.c_size_t(len(part)), raw, ctypes.byref(n)) == 0
        out += ff.compressed(raw.raw[:n.value], part)
    return out


def test_chunks_of_libsnappy():
    snappy = library('libsnappy.so.1')
    for nbytes in (0, 1, 65536, 65537, 400000):
        data = some_text(nbytes)
        agree('libsnappy', framed_snappy(snappy, data), data)


def test_streams_of_libbrotlienc():
    brotli = library('libbrotlienc.so.1')
    for nbytes, quality, window in ((0, 11, 22), (1, 0, 10), (100000, 9, 16), (3 << 20, 2, 24)):
        data = some_text(nbytes)
        out = ctypes.create_string_buffer(nbytes + 1000)
        n = ctypes.c_size_t(len(out))
        assert brotli.BrotliEncoderCompress(quality, window, 0, ctypes.c_size_t(nbytes), data,
                                            ctypes.byref(n), out)
        agree('libbrotli.br', out.raw[:n.value], data)


# ---- memory ------------------------------------------------------------------------------------

def peak_mib(path):
    """Of `wharf test` with two threads."""
    done = subprocess.run(['/usr/bin/time', '-f', '%M', WHARF, 'test', '--embedded', '-T', '2', path],
                          capture_output=True, check=True)
    return int(done.stderr) / 1024


def test_much_output_of_little_input_takes_no_memory():
    run = ff.sequence(b'\0', 1, (4 << 20) - 6) + ff.sequence(bytes(5))
    empty = struct.pack('<I', 1) + b'\0'
    put('bomb', ff.header(block=7, check=False) + ff.block(run) * 64 + ff.end())
    put('linked', ff.header(linked=True, block=7, check=False) + ff.block(run) * 64 + ff.end())
    put('hail', ff.header(block=7, check=False) + empty * 400000 + ff.end())
    for name in ('bomb', 'linked', 'hail'):
        assert peak_mib(name) < 64, name


TESTS = [value for name, value in list(globals().items()) if name.startswith('test_')]


def main():
    failed = 0
    print(f'1..{len(TESTS)}')
    with tempfile.TemporaryDirectory(prefix='wharf-frames.') as folder:
        os.chdir(folder)
        for number, test in enumerate(TESTS, 1):
            try:
                test()
                word = 'ok'
            except Exception as error:  # pylint: disable=broad-exception-caught
                word, failed = 'not ok', failed + 1
                print(f'# {error!r}'[:2000])
            print(f'{word} {number} - {test.__name__[5:]}', flush=True)
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
