#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_writing_test.py [--build FOLDER] [PATTERN]: wharf.open, which writes compressed files: whole ones or none."""
import errno
import gzip
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
sys.dont_write_bytecode = True
import module_tests  # noqa: E402  pylint: disable=wrong-import-position
from module_tests import in_child, raises  # noqa: E402  pylint: disable=wrong-import-position

TEXT = ''.join(f'line {i}, {i * i % 1013}\n' for i in range(20000)).encode()
# Of which no encoder makes less: what is written comes out at once.
NOISE = random.Random(1).randbytes(300000)
# Each format with a small chunk, where it has chunks: a file has many.
FORMATS = {'gz': {}, 'bgz': {'chunk': 5000}, 'zst': {'chunk': 5000}, 'whr': {'chunk': 5000}}
NAMES = {'gz': 'gzip', 'bgz': 'bgzf', 'zst': 'zstd', 'whr': 'wharf'}
WHARF = None
wharf = None


class Stop(Exception):
    """What ends a `with` block."""


def command(*arguments):
    return subprocess.run([WHARF, *arguments, '--embedded'], stdout=subprocess.PIPE, check=True).stdout


def read(file):
    with wharf.open(file) as inner:
        return inner.read()


def write(path, data, mode='wb', **options):
    with wharf.open(path, mode, **options) as file:
        assert file.write(data) == len(data) and file.tell() == len(data)


def fails_in_the_middle(path, data, mode='wb', **options):
    def run():
        with wharf.open(path, mode, **options) as file:
            file.write(data)
            raise Stop
    raises(Stop, run)


# ---- what is written -----------------------------------------------------------------------------

def test_each_format_is_what_others_read():
    for suffix, options in FORMATS.items():
        for data in b'', b'a', TEXT[:5000], TEXT, NOISE:
            path = f'a.{suffix}'
            write(path, data, **options)
            assert read(path) == data, (suffix, len(data))
            with open(path, 'rb') as file:
                packed = file.read()
            if suffix in ('gz', 'bgz'):
                assert gzip.decompress(packed) == data
            elif suffix == 'zst':
                assert subprocess.run(['zstd', '-dcq', path], stdout=subprocess.PIPE, check=True).stdout == data
        command('test', '-q', path)
        listed = command('list', '--json', path).decode()
        assert f'"format":"{NAMES[suffix]}"' in listed.replace(' ', ''), listed


