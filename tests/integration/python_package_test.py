#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_package_test.py [--build FOLDER] [PATTERN]: the package as a whole: its page of examples, its wheel, its stubs."""
import ast
import gzip
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
sys.dont_write_bytecode = True
import module_tests  # noqa: E402  pylint: disable=wrong-import-position
from module_tests import TOP, Skipped  # noqa: E402  pylint: disable=wrong-import-position
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

LOG = ''.join(f'{i}: {"an error" if i % 10 == 0 else "all is well"}\n' for i in range(50000))
BUILD = None
wharf = None


# ---- the page ------------------------------------------------------------------------------------

def put(name, data):
    with open(name, 'wb') as file:
        file.write(data)


def make_files():
    """What the examples read."""
    put('log.gz', gzip.compress(LOG.encode()))
    put('damaged.gz', gzip.compress(LOG.encode())[:60000] + bytes(20000))
    put('chunks.bin', b''.join(struct.pack('<I', len(part)) + part for part in [zlib.compress(bytes(1000))] * 20))
    for name, options in ('reads.gz', ('--format', 'bgzf')), ('block.zst', ('--format', 'zstd')):
        data = LOG.encode() if name == 'reads.gz' else LOG.encode()[:60000]
        put(name, subprocess.run([f'{TOP}/build/release/wharf', 'pack', '-q', *options], input=data, check=True,
                                 stdout=subprocess.PIPE).stdout)


SAID = (r'20 chunks, 20000 bytes', rf"in the middle of {len(LOG)} bytes: b'.*\\n'", r'5000 lines with errors',
        r'\d{4,} bytes were read; then \w+ at bit \d+', r"\[60000, 60000, 60000, 60000\] bytes, the first ones b'0: a'",
        rf'\[{len(LOG)}, {len(LOG)}, {len(LOG)}\]')


def test_examples_of_the_page_run_with_a_daemon_and_without():
    with open(f'{TOP}/clientlib/python/EXAMPLES.md', encoding='utf-8') as file:
        examples = re.findall(r'^```python\n(.*?)^```', file.read(), re.M | re.S)
    assert len(examples) == len(SAID)
    daemon = Daemon(f'{BUILD}/wharfd')
    try:
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            make_files()
            for number, (example, said) in enumerate(zip(examples, SAID), 1):
                for socket in daemon.socket, '/no/such/socket':
                    done = subprocess.run([sys.executable, '-c', example], check=False, capture_output=True, text=True,
                                          timeout=300, env={**os.environ, 'WHARF_SOCKET': socket})
                    assert done.returncode == 0 and not done.stderr, (number, done)
                    assert re.fullmatch(said, done.stdout.strip()), (number, done)
            os.chdir(before)
    finally:
        daemon.remove()


# ---- the wheel -----------------------------------------------------------------------------------

FIRST = 'import gzip, wharf; assert wharf.decompress(gzip.compress(b"text")) == b"text"; print(wharf.__file__)'


def test_wheel_installs_in_a_clean_environment():
    if os.path.basename(BUILD) in ('asan', 'tsan'):
        raise Skipped('the library of a sanitizer comes first in a process')
    plain = {name: value for name, value in os.environ.items() if not name.startswith(('MAKE', 'MFLAGS', 'PYTHON'))}
    lock = ['flock', f'{BUILD}/make.lock']
    subprocess.run([*lock, 'make', '-s', '-C', TOP, f'VARIANT={os.path.basename(BUILD)}', 'wheel'], check=True, env=plain,
                   stdout=subprocess.DEVNULL)
    path, = [f'{BUILD}/wheel/{name}' for name in os.listdir(f'{BUILD}/wheel') if name.endswith('.whl')]
    assert re.search(r'/wharf-[\d.]+-cp311-abi3-linux_\w+\.whl$', path)
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        module = wheel.read('wharf/_wharf.abi3.so')
    # Nothing but the C library is needed of the machine.
    for name in b'libz.so', b'libdeflate.so', b'libprotobuf-c.so', b'libzstd.so', b'liblz4.so':
        assert name not in module, name
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, '-m', 'venv', folder], check=True, env=plain)
        subprocess.run([f'{folder}/bin/pip', 'install', '-q', '--no-index', '--disable-pip-version-check', path], check=True,
                       env=plain)
        done = subprocess.run([f'{folder}/bin/python', '-c', FIRST], check=True, env=plain, capture_output=True, text=True,
                              cwd=folder)
        assert done.stdout.startswith(folder), done


# ---- the stubs -----------------------------------------------------------------------------------

def test_stubs_name_what_is_there():
    with open(f'{TOP}/clientlib/python/wharf/__init__.pyi', encoding='utf-8') as file:
        tree = ast.parse(file.read())
    named = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    named |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    named = {name for name in named if not name.startswith('_') or name == '__version__'}
    there = {name for name in (*vars(wharf), *wharf._LATER) if not name.startswith('_')} | {'__version__'}
    assert named == there - {'gzip', 'zlib', *(name for name in there if f'wharf.{name}' in sys.modules)}, named ^ there
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith('_'):
            assert getattr(wharf, node.name).__doc__, f'{node.name} has no documentation'
        if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith('__'):
                    assert getattr(getattr(wharf, node.name), method.name).__doc__, (node.name, method.name)


# An interpreter's completion of names asks dir().
def test_dir_has_names_that_are_loaded_later():
    there = dir(wharf)
    assert wharf._LATER.keys() <= set(there), there
    assert 'decompress' in there


def main():
    global BUILD, wharf  # pylint: disable=global-statement
    BUILD, pattern = module_tests.begin()
    import wharf as module  # pylint: disable=import-outside-toplevel
    wharf = module
    return module_tests.run(globals(), pattern) > 0


if __name__ == '__main__':
    sys.exit(main())
