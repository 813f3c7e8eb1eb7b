#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_standins_test.py [--build FOLDER] [PATTERN]: wharf.zlib and wharf.gzip beside the standard modules.

CPython's own tests run with the stand-ins in the modules' places, where they are installed.
"""
import gzip
import io
import os
import pickle
import random
import re
import struct
import subprocess
import sys
import tempfile
import threading
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
sys.dont_write_bytecode = True
import module_tests  # noqa: E402  pylint: disable=wrong-import-position
from module_tests import Skipped, in_child, raises  # noqa: E402  pylint: disable=wrong-import-position

PATIENCE_S = 300
TEXT = b''.join(b'line %d of a text that is easily made smaller\n' % i for i in range(3000))
WBITS = (-15, -9, 0, 9, 15, 25, 31, 41, 47)
wharf = None


def packed(wbits, data=TEXT):
    deflater = zlib.compressobj(6, zlib.DEFLATED, {0: 15, 41: 25, 47: 15}.get(wbits, wbits))
    return deflater.compress(data) + deflater.flush()


# ---- CPython's tests -----------------------------------------------------------------------------

CPYTHON = '''
import sys, unittest
import wharf.zlib, wharf.gzip
sys.modules.update(zlib=wharf.zlib, gzip=wharf.gzip)
from test import test_gzip, test_zlib
suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromModule, (test_zlib, test_gzip)))
done = unittest.TextTestRunner(verbosity=2).run(suite)
'''
# What looks at parts of the standard module that the stand-in does not have: its padded file.
OF_OTHERS = {'test_prepend_error'}


def test_cpythons_own_tests_pass():
    if subprocess.run([sys.executable, '-c', 'import test.test_zlib, test.test_gzip'], check=False,
                      capture_output=True).returncode:
        raise Skipped("CPython's tests are not installed (libpython3.11-testsuite)")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, '-c', CPYTHON], check=False, capture_output=True, text=True, cwd=folder,
                              timeout=PATIENCE_S)
    ran = re.search(r'^Ran (\d+) tests', done.stderr, re.M)
    bad = set(re.findall(r'^(?:ERROR|FAIL): (\w+)', done.stderr, re.M))
    assert ran and int(ran[1]) > 100 and bad <= OF_OTHERS, done.stderr[-4000:]


# ---- zlib ----------------------------------------------------------------------------------------

def outcome_of(function, *args):
    """What it gives, or its error without what wharf adds to it."""
    try:
        return function(*args)
    except zlib.error as error:
        return str(error).partition(' (wharf')[0]


def damaged(data, chance):
    data = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data[:chance.choice((len(data), chance.randrange(len(data))))])


def test_bad_streams_give_zlibs_errors_with_wharfs_reason():
    chance, n_bad = random.Random(1), 0
    for _ in range(400):
        wbits = chance.choice(WBITS)
        data = damaged(packed(wbits, TEXT[:chance.randrange(20000)]), chance)
        expected = outcome_of(zlib.decompress, data, wbits)
        assert outcome_of(wharf.zlib.decompress, data, wbits) == expected, (wbits, expected)
        n_bad += isinstance(expected, str)
    assert n_bad > 100
    data = packed(15)
    error = raises(zlib.error, wharf.zlib.decompress, data[:100] + b'damage' + data[106:])
    assert re.match(r'Error -3 while decompressing data: invalid .* \(wharf: bad data: .*, at bit \d+\)$', str(error))
    error = raises(zlib.error, wharf.zlib.decompress, data[:-1])
    assert str(error).startswith('Error -5 while decompressing data: incomplete') and 'wharf' in str(error)


def pieces_of(module, data, wbits, chance):
    """All that an inflater says of a stream that comes in pieces."""
    inflater, said, at = module.decompressobj(wbits), [], 0
    try:
        while at < len(data) or inflater.unconsumed_tail and not inflater.eof:
            n = chance.randrange(2000)
            given = inflater.unconsumed_tail or data[at:at + n]
            at += 0 if inflater.unconsumed_tail else n
            said.append(inflater.decompress(given, chance.randrange(3000)))
            said.append((inflater.eof, inflater.unused_data, inflater.unconsumed_tail))
            if chance.randrange(20) == 0:
                inflater = inflater.copy()
        said.append(inflater.flush())
    except zlib.error as error:
        said.append(str(error).partition(' (wharf')[0])
    return said + [inflater.eof, inflater.unused_data, inflater.unconsumed_tail]


def test_pieces_give_what_zlib_gives():
    chance = random.Random(2)
    for i in range(300):
        wbits = chance.choice(WBITS)
        data = packed(wbits, TEXT[:chance.randrange(40000)]) + b'more' * chance.randrange(2)
        data = damaged(data, chance) if i % 3 == 0 else data
        expected = pieces_of(zlib, data, wbits, random.Random(i))
        assert pieces_of(wharf.zlib, data, wbits, random.Random(i)) == expected, (i, wbits)


def test_dictionaries_and_the_rest_are_zlibs():
    deflater = zlib.compressobj(zdict=b'dictionary')
    data = deflater.compress(TEXT) + deflater.flush()
    assert wharf.zlib.decompressobj(zdict=b'dictionary').decompress(data) == TEXT
    assert 'Error 2 ' in str(raises(zlib.error, wharf.zlib.decompress, data))
    assert wharf.zlib.error is zlib.error and wharf.zlib.crc32(TEXT) == zlib.crc32(TEXT)
    assert wharf.zlib.decompress(wharf.zlib.compress(TEXT)) == TEXT
    raises(ValueError, wharf.zlib.decompressobj, 16 + 48)
    raises(ValueError, wharf.zlib.decompress, TEXT, 7)
    raises(AttributeError, getattr, wharf.zlib, 'no_such_name')
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        raises(TypeError, pickle.dumps, wharf.zlib.decompressobj(), protocol)
    raises(TypeError, type(wharf.zlib.decompressobj()))
    raises(TypeError, object.__new__, type(wharf.zlib.decompressobj()))


def test_buffers_are_held_during_calls_alone():
    data, target = bytearray(packed(15)), bytearray(1000)
    inflater = wharf.zlib.decompressobj()
    inflater.decompress(data, 10)
    data.append(0)
    feeder = wharf._wharf.inflater(15)
    feeder.feed(data)
    raises(BufferError, data.append, 0)
    raises(ValueError, feeder.feed, data)
    assert feeder.readinto(target) == 1000 and target == TEXT[:1000]
    target.append(0)
    del feeder
    data.append(0)
    raises(BufferError, wharf._wharf.inflater(15).readinto, bytes(5))


def test_a_child_goes_on_with_its_copy():
    data = packed(15)
    inflater = wharf.zlib.decompressobj()
    first = inflater.decompress(data[:1000])

    def child():
        assert first + inflater.decompress(data[1000:]) == TEXT

    in_child(child)
    child()


def test_threads_take_turns_at_one_inflater():
    data = packed(15, TEXT * 20)
    inflater, made = wharf.zlib.decompressobj(), []

    def work():
        for _ in range(50):
            made.append(inflater.decompress(b''))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    whole = b''.join(inflater.decompress(data[i:i + 100]) for i in range(0, len(data), 100))
    for thread in threads:
        thread.join()
    assert whole == TEXT * 20 and not any(made)


# ---- gzip ----------------------------------------------------------------------------------------

def read_all(module, data, nbytes):
    with module.GzipFile(fileobj=io.BytesIO(data)) as file:
        parts = []
        while part := file.read(nbytes):
            parts.append(part)
        return b''.join(parts)


def test_gzip_files_are_read_as_by_the_standard_module():
    chance = random.Random(3)
    members = [gzip.compress(TEXT[:chance.randrange(3000)], mtime=i) for i in range(60)] + [gzip.compress(TEXT)]
    for data in b'', b''.join(members), members[0] + bytes(700) + members[1] + bytes(9), gzip.compress(b''):
        for nbytes in 1000, 1 << 20, -1:
            assert read_all(wharf.gzip, data, nbytes) == read_all(gzip, data, nbytes)
        assert wharf.gzip.decompress(data) == gzip.decompress(data)


def test_gzip_errors_are_the_standard_ones():
    data = gzip.compress(TEXT, mtime=0)
    cases = [(gzip.BadGzipFile, b'no gzip at all'), (gzip.BadGzipFile, data + b'more'), (EOFError, data[:-3]),
             (EOFError, data[:5]), (EOFError, data[:-500]),
             (gzip.BadGzipFile, data[:-8] + bytes(4) + data[-4:]),  # its CRC
             (gzip.BadGzipFile, data[:-4] + struct.pack('<I', 7)),  # its length
             (gzip.BadGzipFile, data[:2] + b'\x07' + data[3:]),  # its method
             (zlib.error, data[:10] + b'\xff' * 20 + data[30:])]
    for kind, bad in cases:
        for read in (lambda bad=bad: read_all(wharf.gzip, bad, 1000), lambda bad=bad: wharf.gzip.decompress(bad)):
            raises(kind, read)
        raises(kind, read_all, gzip, bad, 1000)
    error = raises(gzip.BadGzipFile, wharf.gzip.decompress, cases[5][1])
    assert re.match(r'incorrect data check \(wharf: .*bit \d+\)$', str(error)), error
    error = raises(zlib.error, wharf.gzip.decompress, cases[8][1])
    assert re.search(r'invalid .* \(wharf: before bit \d+\)$', str(error)), error
    error = raises(EOFError, wharf.gzip.decompress, data[:-3])
    assert 'end-of-stream' in str(error)


def test_gzip_files_are_opened_in_every_way():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'a.gz')
        with wharf.gzip.open(path, 'wb') as file:
            file.write(TEXT)
        with wharf.gzip.open(path, 'at', encoding='ascii') as file:
            file.write('one more\n')
        with wharf.gzip.open(path, 'rt', encoding='ascii') as file:
            assert sum(1 for _ in file) == 3001
        with wharf.gzip.open(path) as file:
            assert file.mtime is None and file.read(4) == b'line' and file.mtime
            assert file.seek(-9, os.SEEK_END) == len(TEXT) and file.read() == b'one more\n'
            assert file.seek(5) == 5 and file.read(5) == TEXT[5:10] and file.tell() == 10
            assert file.peek(3)[:3] == TEXT[10:13]
        raises(ValueError, file.read)
        raises(ValueError, wharf.gzip.open, path, 'rbt')
        raises(ValueError, wharf.gzip.open, path, 'rb', encoding='ascii')
        raises(TypeError, wharf.gzip.open, 5)
        raises(FileNotFoundError, wharf.gzip.open, path + '.no')


def main():
    global wharf  # pylint: disable=global-statement
    _, pattern = module_tests.begin()
    os.environ['WHARF_SOCKET'] = '/no/such/socket'
    import wharf as module  # pylint: disable=import-outside-toplevel
    import wharf.gzip  # noqa: F401  pylint: disable=import-outside-toplevel,redefined-outer-name
    import wharf.zlib  # noqa: F401  pylint: disable=import-outside-toplevel,redefined-outer-name
    wharf = module
    return module_tests.run(globals(), pattern) > 0


if __name__ == '__main__':
    sys.exit(main())
