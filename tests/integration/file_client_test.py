#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""file_client_test.py [--build FOLDER] [PATTERN]: files that are read and written by wharfd, as
lib/wharf_client.py knows them from PROTOCOL.md.

Each test has the daemon to itself.  Those with a file system of their own need root and /dev/fuse,
and are skipped otherwise.  Reports in the Test Anything Protocol.
"""
import argparse
import errno
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position
import fuse_files  # noqa: E402  pylint: disable=wrong-import-position
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

TEXT = b''.join(b'line %d of a text that is easily made smaller\n' % i for i in range(3000))
FILE, SPARSE = 5, 6
MOST = (1 << 63) - 1
NOBODY = 65534


class Skipped(Exception):
    pass


DAEMON = None
FOLDER = None


def client(**options):
    return wc.Client(DAEMON.socket, **options)


def equal(got, expected, what=''):
    assert got == expected, f'{what}: {got!r} instead of {expected!r}'


def refused(code, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except wc.Refused as error:
        equal(error.code, getattr(errno, code), str(error))
        return
    raise AssertionError(f'not refused with {code}')


def lost(session):
    """The daemon ends the connection; returns the errno value of its last word."""
    code = None
    end = time.monotonic() + wc.PATIENCE_S
    while time.monotonic() < end:
        try:
            session.connection.receive(1)
        except wc.Refused as error:
            code = error.code
        except wc.Lost:
            return code
    raise AssertionError('still connected')


def expect(completion, result, reason='none', **members):
    equal(completion['result'], wc.RESULTS[result], f'result of {completion}')
    number = reason if isinstance(reason, int) else wc.REASONS[reason]
    equal(completion['reason'], number, f'reason of {completion}')
    if result != 'ok':
        members = {'in_nbytes': 0, 'out_nbytes': 0, **members}
    for name, value in members.items():
        equal(completion[name], value, f'{name} of {completion}')


def failed_read(code):
    return wc.REASONS['file_read'] + getattr(errno, code)


def failed_write(code):
    return wc.REASONS['file_write'] + getattr(errno, code)


def deflated(data):
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def new_file(contents=b''):
    file = tempfile.TemporaryFile(dir=FOLDER)
    file.write(contents)
    file.flush()
    return file


def register(session, file, region=FILE, nbytes=MOST, read_only=False):
    fd = file if isinstance(file, int) else file.fileno()
    session.register(region, fd, nbytes, read_only=read_only, kind=wc.MEMORY_KIND_FILE)


def job(**members):
    return {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['deflate'], 'user_data': 1, **members}


def stored(**members):
    return job(**{'codec': wc.CODECS['stored'], **members})


def name_of(pid):
    try:
        with open(f'/proc/{pid}/comm', encoding='ascii') as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def metric(session, name):
    [family] = [family for family in session.stats() if family.name == f'wharf_{name}']
    return int(family.samples[0].value)


def io_processes():
    """Of the daemon, those that have not ended."""
    pid = DAEMON.process.pid
    found = []
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/children', encoding='ascii') as file:
            found += [int(child) for child in file.read().split() if name_of(child) == 'wharfd-io']
    return found


def wait_until(holds, what):
    end = time.monotonic() + wc.PATIENCE_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.002)


def stop(process):
    """All its threads."""
    def state(task):
        with open(f'/proc/{process}/task/{task}/stat', encoding='ascii') as file:
            return file.read().rsplit(')', 1)[1].split()[0]
    os.kill(process, signal.SIGSTOP)
    wait_until(lambda: all(state(task) == 'T' for task in os.listdir(f'/proc/{process}/task')),
               'the process is not stopped')


def with_settings(settings, test):
    """The test with a daemon of its own, which has them; first those of section daemon."""
    global DAEMON  # pylint: disable=global-statement
    usual, DAEMON = DAEMON, Daemon(DAEMON.program, sections=settings)
    os.chmod(DAEMON.folder, 0o755)
    try:
        test()
    finally:
        DAEMON.remove()
        DAEMON = usual


# ---- the processes' start ------------------------------------------------------------------------

def starts_of_processes():
    file, begun, sessions = new_file(b'x'), time.monotonic(), []
    for i in range(48):
        sessions.append(client(n_entries=2, arena_nbytes=4096))
        register(sessions[-1], file)
        spare = 32 + (time.monotonic() - begun) / 0.04
        assert i < spare, f'{i + 1} processes after {time.monotonic() - begun:.3f} s'
    # What starts no process goes on at once: the second file of a session, and memory.
    register(sessions[0], file, region=SPARSE)
    memory = wc.sealed_memfd(4096)
    sessions[0].register(7, memory, 4096)
    os.close(memory)
    for session in sessions:
        session.close()
    wait_until(lambda: not io_processes(), 'processes are left')


def test_a_users_processes_start_one_by_one_beyond_the_first_32():
    """Storms of sessions with a file kept a processor busy with starting wharfd-io, and others
    waited for milliseconds.  With one worker, each has to wait for 40 ms."""
    with_settings('[cpu]\nworkers = 1\n', starts_of_processes)


def total_of_tasks():
    file = new_file(b'x')
    sessions = [client(n_entries=2, arena_nbytes=4096) for _ in range(4)]
    for session in sessions[:3]:
        register(session, file)
    try:
        register(sessions[3], file)
        raise AssertionError('not refused')
    except wc.Refused as error:
        equal(error.code, errno.EDQUOT)
        assert '[total] max_tasks, 9' in str(error), error
    sessions[0].close()
    wait_until(lambda: len(io_processes()) == 2, 'the first process is left')
    register(sessions[3], file)
    for session in sessions[1:]:
        session.close()


def test_threads_for_files_have_a_total():
    """Each session with files has up to 33: one user's took all that the daemon may have, and then
    no process of its own could start."""
    with_settings('[cpu]\nworkers = 1\n[total]\nmax_tasks = 9\n', total_of_tasks)


# ---- bytes and results ---------------------------------------------------------------------------

def read_vector(path):
    with open(f'{path}.expect', encoding='utf-8') as file:
        expected = dict(line.split(None, 1) for line in file.read().splitlines() if line)
    with open(path, 'rb') as file:
        return file.read(), {key: value.strip() for key, value in expected.items()}


def vectors_of(codec):
    for kind in ('ok', 'bad'):
        folder = f'{TOP}/tests/vectors/{codec}/{kind}'
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if not name.endswith('.expect'):
                yield f'{folder}/{name}'


def test_vectors_through_files_are_as_through_memory():
    room = 4 << 20
    session = client(arena_nbytes=2 * room)
    file = new_file()
    register(session, file)
    same = [name for name in wc.COMPLETION_MEMBERS if name not in ('queue_ns', 'run_ns')]
    for codec, number in sorted(wc.CODECS.items()):
        n = 0
        for path in vectors_of(codec):
            data, expected = read_vector(path)
            capacity = int(expected.get('out_avail', expected.get('out_nbytes', 2 << 20)))
            session.arena.write(0, data)
            os.pwrite(file.fileno(), data, 0)
            os.pwrite(file.fileno(), b'untouched', room)
            one = job(codec=number, parameter=int(expected.get('parameter', 0)),
                      src_nbytes=len(data), dst_offset=room, dst_nbytes=capacity)
            by_memory = session.run(**one)
            output = session.arena.read(room, by_memory['out_nbytes'])
            for regions in ({'src_region': FILE}, {'dst_region': FILE},
                            {'src_region': FILE, 'dst_region': FILE}):
                session.arena.write(room, bytes(len(output)))
                completion = session.run(**one, **regions)
                for name in same:
                    equal(completion[name], by_memory[name], f'{name} of {path} {regions}')
                got = (os.pread(file.fileno(), len(output), room) if 'dst_region' in regions
                       else session.arena.read(room, len(output)))
                equal(got, output, f'{path} {regions}')
                if completion['result'] != wc.RESULTS['ok'] and 'dst_region' in regions:
                    equal(os.pread(file.fileno(), 9, room), b'untouched', path)
            n += 1
        assert n > 0, f'no vectors of {codec}'
    session.close()


def test_chunks_longer_than_a_step_come_whole():
    data = bytes(range(256)) * 12345
    session = client(arena_nbytes=8 << 20)
    file = new_file(b'x' * 77 + data)
    register(session, file)
    expect(session.run(**stored(src_region=FILE, src_offset=77, src_nbytes=len(data), dst_offset=1,
                                dst_nbytes=len(data))), 'ok', out_nbytes=len(data))
    equal(session.arena.read(1, len(data)), data)
    expect(session.run(**stored(src_offset=1, src_nbytes=len(data), dst_region=FILE,
                                dst_offset=5 << 20, dst_nbytes=len(data))), 'ok')
    equal(os.pread(file.fileno(), len(data) + 1, 5 << 20), data)
    session.close()


def test_batches_name_files_chunk_by_chunk():
    session = client(arena_nbytes=4 << 20)
    packed = [deflated(TEXT[i:i + 5000]) for i in range(60)]
    starts = [sum(map(len, packed[:i])) for i in range(60)]
    file = new_file(b''.join(packed))
    register(session, file)
    table, results, room = 0, 8192, 8192
    for i in range(60):
        where = {'src_region': FILE, 'src_offset': starts[i], 'src_nbytes': len(packed[i]),
                 'dst_region': FILE if i % 2 else 0, 'dst_offset': (1 << 20) + i * room,
                 'dst_nbytes': 5000}
        if i == 7:
            where['src_offset'] = 1 << 40
        if i == 9:
            where['src_nbytes'] -= 1
        session.arena.write(table + 32 * i, wc.CHUNK.pack(*(where.get(name, 0)
                                                           for name in wc.CHUNK_MEMBERS)))
    batch = job(opcode=wc.OP_BATCH, src_nbytes=60 * 32, dst_offset=results, dst_nbytes=60 * 24)
    expect(session.run(**batch), 'file_error', 'file_short', first_bad_chunk=7, bit_offset=0)
    for i in range(60):
        result = dict(zip(wc.CHUNK_RESULT_MEMBERS,
                          wc.CHUNK_RESULT.unpack(session.arena.read(results + 24 * i, 24))))
        if i == 7:
            expect(result, 'file_error', 'file_short')
        elif i == 9:
            expect(result, 'bad_data', 'input_truncated')
        else:
            expect(result, 'ok', out_nbytes=5000, in_nbytes=len(packed[i]))
            at = (1 << 20) + i * room
            got = os.pread(file.fileno(), 5000, at) if i % 2 else session.arena.read(at, 5000)
            equal(got, TEXT[i:i + 5000], f'chunk {i}')
    session.close()


def test_bad_ranges_are_told():
    session = client()
    file = new_file(TEXT)
    register(session, file, nbytes=MOST)
    register(session, file, region=SPARSE, nbytes=1000)
    source = {'src_region': FILE, 'dst_nbytes': 100}
    cases = [
        ({**source, 'src_nbytes': 0}, 'ok', 'none', 0),
        ({**source, 'src_offset': len(TEXT) - 40, 'src_nbytes': 100}, 'file_error', 'file_short',
         8 * 40),
        ({**source, 'src_offset': len(TEXT), 'src_nbytes': 1}, 'file_error', 'file_short', 0),
        ({**source, 'src_offset': MOST - 50, 'src_nbytes': 50}, 'file_error', 'file_short', 0),
        ({**source, 'src_offset': MOST - 50, 'src_nbytes': 51}, 'bad_request', 'request_range', 0),
        ({**source, 'src_offset': 1 << 63, 'src_nbytes': 1}, 'bad_request', 'request_range', 0),
        ({**source, 'src_offset': 2**64 - 50, 'src_nbytes': 100}, 'bad_request', 'request_range', 0),
        ({**source, 'src_offset': 50, 'src_nbytes': 2**64 - 1}, 'bad_request', 'request_range', 0),
        ({**source, 'src_region': SPARSE, 'src_offset': 990, 'src_nbytes': 11}, 'bad_request',
         'request_range', 0),
        ({'src_region': FILE, 'src_nbytes': 60, 'dst_region': FILE, 'dst_offset': 59,
          'dst_nbytes': 60}, 'bad_request', 'request_overlap', 0),
        ({'src_nbytes': 10, 'dst_region': SPARSE, 'dst_offset': 995, 'dst_nbytes': 10},
         'bad_request', 'request_range', 0),
        ({'src_region': 9, 'src_nbytes': 10}, 'bad_request', 'request_region', 0),
        ({'opcode': wc.OP_BATCH, 'src_region': FILE, 'src_nbytes': 32}, 'bad_request',
         'request_region', 0),
    ]
    for members, result, reason, bit_offset in cases:
        expect(session.run(**stored(**members)), result, reason, bit_offset=bit_offset)
    equal(os.fstat(file.fileno()).st_size, len(TEXT), 'size')
    # As far as an offset can be: the file system says so.
    completion = session.run(**stored(src_nbytes=10, dst_region=FILE, dst_offset=MOST - 20,
                                      dst_nbytes=10))
    assert completion['reason'] in (failed_write('EFBIG'), failed_write('EINVAL')), completion
    session.close()


def test_mode_of_the_descriptor_is_kept_to():
    session = client()
    with tempfile.NamedTemporaryFile(dir=FOLDER) as file:
        file.write(TEXT)
        file.flush()
        modes = {how: os.open(file.name, how) for how in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR)}
        appends = os.open(file.name, os.O_RDWR | os.O_APPEND)
        path = os.open(file.name, os.O_PATH)
        refused('EACCES', register, session, modes[os.O_RDONLY])
        refused('EACCES', register, session, modes[os.O_WRONLY], read_only=True)
        refused('EINVAL', register, session, appends)
        refused('EBADF', register, session, path, read_only=True)
        register(session, appends, region=1, read_only=True)
        register(session, modes[os.O_RDONLY], region=2, read_only=True)
        register(session, modes[os.O_WRONLY], region=3)
        register(session, modes[os.O_RDWR], region=4, read_only=True)
        os.lseek(modes[os.O_RDONLY], 123, os.SEEK_SET)
        for region in (1, 2, 4):
            expect(session.run(**stored(src_region=region, src_nbytes=50, dst_nbytes=50)), 'ok')
            equal(session.arena.read(0, 50), TEXT[:50])
            expect(session.run(**stored(src_nbytes=50, dst_region=region, dst_nbytes=50)),
                   'bad_request', 'request_region')
        expect(session.run(**stored(src_region=3, src_nbytes=50, dst_nbytes=50)), 'bad_request',
               'request_region')
        expect(session.run(**stored(src_nbytes=50, dst_region=3, dst_offset=7, dst_nbytes=50)), 'ok')
        equal(os.pread(modes[os.O_RDWR], 50, 7), TEXT[:50])
        equal(os.lseek(modes[os.O_RDONLY], 0, os.SEEK_CUR), 123, 'position')
        for fd in (*modes.values(), appends, path):
            os.close(fd)
    session.close()


def test_what_is_no_file_is_refused():
    session = client()
    pipe, ends = os.pipe(), socket.socketpair()
    cases = [(pipe[0], 'EBADF'), (ends[0].fileno(), 'EBADF')]
    for path, code in (('/dev/null', 'EBADF'), ('/', 'EBADF'), ('/proc/self/status', 'EOPNOTSUPP'),
                       ('/proc/self/mem', 'EOPNOTSUPP'), ('/sys/kernel/uevent_seqnum', 'EOPNOTSUPP')):
        cases.append((os.open(path, os.O_RDONLY), code))
    for fd, code in cases:
        refused(code, register, session, fd, read_only=True)
    file = new_file(TEXT)
    refused('EINVAL', register, session, file, nbytes=1 << 63)
    refused('EINVAL', register, session, file, nbytes=0)
    refused('EINVAL', register, session, file, region=0)
    register(session, file)
    refused('EEXIST', register, session, file)
    session.unregister(FILE)
    register(session, file)
    expect(session.run(**stored(src_region=FILE, src_nbytes=9, dst_nbytes=9)), 'ok')
    session.close()


def memory_is_a_source_alone(fd):
    """A file in memory with TEXT."""
    session = client()
    refused('EROFS', register, session, fd)
    register(session, fd, read_only=True)
    expect(session.run(**stored(src_region=FILE, src_nbytes=90, dst_nbytes=90)), 'ok')
    equal(session.arena.read(0, 90), TEXT[:90])
    expect(session.run(**stored(src_nbytes=90, dst_region=FILE, dst_nbytes=90)), 'bad_request',
           'request_region')
    session.close()
    os.close(fd)


def test_files_in_memory_are_sources_alone():
    fds = [os.memfd_create('file', os.MFD_CLOEXEC)]
    if os.path.isdir('/dev/shm'):
        fds.append(os.open('/dev/shm', os.O_TMPFILE | os.O_RDWR, 0o600))
    for fd in fds:
        os.write(fd, TEXT)
        memory_is_a_source_alone(fd)
        refused('EROFS', register, client(), os.memfd_create('empty', os.MFD_CLOEXEC))


def mount(kind, folder, options=''):
    os.makedirs(folder, exist_ok=True)
    done = subprocess.run(['mount', '-t', kind, '-o', options, 'wharf-test', folder], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise Skipped(f'cannot mount: {done.stderr.strip()}')


def overlay(folder):
    """Mounts one whose files are written in `folder`, and returns a new one."""
    at = {name: os.path.join(folder, name) for name in ('lower', 'upper', 'work', 'merged')}
    for path in at.values():
        os.mkdir(path)
    mount('overlay', at['merged'],
          f'lowerdir={at["lower"]},upperdir={at["upper"]},workdir={at["work"]}')
    fd = os.open(os.path.join(at['merged'], 'file'), os.O_RDWR | os.O_CREAT)
    os.write(fd, TEXT)
    return fd


def test_overlays_count_as_what_is_below_them():
    if os.geteuid() != 0:
        raise Skipped('needs root')
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        disk, memory = os.path.join(folder, 'disk'), os.path.join(folder, 'memory')
        os.mkdir(disk)
        try:
            mount('ramfs', memory)
            fd = os.open(os.path.join(memory, 'file'), os.O_RDWR | os.O_CREAT)
            os.write(fd, TEXT)
            memory_is_a_source_alone(fd)
            memory_is_a_source_alone(overlay(memory))
            fd = overlay(disk)
            session = client()
            register(session, fd)
            expect(session.run(**stored(src_region=FILE, src_nbytes=90, dst_region=FILE, dst_offset=700,
                                        dst_nbytes=90)), 'ok')
            equal(os.pread(fd, 90, 700), TEXT[:90])
            session.close()
            os.close(fd)
        finally:
            for path in (f'{memory}/merged', f'{disk}/merged', memory):
                subprocess.run(['umount', '--lazy', path], capture_output=True, check=False)


def test_files_have_to_be_agreed_on():
    connection = wc.Connection(DAEMON.socket)
    equal(connection.hello(optional=wc.FEATURE_MARKS).features, wc.FEATURE_MARKS)
    connection.ask('open_queue', wc.messages.OpenQueueRequest(n_entries=4), 'open_queue')
    request = wc.messages.RegisterMemoryRequest(region=1, kind=wc.MEMORY_KIND_FILE, nbytes=9)
    with new_file(TEXT) as file:
        refused('EOPNOTSUPP', connection.ask, 'register_memory', request, 'done', [file.fileno()])
    connection.close()
    equal(io_processes(), [])


def test_file_that_shrinks_is_told():
    session = client()
    file = new_file(TEXT)
    register(session, file)
    one = stored(src_region=FILE, src_nbytes=1000, dst_nbytes=1000)
    expect(session.run(**one), 'ok')
    os.ftruncate(file.fileno(), 300)
    expect(session.run(**one), 'file_error', 'file_short', bit_offset=8 * 300)
    os.pwrite(file.fileno(), TEXT, 0)
    expect(session.run(**one), 'ok')
    session.close()


def test_numbers_of_files_are_used_again():
    session = client()
    file = new_file(TEXT)
    for _ in range(1100):
        register(session, file, read_only=True)
        session.unregister(FILE)
    register(session, file)
    expect(session.run(**stored(src_region=FILE, src_nbytes=9, dst_nbytes=9)), 'ok')
    session.close()


# ---- deaths --------------------------------------------------------------------------------------

def test_process_ends_with_its_session():
    before = io_processes()
    session = client()
    register(session, new_file(TEXT))
    equal(len(io_processes()), len(before) + 1)
    session.close()
    wait_until(lambda: io_processes() == before, 'the process for files lives on')


def test_killed_process_loses_no_job():
    """While it is idle, while it is asked to look at a file, and while it has reads."""
    for moment in ('idle', 'reading', 'registering'):
        session = client(n_entries=64, arena_nbytes=16 << 20)
        packed = deflated(TEXT)
        file = new_file(packed)
        register(session, file)
        [process] = io_processes()
        if moment != 'idle':
            stop(process)
        for i in range(50 if moment == 'reading' else 0):
            session.submit(**job(user_data=i, src_region=FILE, src_nbytes=len(packed),
                                 dst_offset=i << 18, dst_nbytes=len(TEXT)))
        if moment == 'registering':
            request = wc.messages.Request(id=99)
            request.register_memory.CopyFrom(wc.messages.RegisterMemoryRequest(
                region=SPARSE, kind=wc.MEMORY_KIND_FILE, nbytes=10))
            session.connection.send(request.SerializeToString(), [file.fileno()])
        os.kill(process, signal.SIGKILL)
        equal(lost(session), errno.ESHUTDOWN, moment)
        done = session.come_back()
        if moment == 'reading':
            done += session.wait(50 - len(done))
            equal(sorted(c['user_data'] for c in done), list(range(50)))
        for completion in done:
            expect(completion, 'ok', out_nbytes=len(TEXT))
            equal(session.arena.read(completion['user_data'] << 18, len(TEXT)), TEXT)
        expect(session.run(**job(src_region=FILE, src_nbytes=len(packed), dst_nbytes=len(TEXT))),
               'ok')
        session.close()
        wait_until(lambda: not io_processes(), 'the process for files lives on')


def test_killed_daemon_loses_no_job():
    session = client(n_entries=256, arena_nbytes=48 << 20)
    packed = deflated(TEXT)
    file = new_file(packed)
    register(session, file, read_only=True)
    for i in range(180):
        session.submit(publish=False, **job(user_data=i, src_region=FILE, src_nbytes=len(packed),
                                            dst_offset=i << 18, dst_nbytes=len(TEXT)))
    session.publish()
    done = session.wait(1)
    DAEMON.kill()
    DAEMON.start()
    done += session.wait_through(180 - len(done))
    equal(sorted(c['user_data'] for c in done), list(range(180)))
    for completion in done:
        expect(completion, 'ok', out_nbytes=len(TEXT))
        equal(session.arena.read(completion['user_data'] << 18, len(TEXT)), TEXT)
    session.close()


def test_killed_daemon_leaves_no_write_in_doubt_unsaid():
    """What was begun has ended, one way or the other; all else is done by the next daemon."""
    session = client(n_entries=256, arena_nbytes=1 << 20)
    packed = deflated(TEXT)
    session.arena.write(0, packed)
    file = new_file()
    register(session, file)
    for i in range(180):
        session.submit(publish=False, **job(user_data=i, src_nbytes=len(packed), dst_region=FILE,
                                            dst_offset=i << 18, dst_nbytes=len(TEXT)))
    session.publish()
    done = session.wait(1)
    DAEMON.kill()
    DAEMON.start()
    done += session.wait_through(180 - len(done))
    equal(sorted(c['user_data'] for c in done), list(range(180)))
    abandoned = [c for c in done if c['reason'] == wc.REASONS['file_abandoned']]
    # Each worker has one, and one more where it is blocked in it.
    assert len(abandoned) <= 2 * os.cpu_count() + 2, abandoned
    for completion in done:
        if completion in abandoned:
            expect(completion, 'file_error', 'file_abandoned')
            continue
        expect(completion, 'ok', out_nbytes=len(TEXT))
        equal(os.pread(file.fileno(), len(TEXT), completion['user_data'] << 18), TEXT)
    session.close()


def with_timeout(timeout, test):
    """The test with a daemon of that file_timeout."""
    with_settings(f'file_timeout = {timeout}\nsocket_mode = 0666\nsocket_group =\n[quota]\n'
                  'max_connections = 20\n', test)


def stopped_process_is_late():
    session = client()
    file = new_file(TEXT)
    register(session, file)
    for job_members, reason in (
            ({'src_region': FILE, 'dst_nbytes': 90}, 'file_time'),
            ({'dst_region': FILE, 'dst_offset': 500000, 'dst_nbytes': 90}, 'file_abandoned')):
        [process] = io_processes()
        stop(process)
        session.submit(**stored(src_nbytes=90, **job_members))
        equal(lost(session), errno.ESHUTDOWN)
        [completion] = session.come_back()
        expect(completion, 'file_error', reason, bit_offset=0)
        wait_until(lambda gone=process: gone not in io_processes(), 'the process was not killed')
    expect(session.run(**stored(src_region=FILE, src_nbytes=90, dst_nbytes=90)), 'ok')
    session.close()


def test_process_that_does_not_answer_is_replaced():
    with_timeout('200ms', stopped_process_is_late)


# ---- files of a server of our own ----------------------------------------------------------------

def with_fuse(test):
    if os.geteuid() != 0 or not os.path.exists('/dev/fuse'):
        raise Skipped('needs root and /dev/fuse')
    folder = tempfile.mkdtemp(dir=FOLDER)
    try:
        mount = fuse_files.Mount(folder)
    except OSError as error:
        raise Skipped(f'cannot mount: {error}') from error
    try:
        test(mount)
    finally:
        mount.end()


def errors_of_files(mount):
    session = client(arena_nbytes=2 << 20)
    for name in ('EIO', 'EACCES', 'ESTALE', 'EREMOTEIO', 'ETIMEDOUT'):
        fd = mount.open(f'read-{name}')
        register(session, fd)
        expect(session.run(**stored(src_region=FILE, src_offset=5, src_nbytes=90, dst_nbytes=90)),
               'file_error', failed_read(name), bit_offset=0)
        session.unregister(FILE)
        os.close(fd)
    for name in ('EIO', 'ENOSPC', 'EDQUOT', 'EROFS', 'EFBIG', 'EPERM'):
        fd = mount.open(f'write-{name}')
        register(session, fd)
        expect(session.run(**stored(src_nbytes=90, dst_region=FILE, dst_nbytes=90)),
               'file_error', failed_write(name), bit_offset=0)
        session.unregister(FILE)
        os.close(fd)
    fd = mount.open('read-half')
    register(session, fd)
    expect(session.run(**stored(src_region=FILE, src_nbytes=4096, dst_nbytes=4096)),
           'file_error', 'file_short', bit_offset=8 * 2048)
    os.close(fd)
    session.close()


def test_errors_of_files_are_told():
    with_fuse(errors_of_files)


def job_of_another_user(members):
    """Its result, by a process that is a client of its own."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.setresuid(NOBODY, NOBODY, NOBODY)
            session = client()
            session.arena.write(0, TEXT)
            status = session.run(**members)['result']
            session.close()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def submit_reads(fd):
    """More than there are workers and spare ones."""
    session = client(n_entries=256)
    register(session, fd)
    for i in range(4 * os.cpu_count() + 4):
        session.submit(publish=False, **stored(user_data=i, src_region=FILE, src_nbytes=90,
                                               dst_nbytes=90))
    session.publish()
    return session


