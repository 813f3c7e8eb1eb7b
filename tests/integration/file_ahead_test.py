#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""file_ahead_test.py [--build FOLDER] [PATTERN]: files that the daemon reads ahead of jobs in sequence.

Each test has the daemon to itself.  Those with a file system of their own need root and /dev/fuse,
and are skipped otherwise.  Reports in the Test Anything Protocol.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import file_client_test as files  # noqa: E402  pylint: disable=wrong-import-position
from file_client_test import (  # noqa: E402  pylint: disable=wrong-import-position
    FILE, Skipped, client, equal, expect, metric, new_file, register, stored, wait_until, with_fuse)

RANGE = 64 << 10


def end_of_reads(mount):
    return max((offset + size for offset, size in mount.reads()), default=0)


def reader(mount, **options):
    """A session with a slow file, and what runs a job of a range of it."""
    session = client(**options)
    fd = mount.open('slow-20', os.O_RDONLY)
    register(session, fd, read_only=True)
    os.close(fd)

    def run(offset):
        expect(session.run(**stored(src_region=FILE, src_offset=offset, src_nbytes=RANGE, dst_nbytes=RANGE)),
               'ok', out_nbytes=RANGE)
    return session, run


def reads_ahead(mount, **options):
    session, run = reader(mount, **options)
    # The kernel itself reads some 128 KiB ahead.
    for i in range(256):
        if end_of_reads(mount) > (i + 32) * RANGE:
            break
        run(i * RANGE)
    # And all of the window, when it has grown.
    for i in range(i, i + 16):
        run(i * RANGE)
    wait_until(lambda: end_of_reads(mount) >= i * RANGE + (8 << 20), 'nothing is read ahead')
    for i in range(i + 1, i + 17):
        run(i * RANGE)
    ahead, hits = metric(session, 'file_ahead_bytes_total'), metric(session, 'file_ahead_hit_bytes_total')
    assert ahead > 4 << 20, ahead
    assert hits > 512 << 10, hits
    equal(metric(session, 'file_ahead_waste_bytes_total'), 0)
    command = os.path.join(os.path.dirname(files.DAEMON.program), 'wharf')
    said = subprocess.run([command, 'status', '--socket', files.DAEMON.socket], check=True, capture_output=True,
                          text=True).stdout
    assert re.search(r'^files +1 file of clients, 1 process for them, .* read ahead, .* used, 0 .*in vain$', said, re.M), said
    # After a seek nothing more is read there, and what was is waste.
    def is_counted():
        run(40 << 20)
        ahead, hits, waste = (metric(session, f'file_ahead_{name}bytes_total') for name in ('', 'hit_', 'waste_'))
        return 0 < waste == ahead - hits
    run(48 << 20)
    wait_until(is_counted, 'what was in vain is not counted')
    assert end_of_reads(mount) < 49 << 20, end_of_reads(mount)
    session.close()


def test_files_are_read_ahead_of_jobs_in_sequence():
    with_fuse(reads_ahead)


def reads_nothing_ahead(mount, offsets):
    session, run = reader(mount)
    for offset in offsets:
        run(offset)
    equal(metric(session, 'file_ahead_bytes_total'), 0)
    session.close()
    return sum(size for _, size in mount.reads())


def test_nothing_is_read_ahead_of_random_jobs():
    def test(mount):
        nbytes = reads_nothing_ahead(mount, [i * 37 % 64 << 20 for i in range(64)])
        # What jobs read, and no more than the kernel itself adds to them.
        assert nbytes <= 64 * 3 * RANGE, nbytes
    with_fuse(test)


def test_nothing_is_read_ahead_where_it_is_off():
    def test(mount):
        files.with_settings('read_ahead = 0\n',
                            lambda: reads_nothing_ahead(mount, [i * RANGE for i in range(32)]))
        assert end_of_reads(mount) <= 32 * RANGE + (512 << 10), end_of_reads(mount)
    with_fuse(test)


def test_what_is_in_the_page_cache_is_not_read_ahead():
    file = new_file(bytes(8 << 20))
    try:
        os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
    except OSError as error:
        raise Skipped(f'the file system does not tell what is there: {error}') from error
    session = client()
    register(session, file, read_only=True)
    for i in range(64):
        expect(session.run(**stored(src_region=FILE, src_offset=i * RANGE, src_nbytes=RANGE,
                                    dst_nbytes=RANGE)), 'ok')
    equal(metric(session, 'file_ahead_bytes_total'), 0)
    session.close()


def test_files_are_read_ahead_for_the_gpu_too():
    settings = '[gpu]\nengine = simt\npin_after = 0ms\n'
    with_fuse(lambda mount: files.with_settings(settings, lambda: reads_ahead(mount, engine='simt')))


if __name__ == '__main__':
    sys.exit(files.main(globals()))
