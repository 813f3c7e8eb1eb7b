#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_files_test.py [--build FOLDER] [PATTERN]: wharf.open, which reads compressed files.

Files are made by the command, by Python's own modules and by tests/lib/frame_files.py.
"""
import gzip
import io
import mmap
import os
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import threading
import warnings
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
sys.dont_write_bytecode = True
import frame_files  # noqa: E402  pylint: disable=wrong-import-position
import module_tests  # noqa: E402  pylint: disable=wrong-import-position
from module_tests import in_child, raises  # noqa: E402  pylint: disable=wrong-import-position

LINES = [f'line {i}, {i * i % 1013}: of a text that is made smaller\n' for i in range(30000)]
TEXT = ''.join(LINES).encode()
FOLDER = None
WHARF = None
wharf = None


def command(*arguments, data=None):
    return subprocess.run([WHARF, *arguments], input=data, capture_output=True, check=True).stdout


def put(name, data):
    path = os.path.join(FOLDER, name)
    with open(path, 'wb') as file:
        file.write(data)
    return path


def pack(suffix, *options):
    path = os.path.join(FOLDER, f'packed{"".join(options)}.{suffix}')
    if not os.path.exists(path):
        command('pack', '-q', *options, '-o', path, put('plain', TEXT))
    return path


def lz4_file():
    """Stored blocks of 64 KiB, as LZ4 frames have them."""
    blocks = b''.join(struct.pack('<I', len(part) | 1 << 31) + part
                      for part in (TEXT[i:i + 65536] for i in range(0, len(TEXT), 65536)))
    return put('a.lz4', frame_files.header(check=False) + blocks + frame_files.end())


def paths():
    """Of each format a file of TEXT."""
    yield put('a.gz', gzip.compress(TEXT[:400000], mtime=0) + gzip.compress(TEXT[400000:], mtime=0))
    yield put('a.zlib', zlib.compress(TEXT))
    yield pack('gz', '--format', 'bgzf')
    yield pack('zst', '--format', 'zstd')
    yield pack('whr')
    yield put('stream.zst', subprocess.run(['zstd', '-q'], input=TEXT, stdout=subprocess.PIPE, check=True).stdout)
    yield lz4_file()
    path = put('indexed.gz', gzip.compress(TEXT))
    command('index', '-f', '--spacing', '256K', path)
    yield path


# ---- reading -------------------------------------------------------------------------------------

def test_children_and_threads_read_one_file():
    for path in pack('whr'), pack('gz', '--format', 'bgzf'):
        def child(path=path):
            with wharf.open(path) as own:
                assert own.read() == TEXT

        # A sanitizer's allocator may be locked by a thread that is just ending: children come first.
        in_child(child)
    for path in pack('whr'), pack('gz', '--format', 'bgzf'):
        with wharf.open(path) as file:
            parts = []

            def work(file=file, parts=parts):
                while part := file.read(50000):
                    parts.append(part)

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(parts) == sorted(TEXT[i:i + 50000] for i in range(0, len(TEXT), 50000)), path


def test_each_format_is_read_whole():
    for path in paths():
        with wharf.open(path) as file:
            assert file.read() == TEXT, path
            assert file.read(5) == b'' and file.tell() == len(TEXT) and file.name == path
        with wharf.open(path, 'rt', encoding='ascii') as file:
            assert list(file) == LINES, path
        with open(path, 'rb') as inner, wharf.open(inner) as file:
            assert file.read() == TEXT, path


def test_any_place_is_reached():
    chance = random.Random(1)
    for path in paths():
        with wharf.open(path) as file:
            for _ in range(30):
                offset, nbytes = chance.randrange(len(TEXT)), chance.choice((1, 100, 300000))
                assert file.seek(offset) == offset and file.read(nbytes) == TEXT[offset:offset + nbytes], path
            assert file.seek(-100, os.SEEK_END) == len(TEXT) - 100 and file.read() == TEXT[-100:], path
            assert file.seek(len(TEXT) + 50) and file.read() == b'' and file.seek(0) == 0
            assert file.readline() == LINES[0].encode() and file.seek(7, os.SEEK_CUR) == file.tell()
            raises(ValueError, file.seek, -1)


def test_places_are_reached_without_what_is_before():
    """Bytes before what is asked for are damaged, and nobody looks at them."""
    for path in pack('whr'), pack('gz', '--format', 'bgzf'), pack('zst', '--format', 'zstd'):
        with open(path, 'rb') as file:
            data = bytearray(file.read())
        at = len(data) // 3
        data[at:at + 20] = b'\xff' * 20
        with wharf.open(put('damaged', data)) as file:
            file.seek(-1000, os.SEEK_END)
            assert file.read() == TEXT[-1000:], path
            file.seek(0)
            raises(wharf.DataError, file.read)


def test_pipes_are_read_forward():
    for path in paths():
        read_end, write_end = os.pipe()

        def feed(path=path, write_end=write_end):
            with open(path, 'rb') as source, open(write_end, 'wb') as pipe:
                try:
                    pipe.write(source.read())
                except BrokenPipeError:
                    pass

        feeder = threading.Thread(target=feed)
        feeder.start()
        with open(read_end, 'rb', buffering=0) as pipe:
            if path.endswith('.whr'):
                raises(io.UnsupportedOperation, wharf.open, pipe)
            else:
                with wharf.open(pipe) as file:
                    assert not file.seekable() and file.read() == TEXT, path
        feeder.join()


def test_objects_that_read_are_files():
    with wharf.open(io.BytesIO(gzip.compress(TEXT))) as file:
        assert file.read(100) == TEXT[:100]
    inner = io.BytesIO(b'before' + zlib.compress(TEXT))
    inner.seek(6)
    with wharf.open(inner, format='zlib') as file:
        assert file.read(10) == TEXT[:10] and file.seek(0) == 0 and file.read() == TEXT
    assert not inner.closed
    with wharf.open(io.BytesIO(b'')) as file:
        assert file.read() == b''


# ---- indexes -------------------------------------------------------------------------------------

def test_an_index_is_used_if_it_is_true():
    data = bytearray(gzip.compress(TEXT))
    path = put('i.gz', data)
    command('index', '--spacing', '256K', path)
    # By the index the damaged beginning is not looked at.  It tells files by their ends.
    status = os.stat(path)
    data[66000:66020] = bytes(20)
    with open(path, 'r+b') as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with wharf.open(path) as file:
        file.seek(-100, os.SEEK_END)
        assert file.read() == TEXT[-100:]
    with wharf.open(path, index=False) as file:
        raises(wharf.DataError, file.seek, -100, os.SEEK_END)


def test_an_index_that_is_not_true_is_said_and_passed_over():
    path = put('j.gz', gzip.compress(TEXT))
    put('j.gz.whi', b'no index')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        with wharf.open(path) as file:
            assert file.read() == TEXT
    assert len(caught) == 1 and 'is no index' in str(caught[0].message)
    raises(ValueError, wharf.open, path, index=path + '.whi')
    command('index', '-f', '--spacing', '256K', path)
    os.utime(path, (5, 5))
    assert 'of another file' in str(raises(ValueError, wharf.open, path, index=path + '.whi'))
    raises(FileNotFoundError, wharf.open, path, index=path + '.no')
    raises(ValueError, wharf.open, io.BytesIO(gzip.compress(TEXT)), index=path + '.whi')


def test_damaged_indexes_do_no_harm():
    chance, path = random.Random(2), put('k.gz', gzip.compress(TEXT))
    command('index', '-f', '--spacing', '256K', path)
    with open(path + '.whi', 'rb') as file:
        index = file.read()
    for _ in range(60):
        damaged = bytearray(index)
        damaged[chance.randrange(len(index))] ^= 1 << chance.randrange(8)
        put('k.whi', damaged[:chance.choice((len(index), chance.randrange(len(index))))])
        try:
            with wharf.open(path, index=os.path.join(FOLDER, 'k.whi')) as file:
                offset = chance.randrange(len(TEXT))
                file.seek(offset)
                assert file.read(100) == TEXT[offset:offset + 100]
        except ValueError as error:
            assert 'damaged' in str(error) or 'no index' in str(error) or 'another' in str(error), error


# ---- bad data ------------------------------------------------------------------------------------

def test_frames_give_their_output_or_reason_and_bit():
    for name, data, output in frame_files.good_cases():
        if not name.endswith('.br'):
            with wharf.open(io.BytesIO(data)) as file:
                assert file.read() == output, name
    n = 0
    for name, data, result, reason, bit in frame_files.bad_cases():
        if name.endswith('.br'):
            continue
        with wharf.open(io.BytesIO(data)) as file:
            error = raises(wharf.DataError, file.read)
        assert (error.result, error.reason) == (result, reason) and bit in (None, error.bit), (name, error)
        n += 1
    assert n > 20


def test_damaged_files_are_bad_or_give_what_is_right():
    chance = random.Random(3)
    for path in paths():
        with open(path, 'rb') as file:
            good = file.read()
        for i in range(12):
            data = bytearray(good)
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            if i % 3 == 0:
                del data[chance.randrange(len(data)):]
            try:
                with wharf.open(io.BytesIO(data)) as file:
                    # Stored blocks without checks can be anything.
                    assert len(file.read()) >= 0
            except wharf.DataError as error:
                assert 0 <= error.bit <= 8 * len(data), (path, error)


def test_bytes_before_the_bad_place_are_given_first():
    data = gzip.compress(TEXT)
    with wharf.open(io.BytesIO(data[:len(data) // 2])) as file:
        first = file.read(100000)
        assert first == TEXT[:100000]
        error = raises(wharf.BadDataError, file.read)
        assert error.reason == 'input_truncated' and error.bit <= 4 * len(data)


def test_what_cannot_be_read_is_said():
    error = raises(wharf.UnsupportedError, wharf.open, io.BytesIO(b'\xfd7zXZ\x00 and so on'))
    assert 'xz' in str(error) and error.result == 'unsupported'
    raises(wharf.UnsupportedError, wharf.open, io.BytesIO(b'plain text'))
    raises(FileNotFoundError, wharf.open, '/no/such/file')
    raises(ValueError, wharf.open, io.BytesIO(b''), 'rb', encoding='ascii')
    raises(ValueError, wharf.open, io.BytesIO(b'abc'), format='zip')


def test_what_is_written_is_read():
    """python_writing_test.py has more."""
    for name, chunk in ('gzip', None), ('bgzf', 1024), ('zstd', 1024), ('wharf', 333):
        for size in 0, 1, 70000:
            out = io.BytesIO()
            with wharf.open(out, 'w', format=name, chunk=chunk, threads=2) as file:
                file.write(TEXT[:size])
            with wharf.open(io.BytesIO(out.getvalue())) as file:
                assert file.read() == TEXT[:size], (name, size)


# ---- hostile programs ----------------------------------------------------------------------------

class Rude(io.BytesIO):
    """A file that gives what nobody asked for."""

    def __init__(self, data, answer):
        super().__init__(data)
        self.answer = answer

    def read(self, nbytes=-1):
        data = super().read(nbytes)
        return self.answer(data) if self.tell() > 70000 else data


def test_files_that_misbehave_do_no_harm():
    def fail(_):
        raise RuntimeError('this file fails')

    answers = (fail, RuntimeError), (lambda data: data + b'more', None), (lambda data: None, None), \
        (lambda data: bytearray(data[:4000]), None), (lambda data: 'text', TypeError)
    for path in paths():
        with open(path, 'rb') as file:
            data = file.read()
        for answer, kind in answers:
            try:
                with wharf.open(Rude(data, answer)) as file:
                    file.read()
            except (wharf.DataError, TypeError, ValueError, RuntimeError) as error:
                assert kind is None or isinstance(error, (kind, wharf.DataError, ValueError)), (path, error)


def test_readers_are_not_used_twice_at_once():
    """A read function that reads the same container."""
    with open(pack('whr'), 'rb') as file:
        data = file.read()
    container = None

    def read_at(offset, nbytes):
        raises(ValueError, container.next)
        raises(ValueError, container.seek, 0)
        return data[offset:offset + nbytes]

    container = wharf._wharf.Container(read_at, len(data))
    begin, first = container.next()
    assert begin == 0 and first and TEXT.startswith(first)
    assert container.total() == len(TEXT)


ENDS = '''
import sys, threading, wharf
def read():
    while True:
        with wharf.open(sys.argv[1]) as file:
            file.read()
for _ in range(3):
    threading.Thread(target=read, daemon=True).start()
with wharf.open(sys.argv[1]) as file:
    file.read(1000)
kept = wharf.open(sys.argv[1])
kept.read(1000)
'''


def test_interpreters_end_while_files_are_read():
    for path in pack('whr'), pack('gz', '--format', 'bgzf'), pack('zst', '--format', 'zstd'):
        done = subprocess.run([sys.executable, '-c', ENDS, path], check=False, capture_output=True, timeout=300)
        assert done.returncode == 0, done


def odd_values():
    """Arguments that nobody should give, and pickles can."""
    released = memoryview(b'released')
    released.release()
    loop = []
    loop.append(loop)
    return [None, -1, 0, 1, 1 << 40, 1 << 70, 0.5, float('nan'), b'', b'bytes', 'text', '\0', bytearray(100), released,
            memoryview(bytes(100))[::2], loop, {}, (), lambda *_: None, lambda *_: b'x' * 100, object, len]


def test_odd_arguments_do_no_harm():
    """Each type, function and method of the extension module, as a hostile pickle may call them."""
    module, chance, n = wharf._wharf, random.Random(4), 0
    made = [module.inflater(), module.Stream('gzip'), module.Container(lambda *_: bytes(200), 500),
            module.Container(lambda *_: None, 1 << 63), module.Client('embedded'),
            *(module.Packer(name, threads=1) for name in ('gzip', 'bgzf', 'zstd', 'wharf'))]
    made += [made[4].alloc(100), made[4].submit(b'bytes', 'stored'), made[4].submit_batch([b'bytes'], 'stored', sizes=9)]
    for _ in range(4000):
        thing = chance.choice([module, *made])
        names = [name for name in dir(thing) if name not in ('_end', '_forked') and callable(getattr(thing, name))]
        function, values = getattr(thing, chance.choice(names)), odd_values()
        try:
            function(*(chance.choice(values) for _ in range(chance.randrange(4))))
            n += 1
        except (Exception, SystemError):  # pylint: disable=broad-exception-caught
            assert not isinstance(sys.exc_info()[1], (SystemError, RecursionError)), (function, sys.exc_info())
    assert n > 100


def test_pickles_make_nothing_half_made():
    """What reduces to a call of object.__new__ or of a type without its arguments."""
    for kind in (type(wharf._wharf.inflater()), wharf._wharf.Stream, wharf._wharf.Container, wharf._wharf.GzipIndex,
                 wharf._wharf.Packer, wharf.Job, wharf.Memory):
        name = f'{kind.__module__}\n{kind.__name__}\n'.encode()
        for make in (b'c' + name + b'(tR.', b'c' + name + b')\x81.',
                     b'ccopyreg\n_reconstructor\n(c' + name + b'c__builtin__\nobject\nNtR.'):
            raises((TypeError, AttributeError, pickle.UnpicklingError, ImportError), pickle.loads, make)
        stream = wharf._wharf.Stream('gzip')
        raises(TypeError, pickle.dumps, stream)


def test_calls_inside_calls_are_refused():
    """The end of a buffer, which is let go inside a call, runs code that makes another one."""
    for made in wharf._wharf.Stream('gzip'), wharf._wharf.inflater():
        said = []

        class Last(bytearray):
            def __del__(self, made=made, said=said):
                said.append(raises(RuntimeError, made.feed, b'again'))

        made.feed(Last())
        made.feed(b'')
        assert len(said) == 1
    if sys.version_info >= (3, 12):
        for made in wharf._wharf.Stream('gzip'), wharf._wharf.inflater(), wharf._wharf.Packer('gzip'):
            class Own:
                def __buffer__(self, _, made=made):
                    getattr(made, 'feed', getattr(made, 'pack', None))(b'')
                    return memoryview(b'own')
            try:
                getattr(made, 'feed', getattr(made, 'pack', None))(Own())
            except RuntimeError as error:
                assert 'inside' in str(error)


def test_buffers_cannot_go_away_during_a_call():
    """Other threads try to shrink, release and close what is read and written."""
    chance, packed = random.Random(5), gzip.compress(TEXT)
    with tempfile.TemporaryFile() as file:
        file.write(packed)
        file.flush()
        mapped = mmap.mmap(file.fileno(), len(packed), access=mmap.ACCESS_READ)
        source, target, ends = bytearray(packed), bytearray(len(TEXT)), threading.Event()
        view = memoryview(source)

        def pull():
            while not ends.is_set():
                for attempt in (lambda: source.pop(), lambda: target.pop(), view.release, mapped.close):
                    try:
                        attempt()
                        return
                    except BufferError:
                        pass

        # Held from here on, so that it is the calls that race.
        held = memoryview(mapped), memoryview(source), memoryview(target)
        thread = threading.Thread(target=pull)
        held[1].release()
        thread.start()
        try:
            for _ in range(20):
                given = chance.choice((mapped, view, source, packed))
                n = chance.randrange(1, 100000)
                try:
                    if chance.randrange(2):
                        assert wharf.decompress(given, 'gzip', out=target) == len(TEXT)
                    else:
                        inflater = wharf._wharf.inflater(31)
                        inflater.feed(given)
                        assert inflater.readinto(memoryview(target)[:n]) == n and target[:n] == TEXT[:n]
                except (ValueError, BufferError) as error:
                    assert not isinstance(error, wharf.DataError) or len(source) < len(packed), error
        finally:
            ends.set()
            thread.join()
            held[0].release()
            held[2].release()


def main():
    global wharf, FOLDER, WHARF  # pylint: disable=global-statement
    build, pattern = module_tests.begin()
    os.environ['WHARF_SOCKET'] = '/no/such/socket'
    import wharf as module  # pylint: disable=import-outside-toplevel
    wharf = module
    # Of a build with sanitizers only the module is wanted: the command makes the files.
    WHARF = os.path.join(module_tests.TOP, 'build/release/wharf')
    with tempfile.TemporaryDirectory(prefix='wharf-python.') as folder:
        FOLDER = folder
        return module_tests.run(globals(), pattern) > 0


if __name__ == '__main__':
    sys.exit(main())