def reads_that_hang(mount):
    """Three users keep all workers and all spare ones waiting; a fourth one does not wait."""
    fd = mount.open('read-hang')
    session = submit_reads(fd)
    children, begun = [], os.pipe()
    for user in (1, 2):
        child = os.fork()
        if child == 0:
            try:
                os.setresuid(user, user, user)
                other = submit_reads(fd)
                os.write(begun[1], b'.')
                lost(other)
            finally:
                os._exit(0)
        children.append(child)
        equal(os.read(begun[0], 1), b'.')
    for _ in range(3):
        equal(job_of_another_user(stored(src_nbytes=90, dst_offset=4096, dst_nbytes=90)), 0)
    session.close()
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.close(fd)
    equal(job_of_another_user(stored(src_nbytes=90, dst_offset=4096, dst_nbytes=90)), 0)


def test_reads_that_hang_are_their_users_alone():
    with_fuse(lambda mount: with_timeout('1000s', lambda: reads_that_hang(mount)))


def late_files(mount):
    for name, members, reason in (
            ('read-hang', {'src_region': FILE, 'dst_nbytes': 90}, 'file_time'),
            ('write-hang', {'dst_region': FILE, 'dst_nbytes': 90}, 'file_abandoned')):
        session = client()
        fd = mount.open(name)
        register(session, fd)
        session.submit(**stored(src_nbytes=90, **members))
        equal(lost(session), errno.ESHUTDOWN, name)
        [completion] = session._take()  # pylint: disable=protected-access
        expect(completion, 'file_error', reason, bit_offset=0)
        session.close()
        os.close(fd)
    # Both hang still.  Their user may hand over no more; others may.
    session = client()
    refused('EBUSY', register, session, new_file(TEXT))
    session.close()
    equal(job_of_another_user(stored(src_nbytes=90, dst_offset=4096, dst_nbytes=90)), 0)