def test_places_of_chunks_are_reached():
    for suffix in 'bgz', 'zst', 'whr':
        write(f'p.{suffix}', TEXT, **FORMATS[suffix])
        with open(f'p.{suffix}', 'r+b') as file:
            file.seek(os.path.getsize(f'p.{suffix}') // 3)
            file.write(b'\xff' * 20)
        with wharf.open(f'p.{suffix}') as file:
            file.seek(-1000, os.SEEK_END)
            assert file.read() == TEXT[-1000:], suffix


def test_pieces_and_threads_of_any_number_give_the_same():
    chance = random.Random(2)
    for suffix, options in FORMATS.items():
        made = set()
        for threads in 1, 3, 3:
            out, at = io.BytesIO(), 0
            with wharf.open(out, 'wb', format=NAMES[suffix], threads=threads, **options) as file:
                while at < len(TEXT):
                    n = chance.choice((1, 100, 4999, 5000, 70000))
                    at += file.write(memoryview(bytearray(TEXT[at:at + n])))
            made.add(out.getvalue())
        assert len(made) == 1 and read(io.BytesIO(made.pop())) == TEXT, suffix


def test_levels_codecs_and_text():
    for suffix in FORMATS:
        sizes = []
        for level in 1, 9:
            write(f'l.{suffix}', TEXT, level=level)
            assert read(f'l.{suffix}') == TEXT
            sizes.append(os.path.getsize(f'l.{suffix}'))
        assert sizes[0] != sizes[1], suffix
    for codec in 'lz4', 'zstd', 'stored':
        write('c.whr', TEXT, codec=codec)
        assert read('c.whr') == TEXT
    assert os.path.getsize('c.whr') > len(TEXT)
    with wharf.open('t.gz', 'wt', encoding='utf-16', newline='\r\n') as file:
        print('größer', 'text', sep='\n', file=file)
    assert read('t.gz').decode('utf-16') == 'größer\r\ntext\r\n'
    with wharf.open('t.gz', 'rt', encoding='utf-16') as file:
        assert file.read() == 'größer\ntext\n'


def test_text_that_is_not_taken_makes_no_file():
    def interrupted(_):
        raise KeyboardInterrupt

    text = wharf.open('i.gz', 'wt')
    text.write('text')
    text.buffer.write = interrupted
    raises(KeyboardInterrupt, text.close)
    text.close()
    assert text.closed and not os.path.exists('i.gz')


def test_bad_arguments_make_no_file():
    before = os.listdir()
    for kind, name, options in ((ValueError, 'n', {}), (ValueError, 'n.gz', {'level': 10}), (ValueError, 'n.gz', {'chunk': 9}),
                                (ValueError, 'n.zst', {'chunk': 5}), (ValueError, 'n.bgz', {'chunk': 1 << 20}),
                                (ValueError, 'n.whr', {'codec': 'none'}), (ValueError, 'n.zst', {'codec': 'zstd'}),
                                (ValueError, 'n.whr', {'codec': 'rle1', 'chunk': 0}), (ValueError, 'n.gz', {'index': 'i'}),
                                (ValueError, 'n.gz', {'encoding': 'ascii'}), (ValueError, 'n', {'format': 'lz4'}),
                                (TypeError, 'n.gz', {'level': 'text'}), (OverflowError, 'n.gz', {'level': 1 << 80}),
                                (TypeError, io.StringIO(), {'format': 'gzip'}), (TypeError, 5, {'format': 'gzip'})):
        raises(kind, wharf.open, name, 'wb', **options)
    raises(LookupError, wharf.open, 'n.gz', 'wt', encoding='none')
    raises(ValueError, wharf.open, 'n.gz', 'rw')
    raises(ValueError, wharf.open, 'n.gz', 'wbt')
    raises(ValueError, wharf.open, __file__, level=5)
    assert os.listdir() == before


# ---- whole or not at all -------------------------------------------------------------------------

def test_a_name_is_given_to_whole_files():
    for suffix in FORMATS:
        path = f'w.{suffix}'
        fails_in_the_middle(path, NOISE)
        assert not os.path.exists(path)
        with wharf.open(path, 'xb') as file:
            file.write(TEXT)
            assert not os.path.exists(path) and not [name for name in os.listdir() if name.startswith('.')]
        raises(FileExistsError, wharf.open, path, 'x')
        os.chmod(path, 0o640)
        fails_in_the_middle(path, NOISE)
        raises(Stop, fail_in_text, path)
        file = wharf.open(path, 'w')
        file.write(NOISE)
        file.discard()
        file.discard()
        file.close()
        raises(ValueError, file.write, b'more')
        assert read(path) == TEXT
        write(path, NOISE)
        assert read(path) == NOISE and os.stat(path).st_mode & 0o777 == 0o640
    assert not [name for name in os.listdir() if name.startswith('.')]


def fail_in_text(path):
    with wharf.open(path, 'wt') as file:
        file.write('text')
        raise Stop


def test_nobody_closes():
    for mode in 'wb', 'wt':
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            file = wharf.open('n.gz', mode)
            file.write(TEXT if mode == 'wb' else 'text')
            del file
        assert [one.category for one in caught] == [ResourceWarning] and not os.path.exists('n.gz')


UNCLOSED = '''
import random, wharf
for mode in 'ab', 'at':
    file = wharf.open('u.gz', mode, threads=1)
    file.write('text' if mode == 'at' else random.Random(1).randbytes(20 << 20))
    del file
wharf.open('u.gz', 'a').close()
'''


def test_warnings_that_are_errors_leave_nothing():
    write('u.gz', TEXT)
    done = subprocess.run([sys.executable, '-W', 'error', '-c', UNCLOSED], check=False, capture_output=True)
    assert done.returncode == 0 and done.stderr.count(b'\nResourceWarning') == 2, done
    assert read('u.gz') == TEXT


def test_what_comes_between_is_left():
    file = wharf.open('b.gz', 'x')
    put('b.gz', b'another')
    raises(FileExistsError, file.close)
    file.close()
    assert file.closed and open('b.gz', 'rb').read() == b'another'  # pylint: disable=consider-using-with


def put(path, data):
    with open(path, 'wb') as file:
        file.write(data)


def test_links_are_followed_and_stay():
    os.mkdir('folder')
    os.symlink('folder/real.gz', 'link.gz')
    for data in b'new', b'old':
        write('link.gz', data)
        assert os.path.islink('link.gz') and read('folder/real.gz') == data
    os.symlink('nowhere.gz', 'x.gz')
    raises(FileExistsError, wharf.open, 'x.gz', 'x')


class NoNameless:
    """As on a file system that has no files without a name."""

    def __enter__(self):
        self.open = os.open

        def without(path, flags, *rest):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, 'no')
            return self.open(path, flags, *rest)
        os.open = without

    def __exit__(self, *_):
        os.open = self.open


