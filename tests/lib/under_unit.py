#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program under those restrictions of a systemd unit that could keep it from working.

    under_unit.py compile UNIT > FILE       where systemd-analyze and the C headers are
    under_unit.py run FILE COMMAND...       anywhere, without systemd; as root or not

Taken over are: the system-call filter with its error number, MemoryDenyWriteExecute,
RestrictAddressFamilies, RestrictNamespaces, RestrictRealtime, LockPersonality, NoNewPrivileges, an
empty set of capabilities, the limits, and as root PrivateNetwork.  For x86-64.
"""
import ctypes
import errno
import json
import os
import re
import resource
import shutil
import subprocess
import sys

UNISTD = '/usr/include/x86_64-linux-gnu/asm/unistd_64.h'

# Classic BPF over struct seccomp_data: the call's number at 0, its architecture at 4, the low word of
# argument i at 16 + 8 * i.
LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
ALLOW, ERRNO = 0x7fff0000, 0x00050000
ARCH_X86_64, X32_BIT = 0xc000003e, 0x40000000

# Namespaces that clone, unshare and setns could make or enter: CLONE_NEW*.
NAMESPACES = 0x7e020000 | 0x80


# ---- compile -------------------------------------------------------------------------------

def read_unit(path):
    """Settings as lists of values, in the order of the file."""
    settings = {}
    with open(path, encoding='utf-8') as unit:
        for line in unit:
            if m := re.match(r'(\w+)=(.*)', line):
                settings.setdefault(m.group(1), []).append(m.group(2).strip())
    return settings


def expand(name, seen):
    """The calls of a name: itself, or what systemd says is in a set."""
    if not name.startswith('@'):
        return {name}
    if name in seen:
        return set()
    seen.add(name)
    listed = subprocess.run(['systemd-analyze', 'syscall-filter', '--no-pager', name], check=True,
                            capture_output=True, text=True).stdout
    words = [line.strip() for line in listed.splitlines()[1:] if line.startswith('    ')]
    return set().union(*(expand(word, seen) for word in words if not word.startswith('#')))


def allowed_calls(values):
    allowed = set()
    for value in values:
        names = set().union(*(expand(name, set()) for name in value.lstrip('~').split()))
        allowed = allowed - names if value.startswith('~') else allowed | names
    return allowed


def call_numbers():
    with open(UNISTD, encoding='utf-8') as header:
        return {m.group(1): int(m.group(2))
                for m in re.finditer(r'#define __NR_(\w+) (\d+)', header.read())}


def refuse(error):
    return (RETURN, 0, 0, ERRNO | error)


def when(number, *steps):
    """Steps for this call alone; they end with its number loaded again."""
    steps = (*steps, (LOAD, 0, 0, 0))
    return [(EQUAL, 0, len(steps), number), *steps]


def when_masked(number, argument, mask, value, error):
    return when(number, (LOAD, 0, 0, 16 + 8 * argument), (AND, 0, 0, mask), (EQUAL, 0, 1, value),
                refuse(error))


def when_any(number, argument, mask, error):
    return when(number, (LOAD, 0, 0, 16 + 8 * argument), (AND, 0, 0, mask), (EQUAL, 1, 0, 0),
                refuse(error))


def special_steps(settings, numbers):
    def is_set(key):
        return settings.get(key) == ['yes']

    steps = []
    if is_set('MemoryDenyWriteExecute'):
        steps += when_masked(numbers['mmap'], 2, 6, 6, errno.EPERM)
        for name in 'mprotect', 'pkey_mprotect':
            steps += when_any(numbers[name], 2, 4, errno.EPERM)
        steps += when_any(numbers['shmat'], 2, 0o100000, errno.EPERM)
    if is_set('RestrictNamespaces'):
        for name in 'clone', 'unshare':
            steps += when_any(numbers[name], 0, NAMESPACES, errno.EPERM)
        steps += when(numbers['setns'], refuse(errno.EPERM))
        # Its flags are in memory, where a filter cannot look; libraries then take clone.
        steps += when(numbers['clone3'], refuse(errno.ENOSYS))
    if is_set('RestrictRealtime'):
        for policy in 1, 2, 6:  # FIFO, RR, DEADLINE
            steps += when_masked(numbers['sched_setscheduler'], 1, 7, policy, errno.EPERM)
    if is_set('LockPersonality'):
        steps += when_any(numbers['personality'], 0, 0xffff, errno.EPERM)
    if settings.get('RestrictAddressFamilies') == ['AF_UNIX']:
        steps += when(numbers['socket'], (LOAD, 0, 0, 16), (EQUAL, 1, 0, 1),
                      refuse(errno.EAFNOSUPPORT))
    return steps


def compile_unit(path):
    settings, numbers = read_unit(path), call_numbers()
    denied = refuse(getattr(errno, settings['SystemCallErrorNumber'][0]))
    program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCH_X86_64), denied,
               (LOAD, 0, 0, 0), (AT_LEAST, 0, 1, X32_BIT), denied]
    program += special_steps(settings, numbers)
    for name in sorted(allowed_calls(settings['SystemCallFilter'])):
        if name in numbers:
            program += [(EQUAL, 0, 1, numbers[name]), (RETURN, 0, 0, ALLOW)]
    program.append(denied)
    limits = {key[len('Limit'):]: values[0] for key, values in settings.items()
              if key.startswith('Limit')}
    return {'program': program, 'limits': limits, 'umask': settings['UMask'][0],
            'private_network': settings.get('PrivateNetwork') == ['yes']}


# ---- run -----------------------------------------------------------------------------------

class Instruction(ctypes.Structure):
    _fields_ = [('code', ctypes.c_ushort), ('jt', ctypes.c_ubyte), ('jf', ctypes.c_ubyte),
                ('k', ctypes.c_uint32)]


class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('instructions', ctypes.POINTER(Instruction))]


PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 24, 38, 22, 2
CLONE_NEWNET = 0x40000000


def libc_call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    words = [a if isinstance(a, ctypes._Pointer) else ctypes.c_ulong(a) for a in arguments]
    if getattr(libc, name)(*words) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f'{name}: {os.strerror(code)}')


def set_limits(limits):
    """As far as the machine allows."""
    for name, value in limits.items():
        kind = getattr(resource, f'RLIMIT_{name}')
        wanted = resource.RLIM_INFINITY if value == 'infinity' else int(value)
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY and (wanted == resource.RLIM_INFINITY or wanted > most):
            wanted = most
        resource.setrlimit(kind, (wanted, wanted))


def drop_capabilities():
    with open('/proc/sys/kernel/cap_last_cap', encoding='ascii') as last:
        for capability in range(int(last.read()) + 1):
            libc_call('prctl', PR_CAPBSET_DROP, capability, 0, 0, 0)


def run(restrictions, command):
    set_limits(restrictions['limits'])
    if os.geteuid() == 0:
        if restrictions['private_network']:
            libc_call('unshare', CLONE_NEWNET)
        # From the next program on, which is the command.
        drop_capabilities()
    os.umask(int(restrictions['umask'], 8))
    instructions = [Instruction(*step) for step in restrictions['program']]
    array = (Instruction * len(instructions))(*instructions)
    program = Program(len(instructions), array)
    libc_call('prctl', PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc_call('prctl', PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.pointer(program), 0, 0)
    os.execvp(command[0], command)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == 'compile':
        if not shutil.which('systemd-analyze'):
            sys.exit('under_unit.py: only systemd-analyze (package systemd) knows what is in sets of '
                     'system calls')
        json.dump(compile_unit(sys.argv[2]), sys.stdout)
    elif len(sys.argv) > 3 and sys.argv[1] == 'run':
        with open(sys.argv[2], encoding='utf-8') as file:
            restrictions = json.load(file)
        run(restrictions, sys.argv[3:])
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