def descriptors(process):
    return os.listdir(f'/proc/{process}/fd')


def file_that_is_given_up(mount):
    session = client()
    register(session, new_file(TEXT))
    [process] = io_processes()
    before = len(descriptors(process))
    fd = mount.open('stat-hang')
    # Refused at once, while the process looks at it.
    refused('EINVAL', register, session, fd, region=SPARSE, nbytes=0)
    os.close(fd)
    mount.await_hanging(1)
    # Meanwhile others are taken, in its place too.
    for _ in range(20):
        register(session, new_file(TEXT), region=SPARSE)
        session.unregister(SPARSE)
    register(session, new_file(TEXT), region=SPARSE)
    mount.release()
    wait_until(lambda: len(descriptors(process)) == before + 1, 'the file that was given up stays open')
    for region in FILE, SPARSE:
        session.arena.write(0, bytes(90))
        expect(session.run(**stored(src_region=region, src_nbytes=90, dst_nbytes=90)), 'ok')
        equal(session.arena.read(0, 90), TEXT[:90])
    equal(io_processes(), [process])
    session.close()


def test_file_that_is_given_up_while_it_is_looked_at_is_closed():
    """Its descriptor had stayed open, in the place of a file that came later."""
    with_fuse(file_that_is_given_up)


def killed_write(mount):
    """A write that its server has and has not answered: nobody knows what becomes of it."""
    session = client(n_entries=64)
    session.arena.write(0, TEXT[:90])
    fd = mount.open('write-hang')
    register(session, fd)
    plain = new_file()
    register(session, plain, region=SPARSE)
    session.submit(**stored(user_data=7, src_nbytes=90, dst_region=FILE, dst_nbytes=90))
    mount.await_hanging(1)
    for i in range(10):
        session.submit(**stored(user_data=20 + i, src_nbytes=90, dst_region=SPARSE, dst_offset=100 * i,
                                dst_nbytes=90))
    [process] = io_processes()
    os.kill(process, signal.SIGKILL)
    equal(lost(session), errno.ESHUTDOWN)
    done = session.come_back()
    done += session.wait(11 - len(done))
    equal(sorted(c['user_data'] for c in done), [7, *range(20, 30)])
    for completion in done:
        if completion['user_data'] == 7:
            expect(completion, 'file_error', 'file_abandoned', bit_offset=0)
        elif completion['reason'] != wc.REASONS['file_abandoned']:
            expect(completion, 'ok', out_nbytes=90)
            equal(os.pread(plain.fileno(), 90, 100 * (completion['user_data'] - 20)), TEXT[:90])
    mount.release()
    wait_until(lambda: process not in io_processes(), 'the process for files lives on')
    os.close(fd)
    session.close()


