#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command reports a broken container alike from a file and from a pipe.

Status, result, reason, bit and output of `wharf cat`, and of `wharf unpack --range` where it does not
go by the index; and what lies behind a range is not looked at.  Reports in the Test Anything Protocol.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib

WHARF = os.path.abspath(os.environ.get('BUILD', 'build/release') + '/wharf')
MARKERS = (b'WCHK', b'WIDX', b'WEND')
# What --report says that does not depend on who reads and how long it takes.
MEMBERS = ('result', 'reason', 'bit_offset', 'in_nbytes', 'out_nbytes', 'chunks')


def pack(data, *options):
    return subprocess.run([WHARF, 'pack', *options], input=data, capture_output=True, check=True).stdout


def containers():
    data = b''.join(b'%d,%d,wharf\n' % (i, i * i % 977) for i in range(1000))
    return [pack(data, '-b', '2K'), pack(data[:5000], '-b', '1K', '-c', 'zlib') +
            pack(data[:3000], '-b', '1K', '-c', 'stored')]


def frames(file):
    return [at for at in range(0, len(file) - 63, 16) if file[at:at + 4] in MARKERS]


def mutant(file, source):
    """Cut, with a changed bit, or with a field of a header changed and its checksum right."""
    file, kind = bytearray(file), source.randrange(4)
    if kind == 1:
        file[source.randrange(len(file))] ^= 1 << source.randrange(8)
    if kind == 2:
        at = source.choice(frames(file))
        file[at + source.randrange(60)] ^= 1 << source.randrange(8)
        file[at + 60:at + 64] = struct.pack('<I', zlib.crc32(file[at:at + 60]))
    if kind == 3:
        at = 16 * source.randrange(len(file) // 16)
        del file[at:at + 16 * source.randrange(1, 9)]
    if kind == 0 or source.randrange(4) == 0:
        del file[source.randrange(1, len(file)):]
    return bytes(file)


def run(arguments, data=None):
    """What there is to compare, and the messages."""
    done = subprocess.run([WHARF, *arguments], input=data, capture_output=True, check=False)
    message = done.stderr.decode()
    report = json.loads(message.splitlines()[-1])
    return [done.returncode, done.stdout, *(report[name] for name in MEMBERS)], message


def differences(path, data, arguments):
    got, message = run([*arguments, path])
    piped, _ = run([*arguments, '-'], data)
    if got != piped and (arguments[0] == 'cat' or 'every chunk' in message):
        yield f'{arguments}: {got[0]} {got[2:]} from a file, {piped[0]} {piped[2:]} from a pipe'


def mutants_are_reported_alike(path):
    source = random.Random(1)
    for file in containers():
        for _ in range(40):
            data = mutant(file, source)
            with open(path, 'wb') as out:
                out.write(data)
            begin = source.choice((0, 1, 1024, source.randrange(8000)))
            for arguments in (['cat', '--report'], ['unpack', '--report', '-o', '-', '-r', f'{begin}:'],
                              ['unpack', '--report', '-o', '-', '-r', f'{begin}:{source.randrange(3000)}']):
                yield from differences(path, data, arguments)


def what_is_behind_a_range_is_not_looked_at(path):
    """Whole chunks, half a one, and none; the chunk behind them is cut, or its header is damaged."""
    file = containers()[0]
    behind = frames(file)[3]
    damaged = file[:behind] + b'?' + file[behind + 1:]
    for data in (file[:behind], file[:behind + 30], file[:behind + 70], damaged):
        with open(path, 'wb') as out:
            out.write(data)
        for where in ('0:6144', '0:6000', '2048:4096', '5000:1144', '5000:0'):
            for name, given in ((path, None), ('-', data)):
                got, message = run(['unpack', '--report', '-o', '-', '-r', where, name], given)
                if got[0] != 0 or len(got[1]) != int(where.split(':')[1]):
                    yield f'{where} of {len(data)} bytes: status {got[0]}, {message}'


def main():
    tests, failed = (mutants_are_reported_alike, what_is_behind_a_range_is_not_looked_at), 0
    print(f'1..{len(tests)}')
    for number, test in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as folder:
            wrong = list(test(os.path.join(folder, 'mutant.whr')))
        failed += bool(wrong)
        print(f'{"not ok" if wrong else "ok"} {number} - {test.__name__}')
        for line in wrong:
            print(f'# {line}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
