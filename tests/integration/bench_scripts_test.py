#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts and programs of tests/bench and tests/gpu: what they do where nothing can be measured.

Each answers --help and does nothing else then; and share-run makes its rows of what each peer says.
Of programs those are run that are built; of all of them the sources are looked at.
Reports in the Test Anything Protocol.
"""
import argparse
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
BENCH = TOP / 'tests' / 'bench'
BUILD = TOP / os.environ.get('BUILD', 'build/release')
# What a program is called whose source is not called so.
NAMES = {'gpu_.*_main': lambda stem: 'wharf_' + stem.removesuffix('_main'),
         'damage_main': lambda stem: 'damage',
         '(storms|owners|holds)_main': lambda stem: 'wharf_' + stem.removesuffix('_main')}
sys.dont_write_bytecode = True
sys.path.insert(0, str(BENCH))

# What a script would begin its work with.
TOOLS = ('make', 'git', 'gcc', 'g++', 'nvcc', 'strip', 'ldd', 'install', 'rm', 'mkdir', 'cp')
# Rows of one process each, as these programs print them.
NVCOMP = {'peer': 'nvcomp', 'mode': 'host', 'codec': 'deflate', 'data': 'mc0', 'chunk': 65536, 'chunks': 16,
          'calls': 90, 'GBps': 0.25, 'p50_us': 900.0, 'p99_us': 1100.0, 'wrong': 0, 'device': 'none'}
LIBDEFLATE = {'chunk': 65536, 'chunks': 16, 'calls': 80, 'GBps': 0.5, 'p50_us': 700.0, 'p99_us': 800.0,
              'p999_us': 900.0, 'max_us': 950.0, 'slow_per_s': 1.0, 'by_cpu': 0, 'by_gpu': 0, 'by_here': 0,
              'wrong': 0}
WHARF = {**LIBDEFLATE, 'by_cpu': 320, 'by_gpu': 640, 'by_here': 320,
         **{f'{which}_{part}_us': 10.0 for which in ('mid', 'tail') for part in ('queue', 'run', 'rest')}}


def scripts():
    return [path for folder in (BENCH, TOP / 'tests' / 'gpu', TOP / 'tests' / 'hostile') for path in sorted(folder.iterdir())
            if path.is_file() and os.access(path, os.X_OK)]


def make_tools(folder):
    """Programs that leave a mark and fail."""
    folder.mkdir()
    for name in TOOLS:
        tool = folder / name
        tool.write_text(f'#!/bin/sh\n: > "{folder.parent}/{name} ran"\nexit 1\n', encoding='ascii')
        tool.chmod(0o755)


def results():
    return {path: path.stat().st_mtime_ns for path in (BENCH / 'results').iterdir()}


def help_is_all_that_there_is_to_it():
    """In a folder with nothing in it, alone and behind another word."""
    before = results()
    for script in scripts():
        name = 'run' if script.name == 'bundle-run' else script.name
        for words in (['--help'], ['some', '--help']):
            with tempfile.TemporaryDirectory() as folder:
                make_tools(pathlib.Path(folder, 'tools'))
                done = subprocess.run(
                    [script, *words], cwd=folder, capture_output=True, text=True, check=False,
                    env={**os.environ, 'PATH': f'{folder}/tools:{os.environ["PATH"]}',
                         'PYTHONDONTWRITEBYTECODE': '1'})
                left = sorted(set(os.listdir(folder)) - {'tools'})
            if (done.returncode, done.stderr, left) != (0, '', []):
                yield f'{script.name} {words}: status {done.returncode}, leaves {left}, {done.stderr}'
            if not done.stdout.startswith(f'usage: {name} '):
                yield f'{script.name} {words}: says {done.stdout[:80]!r}'
    if results() != before:
        yield 'results have changed'


def programs():
    """Sources that have a main(), and the names of their programs."""
    for folder in ('bench', 'gpu', 'hostile'):
        for path in sorted((TOP / 'tests' / folder).iterdir()):
            if path.suffix in ('.c', '.cc', '.cu'):
                text = path.read_text(encoding='utf-8')
                if main := re.search(r'^int main\((.*)\)\n{\n *(.*)', text, re.MULTILINE):
                    name = next((make(path.stem) for form, make in NAMES.items() if re.fullmatch(form, path.stem)),
                                path.stem)
                    yield path, name, text, main


def programs_answer_help_first():
    """Before they look for a GPU, for root or for files."""
    found = list(programs())
    if len(found) < 19:
        yield f'only {len(found)} programs are found'
    for path, name, text, main in found:
        if main[1] != 'int argc, char **argv' or main[2] != 'test_help(argc, argv, help);':
            yield f'{path.name}: main() begins with {main[2]!r}'
        if f'"usage: {name} ' not in text:
            yield f'{path.name}: has no usage of {name}'
        for program in (BUILD / folder / name for folder in ('', 'bench', 'tests')):
            for words in (['--help'], ['16', '--help']) if program.exists() else ():
                with tempfile.TemporaryDirectory() as folder:
                    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True,
                                          check=False, timeout=60)
                    left = os.listdir(folder)
                if (done.returncode, done.stderr, left) != (0, '', []):
                    yield f'{name} {words}: status {done.returncode}, leaves {left}, {done.stderr}'
                if not done.stdout.startswith(f'usage: {name} ') or '\n\n' not in done.stdout:
                    yield f'{name} {words}: says {done.stdout[:80]!r}'


def wrong_words_are_told_the_usage():
    """Where a text holds a %, argparse took it for a place to fill in, and crashed."""
    for name in ('damage-run', 'epoch-run', 'gpu-report', 'gpu-run', 'gpu-study', 'rans-sizes', 'run-bench', 'share-run'):
        done = subprocess.run([BENCH / name, '--no-such-option'], capture_output=True, text=True, check=False)
        if done.returncode != 2 or not done.stderr.startswith(f'usage: {name} '):
            yield f'{name}: status {done.returncode}, {done.stderr}'


def share_run():
    loader = importlib.machinery.SourceFileLoader('share_run', str(BENCH / 'share-run'))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('share_run', loader))
    loader.exec_module(module)
    return module


def share_run_makes_rows_of_what_each_peer_says():
    """nvCOMP knows nothing of daemons and of ways to decode."""
    options = argparse.Namespace(processes=2, seconds=0.6)
    rates = {'processes': 2, 'seconds': 0.6, 'rounds': 2, 'wrong': 0}
    expected = {
        'nvcomp': (NVCOMP, {**rates, 'GBps_median': 0.5, 'p50_us': 900.0, 'cpu_s_per_GB_median': 3.0}),
        'libdeflate': (LIBDEFLATE, {**rates, 'GBps_median': 1.0, 'p50_us': 700.0, 'slow_per_s': 1.0,
                                    'by_gpu_percent': None, 'cpu_s_per_GB_median': 1.5}),
        'wharf': (WHARF, {**rates, 'GBps_median': 1.0, 'by_gpu_percent': 66.7, 'by_here_percent': 25.0,
                          'tail_rest_us': 10.0}),
    }
    summary = share_run().summary
    for peer, (row, wanted) in expected.items():
        got = summary([([row, row], 1.5), ([row, row], 1.5)], options)
        for name, value in wanted.items():
            if name not in got or got[name] != value:
                yield f'{peer}: {name} is {got.get(name)} instead of {value}'
        if peer != 'wharf' and 'by_here_percent' in got:
            yield f'{peer}: has by_here_percent'


def main():
    tests, failed = (help_is_all_that_there_is_to_it, programs_answer_help_first, wrong_words_are_told_the_usage,
                     share_run_makes_rows_of_what_each_peer_says), 0
    print(f'1..{len(tests)}')
    for number, test in enumerate(tests, 1):
        wrong = list(test())
        failed += bool(wrong)
        print(f'{"not ok" if wrong else "ok"} {number} - {test.__name__}')
        for line in wrong:
            print('# ' + line.strip().replace('\n', '\n# '))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