def test_killed_process_leaves_no_write_in_doubt_unsaid():
    with_fuse(killed_write)


def with_loop_device(test):
    """With a file of 1 MiB as a block device."""
    with tempfile.NamedTemporaryFile(dir=FOLDER) as file:
        file.truncate(1 << 20)
        try:
            done = subprocess.run(['losetup', '--find', '--show', file.name], capture_output=True, text=True,
                                  check=False)
        except FileNotFoundError as error:
            raise Skipped('there is no losetup') from error
        device = done.stdout.strip()
        if done.returncode or not os.access(device, os.R_OK | os.W_OK):
            raise Skipped(f'no loop device: {done.stderr.strip()}')
        try:
            test(device)
        finally:
            subprocess.run(['losetup', '--detach', device], check=True)


def block_device(device):
    packed = deflated(TEXT)
    fd = os.open(device, os.O_RDWR)
    os.pwrite(fd, packed, 4096 + 77)
    session = client(arena_nbytes=1 << 20)
    register(session, fd)
    expect(session.run(**job(src_region=FILE, src_offset=4096 + 77, src_nbytes=len(packed), dst_region=FILE,
                             dst_offset=500001, dst_nbytes=len(TEXT))), 'ok', out_nbytes=len(TEXT))
    equal(os.pread(fd, len(TEXT), 500001), TEXT)
    # It ends as a file does, but nothing makes it longer.
    end = 1 << 20
    expect(session.run(**stored(src_region=FILE, src_offset=end - 40, src_nbytes=90, dst_nbytes=90)),
           'file_error', 'file_short', bit_offset=8 * 40)
    expect(session.run(**stored(src_nbytes=90, dst_region=FILE, dst_offset=end - 40, dst_nbytes=90)),
           'file_error', failed_write('ENOSPC'), bit_offset=8 * 40)
    session.close()
    os.close(fd)


