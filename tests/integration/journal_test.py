#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""journal_test.py [--build FOLDER]: a daemon whose journal has stopped.

The journal is a socket of the test's own at the journal's place, in a mount namespace, with as many
entries in it as the kernel lets wait there: whoever sends one more waits until it is read.  Once the
thread that serves all clients did.
"""
import argparse
import gzip
import os
import socket
import subprocess
import sys
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

JOURNAL = '/run/systemd/journal/socket'
NAME = 'clients_are_served_while_the_journal_has_stopped'
N_GARBAGE, N_WRITTEN = 30, 20
DATA = b'what is decoded meanwhile\n' * 1000


def stopped_journal():
    """A socket that takes no more."""
    os.makedirs(os.path.dirname(JOURNAL))
    journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    journal.bind(JOURNAL)
    journal.settimeout(wc.PATIENCE_S)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        try:
            while True:
                sender.sendto(b'MESSAGE=before\n', JOURNAL)
        except BlockingIOError:
            pass
    return journal


def stream_of(log):
    """As systemd says that standard error leads to the journal."""
    status = os.fstat(log)
    return f'{status.st_dev}:{status.st_ino}'


def send_garbage(daemon):
    """Against the rules: one message of the daemon's about each."""
    connection = wc.Connection(daemon.socket)
    connection.hello()
    connection.socket.send(b'no request at all')
    try:
        while connection.receive(wc.PATIENCE_S):
            pass
    except (wc.Refused, wc.Lost):
        pass
    connection.close()


def decode(daemon, build):
    result = subprocess.run([os.path.join(build, 'wharf'), 'decode', '--codec', 'gzip', '--engine',
                             'cpu', '--socket', daemon.socket], input=gzip.compress(DATA),
                            capture_output=True, check=True)
    assert result.stdout == DATA


def read_entry(journal):
    """Fields of the next entry."""
    lines = journal.recv(65536).decode().splitlines()
    return dict(line.split('=', 1) for line in lines)


def clients_are_served(build):
    journal = stopped_journal()
    daemon = Daemon(os.path.join(build, 'wharfd'), stream_of=stream_of)
    try:
        for _ in range(N_GARBAGE):
            send_garbage(daemon)
            decode(daemon, build)
        about_clients, left_out, end = [], 0, time.monotonic() + wc.PATIENCE_S
        while len(about_clients) + left_out < N_GARBAGE:
            assert time.monotonic() < end, (about_clients, left_out)
            entry = read_entry(journal)
            if 'no request' in entry['MESSAGE']:
                about_clients.append(entry)
            elif 'messages about clients were left out' in entry['MESSAGE']:
                left_out += int(entry['MESSAGE'].split()[0])
        assert len(about_clients) >= N_WRITTEN, about_clients
        for entry in about_clients:
            assert entry['PRIORITY'] == '5' and entry['WHARF_TENANT'] == f'uid:{os.getuid()}', entry
            assert int(entry['WHARF_CONNECTION']) > 0, entry
    finally:
        daemon.kill()
        daemon.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    parser.add_argument('--inside', action='store_true', help='the namespace is there')
    options = parser.parse_args()
    build = os.path.join(TOP, options.build)
    if options.inside:
        clients_are_served(build)
        return 0
    print('1..1')
    unshare = ['unshare', '--map-root-user'] if os.getuid() else ['unshare']
    unshare += ['--mount', 'sh', '-c', 'mount -t tmpfs none /run && exec "$0" "$@"']
    if subprocess.run(unshare + ['true'], capture_output=True, check=False).returncode:
        print(f'ok 1 - {NAME} # SKIP there are no mount namespaces here')
        return 0
    inside = subprocess.run(unshare + [sys.executable, os.path.abspath(__file__), '--inside',
                                       '--build', options.build],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    for line in inside.stdout.splitlines():
        print(f'# {line}')
    print(f'{"not " if inside.returncode else ""}ok 1 - {NAME}')
    return inside.returncode != 0


if __name__ == '__main__':
    sys.exit(main())
