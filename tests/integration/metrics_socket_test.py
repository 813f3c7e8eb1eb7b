#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""metrics_socket_test.py [--build FOLDER]: the socket for metrics, to which everybody may connect.

Who may not read metrics neither leaves anything in the daemon by it nor keeps others from them.
"""
import argparse
import errno
import os
import signal
import socket
import subprocess
import sys
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

SO_PASSRIGHTS = 83
CONNECT = 42 if os.uname().machine == 'x86_64' else 203


def wait_until_it_serves(daemon):
    """The socket for metrics comes after the main one."""
    end = time.monotonic() + wc.PATIENCE_S
    while 'serves with' not in daemon.says():
        assert time.monotonic() < end, daemon.says()
        time.sleep(0.005)


def connection(daemon):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.setblocking(False)
    client.connect(f'{daemon.socket}.metrics')
    return client


def no_descriptors_before_it_is_known_whose_they_are(daemon, build):
    """They could hang whoever closes them, and a refused client is charged for nothing."""
    del build
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as own:
        try:
            own.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
        except OSError as error:
            assert error.errno == errno.ENOPROTOOPT, error
            return
    daemon.process.send_signal(signal.SIGSTOP)
    with connection(daemon) as client:
        try:
            socket.send_fds(client, [b'GET'], [client.fileno()])
            raise AssertionError('a descriptor was taken')
        except PermissionError:
            pass
    daemon.process.send_signal(signal.SIGCONT)


def waits(process):
    """Whether it is within connect(2), or has ended."""
    try:
        with open(f'/proc/{process.pid}/syscall', encoding='ascii') as file:
            return file.read().startswith(f'{CONNECT} ')
    except OSError:
        return process.poll() is not None


def who_scrapes_waits_behind_others(daemon, build):
    """They filled the socket's backlog: that was said to be a daemon that is down."""
    others = []
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        while True:
            others.append(connection(daemon))
    except BlockingIOError:
        pass
    with subprocess.Popen([f'{build}/wharf', 'stats', f'--scrape={daemon.socket}.metrics'],
                          stdout=subprocess.PIPE, text=True) as scrape:
        end = time.monotonic() + wc.PATIENCE_S
        while not waits(scrape) and scrape.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.001)
        daemon.process.send_signal(signal.SIGCONT)
        for other in others:
            other.close()
        text = scrape.communicate()[0]
    assert '\nwharf_up 1\n' in text, text


def drain_ends_scrapes_that_nobody_reads(daemon, build):
    """As many as there can be at a time; none is accepted any more when they end."""
    del build
    readers = [connection(daemon) for _ in range(4)]
    for reader in readers:
        reader.setblocking(True)
        reader.send(b'GET / HTTP/1.0\r\n\r\n')
        assert reader.recv(1)
    daemon.process.terminate()
    assert daemon.process.wait(wc.PATIENCE_S) == 0
    for reader in readers:
        reader.close()


TESTS = [no_descriptors_before_it_is_known_whose_they_are, who_scrapes_waits_behind_others,
         drain_ends_scrapes_that_nobody_reads]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    build = os.path.join(TOP, parser.parse_args().build)
    failed = 0
    print(f'1..{len(TESTS)}')
    for number, test in enumerate(TESTS, 1):
        daemon = Daemon(f'{build}/wharfd')
        try:
            wait_until_it_serves(daemon)
            test(daemon, build)
            print(f'ok {number} - {test.__name__}', flush=True)
        except Exception as error:  # pylint: disable=broad-exception-caught
            print(f'# {error!r}\nnot ok {number} - {test.__name__}', flush=True)
            failed += 1
        finally:
            if daemon.process.poll() is None:
                daemon.process.send_signal(signal.SIGCONT)
            daemon.remove()
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
