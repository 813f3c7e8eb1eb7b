#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""completion_test.py [PATTERN]: what bash, zsh and fish offer is what the command has.

The expected words are taken from the sources' own tables, by way of `wharf --help`.  Reports in the Test
Anything Protocol.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
BUILD = os.path.join(TOP, os.environ.get('BUILD', 'build/release'))
CLI = os.path.join(TOP, 'clientlib', 'cli')
PATIENCE_S = 300

# Shells without their users' settings; `wharf` is the one under test.
BASH = r'''
. /usr/share/bash-completion/bash_completion
. {cli}/wharf.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMPREPLY=()
COMP_POINT=${{#COMP_LINE}}
_wharf
printf '%s\n' "${{COMPREPLY[@]}}"
'''
# What the completion would hand to zsh is printed.
ZSH = r'''
_describe() {{ printf '%s\n' "${{(@)${{(P)2}}%%:*}}" }}
compadd() {{ shift; printf '%s\n' "$@" }}
_files() {{ printf '%s\n' *(N) }}
_message() {{ }}
autoload() {{ }}
words=("$@") CURRENT=$# PREFIX=${{@[-1]}}
source {cli}/wharf.zsh
'''
FISH = r'source {cli}/wharf.fish; complete -C "$argv"'


class Skipped(Exception):
    pass


def environment():
    return {**os.environ, 'PATH': f'{BUILD}:{os.environ["PATH"]}', 'HOME': os.getcwd(), 'LC_ALL': 'C.UTF-8'}


def run(*command):
    return subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=PATIENCE_S)


def offered(shell, *words):
    """What is offered for the last word, which may be empty."""
    cli = CLI
    if not shutil.which(shell):
        raise Skipped(f'there is no {shell}')
    if shell == 'bash':
        done = run('bash', '-c', BASH.format(cli=cli), 'bash', *words)
    elif shell == 'zsh':
        done = run('zsh', '-f', '-c', ZSH.format(cli=cli), 'zsh', *words)
    else:
        done = run('fish', '--no-config', '-c', FISH.format(cli=cli), '--', ' '.join(words))
    assert not done.stderr, done.stderr
    found = {line.split('\t')[0].rstrip('/') for line in done.stdout.splitlines() if line}
    return {word for word in found if word.startswith(words[-1])}


def help_of(*command):
    return run('wharf', *command, '--help').stdout


def equal(got, expected):
    assert got == expected, f'{sorted(got)} instead of {sorted(expected)}'


def commands():
    found = set(re.findall(r'^  wharf (\w+)', help_of(), re.M))
    assert len(found) > 10, found
    return found


def check_shell(shell):
    """All that there is, and what is offered."""
    equal(offered(shell, 'wharf', ''), commands() | ({'--help', '--version'} if shell != 'zsh' else set()))
    codecs = re.findall(r'^  (\w+) ', help_of().split('Codecs:')[1], re.M)
    for option in '-c', '--codec':
        equal(offered(shell, 'wharf', 'pack', option, ''), set(codecs))
    for command in 'unpack', 'cat', 'test':
        equal(offered(shell, 'wharf', command, '--codec', ''), {'brotli'})
    subcommands = set(re.findall(r'^  wharf rans (\w+)', help_of('rans'), re.M))
    equal(offered(shell, 'wharf', 'rans', ''), subcommands)
    equal(offered(shell, 'wharf', 'help', ''), commands() if shell != 'none' else set())
    for command in [[name] for name in commands()] + [['rans', name] for name in subcommands]:
        if command in (['rans'], ['help'], ['version']):
            continue
        options = set(re.findall(r'^ +(?:-\w, )?(--[a-z][a-z-]*)', help_of(*command), re.M))
        assert len(options) > 3, (command, options)
        equal(offered(shell, 'wharf', *command, '--'), options)


def check_values(shell):
    """Of options that are one of some words, all; each is taken, and no other one is offered."""
    for command, option, values in (
            (['pack'], '--engine', 'auto cpu reference gpu simt'),
            (['pack'], '--type', 'i8 i16 i32 i64 u8 u16 u32 u64'),
            (['pack'], '--encoder', 'libdeflate zlib'), (['pack'], '--format', 'wharf gzip bgzf zstd'),
            (['rans', 'encode'], '--symbols', 'u8 u16')):
        equal(offered(shell, 'wharf', *command, option, ''), set(values.split()))
    equal(offered(shell, 'wharf', 'pack', '--level', ''), set())
    # c is a codec only to who makes data.
    for name in 'a.whr', 'b.gz':
        with open(name, 'w', encoding='ascii'):
            pass
    for words in ['unpack'], ['-d'], ['unpack', '-c']:
        equal(offered(shell, 'wharf', *words, ''), {'a.whr', 'b.gz'})
    equal(offered(shell, 'wharf', 'cat', 'b'), {'b.gz'})
    equal(offered(shell, 'wharf', 'status', ''), set())
    with open('c.orc', 'w', encoding='ascii'):
        pass
    equal(offered(shell, 'wharf', 'columns', 'c'), {'c.orc'})


def test_bash_offers_what_there_is():
    check_shell('bash')


def test_bash_offers_what_options_may_be():
    check_values('bash')


def test_zsh_offers_what_there_is():
    check_shell('zsh')


def test_zsh_offers_what_options_may_be():
    check_values('zsh')


def test_fish_offers_what_there_is():
    check_shell('fish')


def test_fish_offers_what_options_may_be():
    check_values('fish')


def test_zsh_completes_on_a_terminal():
    """As it is installed: a file _wharf, found by its first line."""
    if not shutil.which('zsh'):
        raise Skipped('there is no zsh')
    os.mkdir('functions')
    shutil.copy(f'{CLI}/wharf.zsh', 'functions/_wharf')
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe('zsh', ['zsh', '-f', '-i'], {**environment(), 'TERM': 'dumb', 'PS1': 'ready> '})
    shown = b''

    def type_and_wait(text, pattern):
        nonlocal shown
        if text:
            shown = b''
            os.write(terminal, text)
        end = time.monotonic() + PATIENCE_S
        while not re.search(pattern, shown):
            ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
            assert ready, f'{pattern!r} is not in {shown!r}'
            shown += os.read(terminal, 65536)

    try:
        type_and_wait(b'', b'ready> ')
        type_and_wait(b'fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u -D; print fi""nished\n',
                      rb'finished(?s:.*)ready> ')
        type_and_wait(b'wharf dra\t', rb'dra[^a-z]*in ')
        type_and_wait(b'\025wharf pack --encod\t', rb'--encod[^a-z]*er ')
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else '.'
    names = [name for name in globals() if name.startswith('test_') and re.search(pattern, name)]
    failed = 0
    print(f'1..{len(names)}', flush=True)
    for number, name in enumerate(names, 1):
        before = os.getcwd()
        word, remark = 'ok', ''
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                globals()[name]()
            except Skipped as why:
                remark = f' # SKIP {why}'
            except Exception:  # pylint: disable=broad-exception-caught
                word, failed = 'not ok', failed + 1
                print(re.sub('^', '# ', traceback.format_exc().rstrip(), flags=re.M))
            os.chdir(before)
        print(f'{word} {number} - {name.removeprefix("test_")}{remark}', flush=True)
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