def test_file_systems_without_nameless_files():
    with NoNameless():
        for mode in 'wb', 'xb':
            fails_in_the_middle(f'{mode}.gz', TEXT, mode)
            with wharf.open(f'{mode}.gz', mode) as file:
                file.write(TEXT)
                assert not os.path.exists(f'{mode}.gz') and [name for name in os.listdir() if name.startswith(f'.{mode}')]
            assert read(f'{mode}.gz') == TEXT
        write('wb.gz', NOISE)
        file = wharf.open('y.gz', 'x')
        put('y.gz', b'another')
        raises(FileExistsError, file.close)
    assert read('wb.gz') == NOISE and not [name for name in os.listdir() if name.startswith('.')]


KILLED = '''
import os, sys, wharf
file = wharf.open(sys.argv[1], sys.argv[2])
for _ in range(30):
    file.write(os.urandom(1 << 17))
os.kill(os.getpid(), 9)
'''


def killed(path, mode):
    done = subprocess.run([sys.executable, '-c', KILLED, path, mode], check=False)
    assert done.returncode == -signal.SIGKILL


def test_a_killed_process_leaves_what_was_there():
    write('k.bgz', TEXT)
    before = os.listdir()
    killed('k.bgz', 'w')
    assert read('k.bgz') == TEXT and os.listdir() == before
    # What was appended has no end.
    write('k.gz', TEXT)
    killed('k.gz', 'a')
    with wharf.open('k.gz') as file:
        assert file.read(len(TEXT)) == TEXT
        raises(wharf.DataError, file.read)


# ---- appending -----------------------------------------------------------------------------------

def test_members_are_appended_whole():
    for suffix in 'gz', 'whr':
        path = f'm.{suffix}'
        write(path, TEXT, 'ab')
        write(path, NOISE, 'ab')
        size = os.path.getsize(path)
        fails_in_the_middle(path, NOISE, 'ab')
        assert os.path.getsize(path) == size
        with wharf.open(path, 'at') as file:
            file.write('end')
            raises(BlockingIOError, wharf.open, path, 'a')
        assert read(path) == TEXT + NOISE + b'end'
    assert gzip.open('m.gz').read() == TEXT + NOISE + b'end'  # pylint: disable=consider-using-with
    for name in 'm.bgz', 'm.zst':
        raises(io.UnsupportedOperation, wharf.open, name, 'a')
    write('blocks.gz', TEXT, format='bgzf')
    for name, options in (('m.gz', {'format': 'wharf'}), ('blocks.gz', {}), (__file__, {'format': 'gzip'})):
        raises(ValueError, wharf.open, name, 'a', **options)
    put('empty.gz', b'')
    write('empty.gz', TEXT, 'a')
    assert read('empty.gz') == TEXT


# ---- objects, pipes, errors ----------------------------------------------------------------------

def test_objects_are_left_bad_where_they_are_given_up():
    for name, data in ((name, data) for name in NAMES.values() for data in (b'', TEXT[:100], NOISE * 5)):
        out = io.BytesIO()
        fails_in_the_middle(out, data, format=name, threads=1)
        raises(wharf.DataError, read, io.BytesIO(out.getvalue()))
        assert not out.closed
    with open('o.gz', 'wb') as inner, wharf.open(inner, 'w') as file:
        file.write(TEXT)
    with open('o.zst', 'wb', buffering=0) as inner, wharf.open(inner, 'wt') as file:
        file.write(TEXT.decode())
    assert read('o.gz') == read('o.zst') == TEXT


def test_pipes_take_what_is_written():
    os.mkfifo('pipe.gz')
    taken = []
    reader = threading.Thread(target=lambda: taken.append(gzip.open('pipe.gz').read()))
    reader.start()
    write('pipe.gz', TEXT)
    reader.join()
    assert taken == [TEXT]


def test_errors_of_the_file_system_are_oserrors():
    os.symlink('/dev/full', 'full.bgz')
    file = wharf.open('full.bgz', 'w', threads=1)
    assert raises(OSError, lambda: [file.write(NOISE) for _ in range(50)]).errno == errno.ENOSPC
    for call in lambda: file.write(b'more'), file.close:
        assert raises(OSError, call).errno == errno.ENOSPC
    file.close()
    text = wharf.open('full.bgz', 'wt')
    text.write('text')
    assert raises(OSError, text.close).errno == errno.ENOSPC
    text.close()
    assert text.closed
    assert raises(FileNotFoundError, wharf.open, 'no/such.gz', 'w').filename == os.path.abspath('no/such.gz')
    os.mkdir('folder.gz')
    raises(IsADirectoryError, wharf.open, 'folder.gz', 'w')
    raises(IsADirectoryError, wharf.open, 'new.gz/', 'w', format='gzip')
    raises(NotADirectoryError, wharf.open, f'{__file__}/a.gz', 'w')


class Short(bytes):
    """Longer than it says."""

    def __len__(self):
        return 1


