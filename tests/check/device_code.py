#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/check/device_code.py FILE...: what the compiler made of kernels.

FILEs are objects or programs with machine code for a GPU.  Of each kernel in them, for sm_90: BRA.DIV,
which guard collectives (kernels/KERNELS.md, rule 9), instructions, registers, bytes of stack, and loads
and stores of local memory, which are mostly spills.  A kernel that has more than its row in
device_code.limits or kernels/NAME/NAME.limits allows fails; of one without a row it only says what it has, and skips it.  A row
whose kernel is in none of the FILEs fails as well: it would hold nothing to anything.  Reports in TAP.

It takes cuobjdump (CUOBJDUMP, or beside nvcc, or on PATH), and nvdisasm beside it.  Without them it
skips, and says so.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

ARCH = 'sm_90'
HERE = os.path.dirname(os.path.abspath(__file__))
LIMITS = [os.path.join(HERE, 'device_code.limits'), *sorted(glob.glob(os.path.join(HERE, '../../kernels/*/*.limits')))]
INSTRUCTION = re.compile(r'^\s+/\*[0-9a-f]{4,}\*/\s+(.*?);')
RESOURCES = re.compile(r'REG:(\d+) STACK:(\d+)')


def find_tool():
    """The path of cuobjdump, or None."""
    nvcc = shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc'
    beside = os.path.join(os.path.dirname(os.path.realpath(nvcc)), 'cuobjdump')
    for path in (os.environ.get('CUOBJDUMP'), beside, shutil.which('cuobjdump')):
        if path and os.access(path, os.X_OK):
            return path
    return None


def ask(tool, option, path):
    """Its output, where nvdisasm, which it starts, may lie beside it."""
    env = dict(os.environ, PATH=os.path.dirname(tool) + os.pathsep + os.environ['PATH'])
    return subprocess.run([tool, '-arch', ARCH, option, path], env=env, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def short_name(symbol):
    """batch_kernel<rle1_codec> of a kernel's symbol."""
    name = subprocess.run(['c++filt', symbol], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()
    name = re.sub(r'\(anonymous namespace\)::|wharf::|^void |\w+::(?=\w+_kernel)', '', name)
    return re.sub(r'\s+', '', name[:name.rindex('(')] if name.endswith(')') else name)


def kernels_of(tool, path):
    """{name: {what: number}} of a file's kernels."""
    kernels, here = {}, None
    for line in ask(tool, '-sass', path).splitlines():
        if m := re.match(r'\s*Function : (\S+)', line):
            here = kernels.setdefault(m.group(1), {'guards': 0, 'instructions': 0, 'local': 0})
        elif here is not None and (m := INSTRUCTION.match(line)):
            here['instructions'] += 1
            here['guards'] += 'BRA.DIV' in m.group(1)
            here['local'] += bool(re.search(r'\b(LDL|STL)\b', m.group(1)))
    for line in ask(tool, '-res-usage', path).splitlines():
        if m := re.match(r'\s*Function (\S+):', line):
            here = kernels.get(m.group(1))
        elif here is not None and (m := RESOURCES.search(line)):
            here['registers'], here['stack'] = int(m.group(1)), int(m.group(2))
    return {short_name(symbol): facts for symbol, facts in kernels.items()}


def read_limits(path):
    """{kernel: {what: most}} of the rows of a file: kernel guards instructions stack."""
    limits = {}
    with open(path, encoding='utf-8') as rows:
        for row in rows:
            if row.strip() and not row.startswith('#'):
                name, *numbers = row.split()
                limits[name] = dict(zip(('guards', 'instructions', 'stack'), map(int, numbers)))
    return limits


def excess(facts, limits):
    """What of a kernel is more than its limits, in words."""
    return '; '.join(f'{facts[what]} {what}, at most {most}' for what, most in limits.items()
                     if facts[what] > most)


def main(paths):
    tool = find_tool()
    if not tool:
        print('1..1\nok 1 - kernels are within their limits # SKIP there is no cuobjdump, beside nvcc,'
              ' on PATH or as CUOBJDUMP')
        return 0
    kernels = {}
    for path in paths:
        kernels.update(kernels_of(tool, path))
    limits = {name: row for path in LIMITS for name, row in read_limits(path).items()}
    n_failed = 0
    absent = sorted(set(limits) - set(kernels))
    print(f'1..{len(kernels) + 2}')
    print(('ok' if kernels else 'not ok') + f' 1 - there are kernels for {ARCH} in {" ".join(paths)}')
    for i, (name, facts) in enumerate(sorted(kernels.items()), 2):
        wrong = excess(facts, limits.get(name, {}))
        n_failed += bool(wrong)
        print(f'# {name}: ' + ', '.join(f'{facts[what]} {what}' for what in (
            'guards', 'instructions', 'registers', 'stack', 'local')))
        if wrong:
            print(f'not ok {i} - {name}: {wrong}')
        else:
            print(f'ok {i} - {name}' + ('' if name in limits else ' # SKIP it has no limits'))
    print(('not ok' if absent else 'ok') + f' {len(kernels) + 2} - each row of limits has its kernel'
          + (': not ' + ', '.join(absent) if absent else ''))
    return 1 if n_failed or absent or not kernels else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
