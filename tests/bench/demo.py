#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""demo.py BUILD [OPTION...]: packs and unpacks real files with every codec, and checks all that comes back.

`make demo` runs it.  It starts a private daemon for the unpacking, with these options, and stops it.  The
files are what any machine with a compiler has (wharf's own sources, the system's C headers, the compiler
itself) and generated columns.  Each is packed, unpacked and compared; then a byte of each packed file is
changed, which unpacking must refuse.
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
import time

from bench_data import TYPES
from bench_options import answer_help

COLUMNS = ('mc0', 'tpt', 'hrg')
COLUMN_NBYTES = 8 << 20
MAX_NBYTES = 16 << 20
UNPACK_REPETITIONS = 3
STATUS_BAD_DATA = 1
GPU_START_S = 10
# Codecs that have to be told of what type the numbers in a file are.
TYPED = ('rle1', 'rle2')


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


def status_of(build, path):
    return subprocess.run([f'{build}/wharf', 'status', '--socket', path], capture_output=True, text=True,
                          check=True).stdout


def gpus_up(build, path):
    """Whether a GPU serves, as soon as one does; not that of a machine that has none."""
    for _ in range(GPU_START_S * 10):
        states = re.findall(r'^gpu \S+ +(up|down)', status_of(build, path), re.M)
        if 'up' in states or not states:
            break
        time.sleep(0.1)
    return 'up' in states


def start_daemon(build, folder, options):
    """A daemon of this user's own: the process and its socket."""
    path = folder / 'socket'
    daemon = subprocess.Popen([f'{build}/wharfd', '--socket', path, *options],
                              stderr=(folder / 'log').open('w', encoding='utf-8'))
    for _ in range(500):
        ping = subprocess.run([f'{build}/wharf', 'ping', '--socket', path], capture_output=True,
                              check=False)
        if ping.returncode == 0:
            return daemon, path
        time.sleep(0.02)
    sys.exit(f'the daemon does not answer:\n{(folder / "log").read_text(encoding="utf-8")}')


def run(build, *args, where='--embedded'):
    """Runs the command: its status, and its report."""
    command = [f'{build}/wharf', args[0], where, '--report', *map(str, args[1:])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return done.returncode, json.loads(done.stderr.splitlines()[-1])
    except (IndexError, ValueError):
        sys.exit(f'{" ".join(command)} ended with status {done.returncode}:\n{done.stderr}')


def wharf(build, *args, where='--embedded'):
    """The report of a command that has to go well."""
    status, report = run(build, *args, where=where)
    if status != 0:
        sys.exit(f'wharf {" ".join(map(str, args))} ended with status {status}: {report}')
    return report


def refuses_damage(build, path, packed, restored, where):
    """Whether unpacking refuses the file with one byte in its middle changed.  Where columns repeat
    themselves another distance of a match can mean the same bytes: then it is the next one's turn."""
    data = packed.read_bytes()
    damaged = packed.with_suffix('.damaged')
    for at in range(len(data) // 2, len(data)):
        damaged.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:])
        restored.unlink(missing_ok=True)
        status, report = run(build, 'unpack', '-o', restored, damaged, where=where)
        if status != 0 or not filecmp.cmp(path, restored, shallow=False):
            break
    damaged.unlink()
    return status == STATUS_BAD_DATA and report['result'] != 'ok' and not restored.exists()


def unpack(build, path, packed, restored, where):
    """The shortest time of some, in ns, and whether the file came back as it was."""
    times = []
    for _ in range(UNPACK_REPETITIONS):
        restored.unlink(missing_ok=True)
        times.append(wharf(build, 'unpack', '-o', restored, packed, where=where)['time_ns'])
    return min(times), filecmp.cmp(path, restored, shallow=False)


def show(build, path, codec, daemon):
    """One line of the table; returns whether all was well."""
    packed, restored = path.with_suffix('.packed'), path.with_suffix('.restored')
    kind = ['--type', TYPES.get(path.name, 'u8')] if codec in TYPED else []
    pack = wharf(build, 'pack', '--codec', codec, *kind, '-o', packed, path)
    here_ns, here_same = unpack(build, path, packed, restored, '--embedded')
    there_ns, there_same = unpack(build, path, packed, restored, daemon)
    same = here_same and there_same
    refused = refuses_damage(build, path, packed, restored, daemon)
    nbytes = path.stat().st_size
    # Bytes in a nanosecond are GB/s.
    print(f'{path.name:12} {nbytes / 1e6:8.1f} {codec:8} {nbytes / packed.stat().st_size:7.2f} '
          f'{nbytes / pack["time_ns"]:10.3f} {nbytes / here_ns:12.3f} {nbytes / there_ns:12.3f}  '
          f'{"same" if same else "DIFFERS":8} {"refused" if refused else "NOT NOTICED"}', flush=True)
    packed.unlink()
    return same and refused


def show_all(build, folder, socket):
    version = subprocess.run([f'{build}/wharf', '--version'], capture_output=True, text=True,
                             check=True).stdout.strip()
    engine = 'CPU and GPU' if gpus_up(build, socket) else 'CPU'
    print(f'\n{version} on {len(os.sched_getaffinity(0))} CPU cores: packed by the command, unpacked '
          f'by the command alone\n(here) and through a private daemon (daemon), by the {engine}.  GB/s of '
          'whole commands, files included.\nA ratio of 1.00: such chunks do not shrink, and are stored.\n')
    print(f'{"file":12} {"MB":>8} {"codec":8} {"ratio":>7} {"pack":>10} {"unpack, here":>12} '
          f'{"daemon":>12}  {"came out":8} damaged byte')
    good = True
    for path in make_files(build, folder):
        for codec in codecs():
            good &= show(build, path, codec, f'--socket={socket}')
    print(f'\n`wharf status` says of the daemon:\n\n{status_of(build, socket)}', end='')
    print('\nEvery file came back as it was, and every damaged copy was refused.' if good else
          '\nSomething is wrong: see the lines above.')
    return good


def main():
    answer_help(__doc__)
    build, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        daemon, socket = start_daemon(build, folder, options)
        try:
            good = show_all(build, folder, socket)
        finally:
            daemon.terminate()
            status = daemon.wait()
    if status != 0:
        print(f'The daemon ended with status {status}.')
    return 0 if good and status == 0 else 1


if __name__ == '__main__':
    sys.exit(main())
