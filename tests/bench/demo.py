#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""demo.py BUILD: packs and unpacks real files with every codec, and checks all that comes back.

`make demo` runs it.  The files are what any machine with a compiler has (wharf's own sources, the
system's C headers, the compiler itself) and generated columns.  Each is packed, unpacked and
compared; then a byte of each packed file is changed, which unpacking must refuse.
"""
import filecmp
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

COLUMNS = ('mc0', 'tpt', 'hrg')
COLUMN_NBYTES = 16 << 20
MAX_NBYTES = 64 << 20
UNPACK_REPETITIONS = 3
STATUS_BAD_DATA = 1


def codecs():
    """The names of the codec list, in its order."""
    text = pathlib.Path('encoders/wharf_codec.h').read_text(encoding='utf-8')
    return re.findall(r'^\s*X\([A-Z0-9_]+, (\w+), \d+,', text, re.M)


def tar_of(*paths):
    def without_builds(entry):
        return None if re.search(r'(^|/)(build|\.git)(/|$)', entry.name) else entry

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode='w') as archive:
        for path in paths:
            archive.add(path, filter=without_builds)
    return buffer.getvalue()


def make_files(build, folder):
    """Name and path of each file to pack."""
    compiler = subprocess.run(['gcc', '-print-prog-name=cc1'], capture_output=True, text=True,
                              check=True).stdout.strip()
    contents = {
        'sources.tar': tar_of('.'),
        'headers.tar': tar_of('/usr/include')[:MAX_NBYTES],
        'cc1': pathlib.Path(compiler).read_bytes()[:MAX_NBYTES],
    }
    for name in COLUMNS:
        contents[name] = subprocess.run([f'{build}/bench/columns', name, str(COLUMN_NBYTES), '1'],
                                        capture_output=True, check=True).stdout
    paths = []
    for name, data in contents.items():
        paths.append(folder / name)
        paths[-1].write_bytes(data)
    return paths


def wharf(build, *args, expected=0):
    """Runs the command and returns its report."""
    command = [f'{build}/wharf', args[0], '--embedded', '--report', *map(str, args[1:])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != expected:
        sys.exit(f'{" ".join(command)} ended with status {done.returncode}:\n{done.stderr}')
    return json.loads(done.stderr.splitlines()[-1])


def refuses_damage(build, packed, restored):
    """Whether unpacking refuses the file with one byte in its middle changed."""
    data = bytearray(packed.read_bytes())
    data[len(data) // 2] ^= 0x10
    damaged = packed.with_suffix('.damaged')
    damaged.write_bytes(data)
    restored.unlink()
    report = wharf(build, 'unpack', '-o', restored, damaged, expected=STATUS_BAD_DATA)
    damaged.unlink()
    return report['result'] != 'ok' and not restored.exists()


def show(build, path, codec):
    """One line of the table; returns whether all was well."""
    packed, restored = path.with_suffix('.packed'), path.with_suffix('.restored')
    pack = wharf(build, 'pack', '--codec', codec, '-o', packed, path)
    unpack_ns = []
    for _ in range(UNPACK_REPETITIONS):
        restored.unlink(missing_ok=True)
        unpack_ns.append(wharf(build, 'unpack', '-o', restored, packed)['time_ns'])
    same = filecmp.cmp(path, restored, shallow=False)
    refused = refuses_damage(build, packed, restored)
    nbytes = path.stat().st_size
    # Bytes in a nanosecond are GB/s.
    print(f'{path.name:12} {nbytes / 1e6:8.1f} {codec:8} {nbytes / packed.stat().st_size:7.2f} '
          f'{nbytes / pack["time_ns"]:11.3f} {nbytes / min(unpack_ns):13.3f}  '
          f'{"same" if same else "DIFFERS":8} {"refused" if refused else "NOT NOTICED"}', flush=True)
    packed.unlink()
    return same and refused


def main():
    build = sys.argv[1]
    version = subprocess.run([f'{build}/wharf', '--version'], capture_output=True, text=True,
                             check=True).stdout.strip()
    print(f'\n{version}: the embedded engine, in the command\'s own process, on '
          f'{len(os.sched_getaffinity(0))} CPU cores.\nThis version has no daemon and uses no GPU.'
          '  Times are of whole commands, files included.\n')
    print(f'{"file":12} {"MB":>8} {"codec":8} {"ratio":>7} {"pack GB/s":>11} {"unpack GB/s":>13}  '
          f'{"came out":8} damaged byte')
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for path in make_files(build, pathlib.Path(folder)):
            for codec in codecs():
                good &= show(build, path, codec)
    print('\nEvery file came back as it was, and every damaged copy was refused.' if good else
          '\nSomething is wrong: see the lines above.')
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