def test_block_devices_are_files():
    with_loop_device(block_device)


def test_late_files_end_their_jobs_and_are_bounded():
    def test(mount):
        late_files(mount)
        # What hangs comes back when the server is gone.
        mount.end()
        wait_until(lambda: not io_processes(), 'what hung lives on')
        session = client()
        register(session, new_file(TEXT))
        session.close()
    with_fuse(lambda mount: with_timeout('200ms', lambda: test(mount)))


# ---- all of them ---------------------------------------------------------------------------------

def run_one(test):
    """The word for the report."""
    try:
        test()
        if DAEMON.process.poll() is not None:
            raise AssertionError(f'the daemon has ended; it said:\n{DAEMON.says()}')
        return 'ok', ''
    except Skipped as reason:
        return 'ok', f' # SKIP {reason}'
    except Exception:  # pylint: disable=broad-exception-caught
        print(re.sub('^', '# ', traceback.format_exc().rstrip(), flags=re.M))
        print(re.sub('^', '# ', DAEMON.says().rstrip(), flags=re.M))
        return 'not ok', ''


def run_tests(tests, sections, program, pattern):
    global DAEMON, FOLDER  # pylint: disable=global-statement
    names = [name for name in tests if name.startswith('test_') and re.search(pattern, name)]
    failed = 0
    print(f'1..{len(names)}', flush=True)
    # The daemon writes no files in memory, where /tmp may be.
    with tempfile.TemporaryDirectory(prefix='wharf-files.', dir='/var/tmp') as FOLDER:
        for number, name in enumerate(names, 1):
            DAEMON = Daemon(program, sections=sections)
            word, more = run_one(tests[name])
            DAEMON.remove()
            failed += word != 'ok'
            print(f'{word} {number} - {name.removeprefix("test_")}{more}', flush=True)
    return failed


def main(tests, sections=''):
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    parser.add_argument('pattern', nargs='?', default='.')
    options = parser.parse_args()
    return run_tests(tests, sections, os.path.join(TOP, options.build, 'wharfd'), options.pattern) > 0


if __name__ == '__main__':
    sys.exit(main(globals()))
