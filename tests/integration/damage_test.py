#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""damage_test.py [PATTERN]: tests/bench/damage-run, with device code on the CPU and a made-up peer.

The peer does what libraries for GPUs have been seen to do: it ends its context, hangs, and calls bad chunks good.
Reports in the Test Anything Protocol.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import traceback

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get('BUILD', 'build/release')
SCRIPT = TOP / 'tests' / 'bench' / 'damage-run'
N, BATCH = 120, 20

# It knows the files from tests/bench/damage_files.h alone.
PEER = r'''#!/usr/bin/env python3
import os, signal, struct, sys
corpus, results, first, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with open(corpus, 'rb') as file:
    n = struct.unpack('<8sIIQ', file.read(24))[3]
for at in range(first, n, batch):
    with open(results, 'r+b') as file:
        file.write(struct.pack('<Q', at))
        if at == 20:
            sys.exit(3)
        if at == 40:
            file.flush()
            signal.pause()
        if at == 60:
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        for i in range(at, min(at + batch, n)):
            file.seek(32 + 32 * i)
            file.write(struct.pack('<IIQQQ', 1, 0, 0, 5, 99) if at == 80 else struct.pack('<IIQQQ', 2, 0, 0, 0, 0))
'''


def install(folder):
    """The programs in one place, as a bundle has them."""
    for path in (BUILD / 'bench' / 'damage', BUILD / 'wharfd', BUILD / 'wharfd-simt'):
        (folder / path.name).symlink_to(path)
    peer = folder / 'peer'
    peer.write_text(PEER, encoding='ascii')
    peer.chmod(0o755)


def run(folder, *words):
    environment = {**os.environ, 'GLIBC_TUNABLES': 'glibc.rtld.optional_static_tls=65536',
                   'LD_LIBRARY_PATH': str(BUILD / 'tests' / 'cuda-simt')}
    out = folder / 'rows'
    out.unlink(missing_ok=True)
    done = subprocess.run([SCRIPT, '--programs', folder, '--work', folder / 'work', '--out', out, '--revision', 'none',
                           '--engine', 'simt', '--chunk', '512', '--chunks', str(N), '--batch', str(BATCH), *words],
                          env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((folder / 'work').iterdir()) == []
    return {(row['codec'], row['library']): row for row in map(json.loads, out.read_text().splitlines())}


def test_wharf_says_the_same_everywhere_and_nothing_wrong(folder):
    install(folder)
    codecs = ('deflate', 'lz4', 'snappy', 'rans', 'bdi')
    rows = run(folder, *(word for codec in codecs for word in ('--codec', codec)))
    assert set(rows) == {(codec, library) for codec in codecs for library in ('libwharf', 'libwharf-cuda', 'wharfd')}
    for codec in codecs:
        here = rows[codec, 'libwharf']
        assert here['accepted'] + here['refused'] == N and here['refused'] > N / 10, here
        for library in ('libwharf', 'libwharf-cuda', 'wharfd'):
            row = rows[codec, library]
            assert row['placed'] == row['refused'] and row['chunks'] == N, row
            for count in ('accepted', 'refused', 'good', 'refused_good'):
                assert row[count] == here[count], (row, here)
            for count in ('wrong', 'lost', 'failed', 'hangs', 'contexts_killed'):
                assert row[count] == 0, row


def test_a_peer_that_dies_hangs_and_is_wrong(folder):
    install(folder)
    row = run(folder, '--codec', 'zlib', '--library', 'nvcomp', '--nvcomp', folder / 'peer',
              '--limit', '2')['zlib', 'nvCOMP']
    assert (row['contexts_killed'], row['hangs'], row['lost']) == (2, 1, 3 * BATCH), row
    assert row['accepted'] == BATCH and row['wrong'] == BATCH, row
    assert row['refused'] == N - 4 * BATCH and row['placed'] == 0, row


def test_codecs_that_a_library_does_not_have_give_no_row(folder):
    install(folder)
    (folder / 'peer').write_text('#!/bin/sh\nexit 4\n', encoding='ascii')
    assert set(run(folder, '--codec', 'blosc', '--library', 'here', '--library', 'nvcomp', '--nvcomp',
                   folder / 'peer')) == {('blosc', 'libwharf')}


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else '.'
    tests = [(name, test) for name, test in globals().items() if name.startswith('test_') and re.search(pattern, name)]
    print(f'1..{len(tests)}')
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(pathlib.Path(folder))
                print(f'ok {number} - {name[5:]}')
            except Exception:  # pylint: disable=broad-exception-caught # whatever it is, the test failed
                failed += 1
                print(f'not ok {number} - {name[5:]}')
                print(''.join(f'# {line}\n' for line in traceback.format_exc().splitlines()), end='')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