class Odd(io.RawIOBase):
    """A file that takes as much as `answer` says."""

    def __init__(self, answer):
        super().__init__()
        self.answer, self.parts = answer, []

    def writable(self):
        return True

    def write(self, data):
        n = self.answer(data)
        self.parts.append(bytes(data[:n]))
        return n


class Wrapped:
    """A raw file inside, as tempfile.NamedTemporaryFile(buffering=0) has one."""

    def __init__(self):
        self.made = b''

    def write(self, data):
        self.made += data[:100]
        return len(data[:100])


class Silent(Wrapped):
    """Takes all, and does not say so."""

    def write(self, data):
        self.made += data


def test_files_that_misbehave_do_no_harm():
    slow = Odd(lambda data: min(len(data), 7))
    write(slow, TEXT[:2000], format='gzip')
    assert read(io.BytesIO(b''.join(slow.parts))) == TEXT[:2000]
    for answer, kind in ((lambda data: None, BlockingIOError), (lambda data: 0, ValueError), (lambda data: len(data) + 1, ValueError),
                         (lambda data: 'text', TypeError), (lambda data: 1 / 0, ZeroDivisionError)):
        file = wharf.open(Odd(answer), 'w', format='zstd')
        raises(kind, file.close)
        assert file.closed
    for kind in Wrapped, Silent:
        file = kind()
        write(file, TEXT, format='gzip')
        assert read(io.BytesIO(file.made)) == TEXT
    again = Odd(lambda data: file.write(b'more') and len(data))
    file = wharf.open(again, 'w', format='zstd')
    file.write(TEXT)
    raises(RuntimeError, file.close)
    with wharf.open(io.BytesIO(), 'w', format='gzip') as file:
        for data in 'text', 5, None:
            raises(TypeError, file.write, data)
        raises(BufferError, file.write, memoryview(TEXT)[::2])
        assert file.write(b'') == file.write(memoryview(b'')) == 0
        assert file.write(Short(TEXT)) == file.tell() == len(TEXT)
        raises(io.UnsupportedOperation, file.read)
        raises(io.UnsupportedOperation, file.seek, 0)
        assert file.writable() and not file.readable() and not file.seekable()


def test_threads_and_children_share_no_file():
    with wharf.open('s.gz', 'w') as file, wharf.open('s.bgz', 'wt') as text:
        text.write('parent')

        def child():
            raises(ValueError, file.write, b'child')
            file.close()
            raises(ValueError, text.close)

        in_child(child)
        threads = [threading.Thread(target=lambda: [file.write(b'12345678') for _ in range(2000)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert read('s.gz') == b'12345678' * 6000 and read('s.bgz') == b'parent'


def test_a_child_keeps_no_lock():
    write('k.gz', TEXT)
    for is_given_up in False, True:
        file = wharf.open('k.gz', 'a')
        file.write(b'more')
        here, there = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(there)
            os.read(here, 1)  # until the parent has ended it
            os._exit(0)
        if is_given_up:
            file.discard()
        else:
            file.close()
        wharf.open('k.gz', 'a').close()
        os.close(there)
        os.close(here)
        os.waitpid(pid, 0)
    assert read('k.gz') == TEXT + b'more'
    # One that lets go of its copy leaves the parent's lock.
    with wharf.open('k.gz', 'a') as file:
        in_child(file.close)
        raises(BlockingIOError, wharf.open, 'k.gz', 'a')


ENDS = '''
import os, sys, threading, warnings, wharf
warnings.simplefilter('ignore')
kept = wharf.open('e.gz', 'w')
text = wharf.open('e.bgz', 'wt')
text.write('text')
begun = threading.Event()
def work(file):
    while True:
        file.write(bytes(1 << 20))
        begun.set()
for name in 'e.zst', 'e.whr':
    threading.Thread(target=work, args=(wharf.open(name, 'w'),), daemon=True).start()
begun.wait()
'''


def test_interpreters_end_while_files_are_written():
    done = subprocess.run([sys.executable, '-c', ENDS], check=False, capture_output=True, timeout=300)
    assert done.returncode == 0 and not done.stderr, done
    assert not [name for name in os.listdir() if name.startswith(('e.', '.'))]


def main():
    global wharf, WHARF  # pylint: disable=global-statement
    build, pattern = module_tests.begin()
    os.environ['WHARF_SOCKET'] = '/no/such/socket'
    import wharf as module  # pylint: disable=import-outside-toplevel
    wharf = module
    WHARF = os.path.join(module_tests.TOP, 'build/release/wharf')
    with tempfile.TemporaryDirectory(prefix='wharf-python.') as folder:
        os.chdir(folder)
        try:
            return module_tests.run(globals(), pattern) > 0
        finally:
            os.chdir('/')


if __name__ == '__main__':
    sys.exit(main())
