#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""top_test.py [PATTERN]: `wharf top` on a terminal, which it gives back however it ends.

(The interpreter is Debian's, to which python3-protobuf belongs, which private_daemon needs.)  Reports in
the Test Anything Protocol.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

BUILD = os.path.join(TOP, os.environ.get('BUILD', 'build/release'))
ENTER, LEAVE = b'\033[?1049h', b'\033[?25h\033[?1049l'
DAEMON = None


def become_job(report):
    """In a new session: as a shell does, becomes a job of the terminal, beside a leader that ends as it
    ends.  (Nothing can stop a process that has no such leader.)  Signals are not ignored, as a script's
    jobs in the background find them."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        return
    os.write(report, b'%d' % pid)
    os.closerange(3, 256)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


class Terminal:
    """`wharf top` with these options, on a terminal of its own."""

    def __init__(self, *options, rows=0):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, 80 if rows else 0, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.shown = b''
        reports, report = os.pipe()
        self.leader = subprocess.Popen(
            [f'{BUILD}/wharf', 'top', '--socket', DAEMON.socket, *options], stdin=self.slave,
            stdout=self.slave, stderr=self.slave, start_new_session=True,
            preexec_fn=lambda: become_job(report))
        self.pid = int(os.read(reports, 16))
        os.close(reports)
        os.close(report)

    def read_until(self, pattern):
        """Until what was shown has it; returns all that was shown."""
        while not re.search(pattern, self.shown, re.S):
            ready, _, _ = select.select([self.master], [], [], wc.PATIENCE_S)
            assert ready, f'{pattern!r} is not in {self.shown!r}'
            self.shown += os.read(self.master, 65536)
        return self.shown

    def key(self, key):
        os.write(self.master, key)

    def signal(self, number):
        os.kill(self.pid, number)

    def wait_until_stopped(self):
        while True:
            with open(f'/proc/{self.pid}/stat', encoding='ascii') as stat:
                if stat.read().rpartition(')')[2].split()[0] == 'T':
                    return
            time.sleep(0.01)

    def end(self):
        """Waits for the end; the exit status, as a shell's.  The terminal is as it was."""
        # It may wait for room in the terminal, before it looks for keys.
        self.read_until(re.escape(LEAVE))
        status = self.leader.wait(wc.PATIENCE_S)
        while select.select([self.master], [], [], 0)[0]:
            self.shown += os.read(self.master, 65536)
        assert termios.tcgetattr(self.slave) == self.before, 'the terminal is not as it was'
        assert self.shown.count(ENTER) == self.shown.count(LEAVE), self.shown
        os.close(self.master)
        os.close(self.slave)
        return status


def equal(got, expected):
    assert got == expected, f'{got!r} instead of {expected!r}'


def run_top(*options):
    return subprocess.run([f'{BUILD}/wharf', 'top', '--socket', DAEMON.socket, *options],
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)


def test_key_q_ends_it():
    terminal = Terminal('--interval', '3600')
    # There is something to look at before the first interval is over.
    terminal.read_until(rb'\033\[\?1049h.*daemon   wharfd ')
    terminal.key(b'xyz')
    terminal.key(b'q')
    equal(terminal.end(), 0)
    assert b'xyz' not in terminal.shown, terminal.shown


def test_signals_do_what_they_do_and_the_terminal_is_given_back():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT,
                   signal.SIGSEGV):
        terminal = Terminal('-i', '3600')
        terminal.read_until(rb'daemon   wharfd ')
        terminal.signal(number)
        equal(terminal.end(), 128 + number)


def test_keys_of_the_terminal_are_signals():
    terminal = Terminal()
    terminal.read_until(rb'daemon   wharfd ')
    terminal.key(b'\003')
    equal(terminal.end(), 128 + signal.SIGINT)


def test_it_is_stopped_and_goes_on():
    terminal = Terminal('-i', '0.1')
    terminal.read_until(rb'TENANT')
    terminal.key(b'\032')
    terminal.read_until(re.escape(LEAVE))
    terminal.wait_until_stopped()
    equal(termios.tcgetattr(terminal.slave), terminal.before)
    terminal.signal(signal.SIGCONT)
    terminal.read_until(re.escape(LEAVE) + b'.*' + re.escape(ENTER) + b'.*TENANT')
    terminal.key(b'q')
    equal(terminal.end(), 0)


