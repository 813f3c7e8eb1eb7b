# SPDX-License-Identifier: Apache-2.0
"""memory_dumps.py: the memory of real programs, as files.

A program is stopped in the middle of its work, and the resident pages of its private writable memory are read, as
gcore does: heap, stacks and data, without what was never touched.  Of more than LIMIT_NBYTES every n-th piece of 64 KiB
is kept.  The programs:

  python    CPython with a table of 200,000 rows as dictionaries and lists, a grid of numbers as an array, and text
  sqlite    SQLite with a table of 300,000 rows and an index in memory, by Python's module
  compiler  GCC's cc1 compiling 4,000 functions at -O2, when it has 96 MiB

Addresses differ from run to run, so figures of dumps differ a little.
"""
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

LIMIT_NBYTES = 16 << 20
PIECE = 64 << 10
PAGE = os.sysconf('SC_PAGE_SIZE')
READY = b'ready\n'

PYTHON = '''
import array, random, sys
source = random.Random(1)
rows = [{'id': i, 'name': f'customer {i}', 'amount': source.randrange(10 ** 6) / 100,
         'tags': [source.randrange(40) for _ in range(3)]} for i in range(200_000)]
grid = array.array('d', (300 + (i % 1000) / 7 + source.random() for i in range(1_000_000)))
text = '\\n'.join(row['name'] for row in rows)
print('ready', flush=True)
sys.stdin.read()
'''
SQLITE = '''
import random, sqlite3, sys
source = random.Random(1)
base = sqlite3.connect(':memory:')
base.execute('create table trip (id integer primary key, begun integer, zone integer, fare real, note text)')
base.executemany('insert into trip values (?, ?, ?, ?, ?)', (
    (i, 1546300800 + 7 * i, source.randrange(265), source.randrange(250, 9000) / 100, f'driver {source.randrange(999)}')
    for i in range(300_000)))
base.execute('create index by_zone on trip (zone, begun)')
print('ready', flush=True)
sys.stdin.read()
'''
COMPILER_NBYTES = 96 << 20


def regions(pid):
    """(begin, end) of private writable memory."""
    for line in pathlib.Path(f'/proc/{pid}/maps').read_text(encoding='ascii', errors='replace').splitlines():
        match = re.match(r'([0-9a-f]+)-([0-9a-f]+) rw.p', line)
        if match:
            yield int(match[1], 16), int(match[2], 16)


def resident_pages(pid):
    """What each page of the regions holds, but for those that are not there."""
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory, open(f'/proc/{pid}/pagemap', 'rb') as pagemap:
        for begin, end in regions(pid):
            pagemap.seek(begin // PAGE * 8)
            entries = struct.unpack(f'<{(end - begin) // PAGE}Q', pagemap.read((end - begin) // PAGE * 8))
            for i, entry in enumerate(entries):
                if entry >> 63:
                    memory.seek(begin + i * PAGE)
                    yield memory.read(PAGE)


def dump(pid, path):
    os.kill(pid, signal.SIGSTOP)
    contents = b''.join(resident_pages(pid))
    pieces = [contents[at:at + PIECE] for at in range(0, len(contents), PIECE)]
    path.write_bytes(b''.join(pieces[::-(-len(contents) // LIMIT_NBYTES)]))


def dump_script(script, path):
    with subprocess.Popen([sys.executable, '-c', script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            if child.stdout.readline() == READY:
                dump(child.pid, path)
        finally:
            child.kill()


def resident_nbytes(pid):
    return int(pathlib.Path(f'/proc/{pid}/statm').read_text(encoding='ascii').split()[1]) * PAGE


def some_functions(n):
    """C that keeps a compiler busy."""
    for i in range(n):
        yield (f'int f{i}(const int *p, int n) {{ int s = {i}; for (int i = 0; i < n; i++) '
               f's += p[i] > {i} ? p[i] * {i + 3} : s >> {i % 7 + 1}; return s; }}\n')


def dump_compiler(path):
    compiler = subprocess.run(['gcc', '-print-prog-name=cc1'], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / 'functions.c'
        source.write_text(''.join(some_functions(4000)), encoding='ascii')
        with subprocess.Popen([compiler, '-quiet', '-O2', source, '-o', os.devnull], stderr=subprocess.DEVNULL) as child:
            try:
                while child.poll() is None and resident_nbytes(child.pid) < COMPILER_NBYTES:
                    time.sleep(0.001)
                if child.poll() is None:
                    dump(child.pid, path)
            finally:
                child.kill()


def make_dumps(folder, complain):
    """The paths of the dumps, made anew in the folder; what cannot be made is complained of."""
    makers = {'python': lambda path: dump_script(PYTHON, path), 'sqlite': lambda path: dump_script(SQLITE, path)}
    if shutil.which('gcc'):
        makers['compiler'] = dump_compiler
    paths = []
    for name, make in makers.items():
        path = folder / f'memory-{name}'
        path.unlink(missing_ok=True)
        try:
            make(path)
        except OSError as error:
            complain(f'memory of {name}: {error}')
        if path.exists():
            paths.append(path)
        else:
            complain(f'no memory of {name}')
    return paths
