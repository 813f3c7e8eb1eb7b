# SPDX-License-Identifier: Apache-2.0
"""module_tests.py: what test programs of the Python package have in common.

A program calls begin(), imports wharf, and ends with run(globals(), pattern): its tests are its functions whose names
begin with test_.  It reports in the Test Anything Protocol.
"""
import argparse
import os
import re
import subprocess
import sys
import traceback

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))


class Skipped(Exception):
    """Raised by a test that needs what is not there."""


def raises(kind, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        return error
    raise AssertionError(f'{kind} was not raised')


def in_child(function):
    """Forks; the child ends with status 0 if `function` holds there."""
    pid = os.fork()
    if pid == 0:
        try:
            function()
            os._exit(0)
        except BaseException:  # pylint: disable=broad-exception-caught
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def with_sanitizer(build):
    """Runs this program anew with the library in front that the build's module needs."""
    variant = os.path.basename(build)
    library = {'asan': 'libasan.so', 'tsan': 'libtsan.so'}.get(variant)
    if not library or 'LD_PRELOAD' in os.environ:
        return
    path = subprocess.check_output(['gcc', f'-print-file-name={library}'], text=True).strip()
    # What the interpreter itself leaves, and a child of a process with threads, are no faults here.
    more = {'LD_PRELOAD': os.path.realpath(path), 'ASAN_OPTIONS': 'detect_leaks=0',
            'TSAN_OPTIONS': 'die_after_fork=0', 'PYTHONMALLOC': 'malloc'}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **more})


def begin():
    """The build's folder and the pattern of tests; wharf can be imported from now on."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    parser.add_argument('pattern', nargs='?', default='.')
    options = parser.parse_args()
    build = os.path.join(TOP, options.build)
    if not os.path.exists(f'{build}/python/wharf/_wharf.abi3.so'):
        print("1..1\nok 1 - python_module # SKIP Python's headers are not there")
        sys.exit(0)
    with_sanitizer(build)
    sys.path.insert(0, f'{build}/python')
    os.environ['PYTHONPATH'] = f'{build}/python'
    return build, options.pattern


def run(functions, pattern):
    """Runs the tests; returns how many failed."""
    names = [name for name in functions if name.startswith('test_') and re.search(pattern, name)]
    failed = 0
    print(f'1..{len(names)}', flush=True)
    for number, name in enumerate(names, 1):
        word, end = 'ok', ''
        try:
            functions[name]()
        except Skipped as reason:
            end = f' # SKIP {reason}'
        except Exception:  # pylint: disable=broad-exception-caught
            word, failed = 'not ok', failed + 1
            print(re.sub('^', '# ', traceback.format_exc().rstrip(), flags=re.M))
        print(f'{word} {number} - {name.removeprefix("test_")}{end}', flush=True)
    return failed