def come_as_others(n):
    """As n other users, whom the daemon remembers."""
    os.chmod(DAEMON.folder, 0o755)
    os.chmod(DAEMON.socket, 0o666)
    for uid in range(70001, 70001 + n):
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setresuid(uid, uid, uid)
            wc.Connection(DAEMON.socket).close()
            os._exit(0)
        equal(os.waitpid(pid, 0)[1], 0)


def test_picture_fits_on_the_screen():
    """The daemon's lines scrolled away over many tenants."""
    if os.geteuid() == 0:
        come_as_others(20)
    for rows in (5, 7, 8, 9, 12, 24):
        terminal = Terminal('-i', '0.1', rows=rows)
        terminal.read_until(rb'TENANT.*\033\[H.*\033\[H')
        terminal.key(b'q')
        equal(terminal.end(), 0)
        # The second one is the first with tenants.
        picture = terminal.shown.split(b'\033[H\033[2J')[2]
        assert picture.startswith(b'daemon   wharfd '), picture
        assert b'TENANT' in picture, picture
        # The cursor stands in a line too.
        assert rows < 8 or picture.count(b'\n') < rows, (rows, picture)
        # Long lines end at the edge.
        assert b'\033[?7l' in terminal.shown and terminal.shown.endswith(b'\033[?7h' + LEAVE), terminal.shown
        if os.geteuid() == 0 and rows > 8:
            hidden = re.search(rb'and (\d+) more, less busy\r\n$', picture)
            shown = picture.count(b'0.00')
            equal(shown + int(hidden[1]), 21)


def test_message_stands_where_it_can_be_read():
    terminal = Terminal('-i', '0.1', '--patience', '1')
    terminal.read_until(rb'TENANT')
    DAEMON.kill()
    equal(terminal.end(), 3)
    assert re.search(re.escape(LEAVE) + b'wharf: .*\n$', terminal.shown, re.S), terminal.shown
    DAEMON.start()


def test_elsewhere_it_prints_one_picture_behind_another():
    done = run_top('--interval', '0.1', '--count', '3')
    equal(done.returncode, 0)
    equal(done.stdout.count(b'TENANT'), 3)
    assert b'\033' not in done.stdout, done.stdout


def test_files_and_their_processes_are_shown():
    def summary():
        return re.search(rb'^files .*$', run_top('-i', '0.1', '-n', '1').stdout, re.M)
    equal(summary(), None)
    session = wc.Client(DAEMON.socket)
    with tempfile.TemporaryFile(dir='/var/tmp') as file:
        file.write(bytes(3000))
        file.flush()
        session.register(1, file.fileno(), 1 << 20, kind=wc.MEMORY_KIND_FILE)
        done = session.run(opcode=wc.OP_DECODE, codec=wc.CODECS['stored'], src_region=1, src_nbytes=3000,
                           dst_region=1, dst_offset=5000, dst_nbytes=3000)
        equal(done['result'], wc.RESULTS['ok'])
        # What was done is counted just behind its completion.
        line = b'files    1 file of clients, 1 process for them, 2.9 KiB read, 2.9 KiB written'
        end = time.monotonic() + wc.PATIENCE_S
        while summary().group() != line:
            assert time.monotonic() < end, summary().group()
        session.unregister(1)
        session.close()
    line = b'files    0 files of clients, 0 processes for them, 2.9 KiB read, 2.9 KiB written'
    while summary().group() != line:
        assert time.monotonic() < end, summary().group()


def test_interval_is_a_number_of_seconds():
    for text in ('0', '0.09', '.', '1e1', '-1', '3600.1', '0x1', '1.5s', '', '99999999999999999999'):
        done = run_top('--interval', text)
        equal((text, done.returncode), (text, 2))
        assert b'a number of seconds from 0.1 to 3600' in done.stderr, done.stderr


def main():
    global DAEMON  # pylint: disable=global-statement
    pattern = sys.argv[1] if len(sys.argv) > 1 else '.'
    names = [name for name in globals() if name.startswith('test_') and re.search(pattern, name)]
    failed = 0
    print(f'1..{len(names)}', flush=True)
    DAEMON = Daemon(f'{BUILD}/wharfd')
    try:
        for number, name in enumerate(names, 1):
            word = 'ok'
            try:
                globals()[name]()
            except Exception:  # pylint: disable=broad-exception-caught
                word, failed = 'not ok', failed + 1
                print(re.sub('^', '# ', traceback.format_exc().rstrip(), flags=re.M))
                if DAEMON.process.poll() is not None:
                    DAEMON.start()
            print(f'{word} {number} - {name.removeprefix("test_")}', flush=True)
    finally:
        DAEMON.remove()
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
