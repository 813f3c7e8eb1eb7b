#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""file_gpu_test.py [--build FOLDER] [PATTERN]: sources in files that a GPU decodes, whose code runs
on the CPU here, to memory of the GPU and of the host.

Each test has the daemon to itself.  Those with a file system of their own need root and /dev/fuse,
and are skipped otherwise.  Reports in the Test Anything Protocol.
"""
import errno
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import file_client_test as files  # noqa: E402  pylint: disable=wrong-import-position
from file_client_test import (  # noqa: E402  pylint: disable=wrong-import-position
    FILE, SPARSE, TEXT, client, deflated, equal, expect, io_processes, job, lost, metric, new_file,
    read_vector, register, stored, vectors_of, wait_until, wc, with_fuse)

GPU = 7
ROOM = 256 << 10
AREA = 128 << 20
SECTIONS = '[gpu]\nengine = simt\npin_after = 0ms\n'
SIMT = wc.ENGINES['simt']


class GpuMemory:
    """Memory of the GPU that the client made, which is a memfd here."""
    def __init__(self, session, nbytes):
        self.fd = wc.sealed_memfd(nbytes)
        session.register(GPU, self.fd, nbytes, kind=wc.MEMORY_KIND_GPU)

    def read(self, offset, nbytes):
        return os.pread(self.fd, nbytes, offset)

    def write(self, offset, data):
        os.pwrite(self.fd, data, offset)


def gpu_client(nbytes=4 << 20, **options):
    session = client(**options)
    return session, GpuMemory(session, nbytes)


def place(**members):
    """The members of a job from the file to the GPU's memory."""
    return {'src_region': FILE, 'dst_region': GPU, **members}


def hanging_client(mount, **options):
    """A client whose file's reads hang; that file."""
    session, memory = gpu_client(**options)
    fd = mount.open('read-hang')
    register(session, fd, read_only=True)
    return session, memory, fd


def serves_another_client():
    session, memory = gpu_client()
    register(session, new_file(TEXT), read_only=True)
    expect(session.run(**stored(**place(src_nbytes=90, dst_nbytes=90))), 'ok', engine=SIMT)
    equal(memory.read(0, 90), TEXT[:90])
    session.close()


def is_of(completion):
    equal(completion['engine'], SIMT, f'engine of {completion}')


def name_of_worker():
    """The process ids of the GPU's worker."""
    pid = files.DAEMON.process.pid
    found = []
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/children', encoding='ascii') as children:
            found += [int(child) for child in children.read().split()
                      if (files.name_of(child) or '').startswith('wharfd-simt')]
    return found


# ---- bytes and results ---------------------------------------------------------------------------

def test_vectors_from_files_on_the_gpu_are_as_from_memory_on_the_cpu():
    session, memory = gpu_client(arena_nbytes=2 * ROOM)
    file = new_file()
    register(session, file, read_only=True)
    alone = client(engine='simt', arena_nbytes=ROOM)
    register(alone, file, read_only=True)
    same = ('result', 'reason', 'bit_offset', 'in_nbytes', 'out_nbytes')
    for codec, number in sorted(wc.CODECS.items()):
        n = 0
        for path in vectors_of(codec):
            data, expected = read_vector(path)
            capacity = int(expected.get('out_avail', expected.get('out_nbytes', ROOM)))
            if len(data) > ROOM or capacity > ROOM:
                continue
            session.arena.write(0, data)
            os.pwrite(file.fileno(), data, 100)
            one = job(codec=number, parameter=int(expected.get('parameter', 0)), dst_nbytes=capacity,
                      src_nbytes=len(data))
            cpu = session.run(**one, dst_offset=ROOM)
            output = session.arena.read(ROOM, cpu['out_nbytes'])
            memory.write(0, bytes(len(output)))
            alone.arena.write(0, bytes(len(output)))
            if session.run(**place(**one, src_offset=100))['reason'] == wc.REASONS['gpu_codec']:
                n += 1
                break
            for gpu, target in ((session.run(**place(**one, src_offset=100)), memory),
                                (alone.run(**one, src_region=FILE, src_offset=100), alone.arena)):
                for name in same:
                    equal(gpu[name], cpu[name], f'{name} of {path}')
                equal(target.read(0, len(output)), output, path)
                is_of(gpu)
            n += 1
        assert n > 0, f'no vectors of {codec}'
    alone.close()
    session.close()


def packed_chunks(n):
    packed = [deflated(TEXT[i * 500:i * 500 + 5000]) for i in range(n)]
    starts = [sum(map(len, packed[:i])) + 8 * i for i in range(n)]
    return packed, starts, b''.join(piece + b'between ' for piece in packed)


def run_batch(session, chunks, results=16384, table=0):
    for i, chunk in enumerate(chunks):
        session.arena.write(table + 32 * i, wc.CHUNK.pack(*(chunk.get(name, 0)
                                                           for name in wc.CHUNK_MEMBERS)))
    whole = session.run(**job(opcode=wc.OP_BATCH, src_offset=table, src_nbytes=32 * len(chunks),
                              dst_offset=results, dst_nbytes=24 * len(chunks)))
    return whole, [dict(zip(wc.CHUNK_RESULT_MEMBERS,
                            wc.CHUNK_RESULT.unpack(session.arena.read(results + 24 * i, 24))))
                   for i in range(len(chunks))]


def test_batches_are_read_in_runs_and_each_chunk_has_its_own_result():
    """Good ones beside a bad one, one that the file ends in, one in memory, one far away and one that
    lies before its neighbour."""
    session, memory = gpu_client(arena_nbytes=1 << 20)
    packed, starts, contents = packed_chunks(200)
    file = new_file(contents)
    os.pwrite(file.fileno(), packed[50], 40 << 20)
    os.ftruncate(file.fileno(), (40 << 20) + len(packed[50]))
    register(session, file, read_only=True)
    session.arena.write(65536, packed[40])
    chunks = [place(src_offset=starts[i], src_nbytes=len(packed[i]), dst_offset=i * 8192,
                    dst_nbytes=5000) for i in range(200)]
    chunks[10]['src_nbytes'] -= 1
    chunks[30] = {**chunks[30], 'src_offset': (40 << 20) + len(packed[50]) - 3}
    chunks[40] = {**chunks[40], 'src_region': 0, 'src_offset': 65536}
    chunks[50] = {**chunks[50], 'src_offset': 40 << 20}
    chunks[60], chunks[61] = ({**chunks[60], **{name: chunks[61][name] for name in ('src_offset', 'src_nbytes')}},
                              {**chunks[61], **{name: chunks[60][name] for name in ('src_offset', 'src_nbytes')}})
    whole, results = run_batch(session, chunks)
    expect(whole, 'bad_data', 'input_truncated', first_bad_chunk=10, bit_offset=whole['bit_offset'])
    for i, result in enumerate(results):
        if i == 10:
            expect(result, 'bad_data', 'input_truncated')
        elif i == 30:
            expect(result, 'file_error', 'file_short', bit_offset=8 * 3)
        else:
            of = {60: 61, 61: 60}.get(i, i)
            expect(result, 'ok', out_nbytes=5000, in_nbytes=len(packed[of]), engine=SIMT)
            equal(memory.read(i * 8192, 5000), TEXT[of * 500:of * 500 + 5000], f'chunk {i}')
    session.close()


def test_file_that_ends_in_a_run_fails_the_chunks_behind_its_end_alone():
    session, memory = gpu_client(arena_nbytes=1 << 20)
    packed, starts, contents = packed_chunks(64)
    file = new_file(contents)
    register(session, file, read_only=True)
    os.ftruncate(file.fileno(), starts[20] + 5)
    whole, results = run_batch(session, [
        place(src_offset=starts[i], src_nbytes=len(packed[i]), dst_offset=i * 8192, dst_nbytes=5000)
        for i in range(64)])
    expect(whole, 'file_error', 'file_short', first_bad_chunk=20, bit_offset=8 * 5)
    for i, result in enumerate(results):
        if i < 20:
            expect(result, 'ok', out_nbytes=5000)
            equal(memory.read(i * 8192, 5000), TEXT[i * 500:i * 500 + 5000])
        else:
            expect(result, 'file_error', 'file_short', bit_offset=8 * 5 if i == 20 else 0)
    session.close()


def test_what_a_gpu_cannot_do_with_files_is_told():
    session, _ = gpu_client()
    file = new_file(TEXT + bytes(1 << 20))
    register(session, file)
    large = {'src_nbytes': 300 << 10, 'dst_nbytes': 300 << 10}
    to_file = {'src_region': GPU, 'dst_region': FILE, 'src_nbytes': 9, 'dst_nbytes': 9}
    expect(session.run(**stored(**to_file)), 'bad_request', 'request_region')
    expect(session.run(**place(**stored(**large))), 'no_memory')
    # The CPU does these, whatever the GPU has to do.
    expect(session.run(**stored(src_region=FILE, **large)), 'ok', engine=wc.ENGINES['cpu'])
    expect(session.run(**stored(src_region=FILE, src_nbytes=90, dst_region=FILE, dst_nbytes=90,
                                dst_offset=3 << 20)), 'ok', engine=wc.ENGINES['cpu'])
    # Chunk by chunk each could be done, by one engine or the other.
    whole, _ = run_batch(session, [place(src_nbytes=9, dst_nbytes=9), {
        'src_region': FILE, 'src_nbytes': 9, 'dst_region': FILE, 'dst_offset': 90, 'dst_nbytes': 9}])
    expect(whole, 'bad_request', 'request_region', first_bad_chunk=1)
    session.close()
    alone = client(engine='simt')
    files.refused('EOPNOTSUPP', register, alone, file)
    register(alone, file, read_only=True)
    expect(alone.run(**stored(src_region=FILE, **large)), 'no_memory')
    expect(alone.run(**stored(src_region=FILE, src_nbytes=90, dst_nbytes=90)), 'ok', engine=SIMT)
    expect(alone.run(**stored(src_region=FILE, dst_nbytes=90)), 'ok', engine=SIMT, out_nbytes=0)
    alone.close()


def test_more_than_the_area_holds_goes_through_it():
    """A thousand sources at a time, of which every other one fills a place and fits no output."""
    session = client(engine='simt', n_entries=1024, arena_nbytes=1 << 20)
    file = new_file(TEXT + bytes(200 << 10))
    register(session, file, read_only=True)
    for i in range(1000):
        nbytes = 200 << 10 if i % 2 else 90
        session.submit(publish=False, **stored(user_data=i, src_region=FILE, src_offset=i, src_nbytes=nbytes,
                                               dst_offset=i * 128, dst_nbytes=90))
    session.publish()
    done = session.wait(1000)
    equal(sorted(c['user_data'] for c in done), list(range(1000)))
    for completion in done:
        i = completion['user_data']
        is_of(completion)
        expect(completion, 'output_too_small' if i % 2 else 'ok', 'output_full' if i % 2 else 'none',
               bit_offset=720 if i % 2 else 0)
        if i % 2 == 0:
            equal(session.arena.read(i * 128, 90), TEXT[i:i + 90])
    session.close()


# ---- deaths --------------------------------------------------------------------------------------

def submit_many(session, packed, n=60):
    for i in range(n):
        session.submit(publish=False, **job(user_data=i, src_nbytes=len(packed), dst_nbytes=5000,
                                            **place(dst_offset=i * 8192)))
    session.publish()


def expect_many(done, memory, n=60):
    equal(sorted(c['user_data'] for c in done), list(range(n)))
    for completion in done:
        expect(completion, 'ok', out_nbytes=5000)
        equal(memory.read(completion['user_data'] * 8192, 5000), TEXT[:5000])


def test_killed_processes_lose_no_job():
    """wharfd-io, while it is stopped and has reads; the GPU's worker; the daemon."""
    packed = deflated(TEXT[:5000])
    file = new_file(packed)
    for what in ('io', 'worker', 'daemon'):
        session, memory = gpu_client()
        register(session, file, read_only=True)
        expect(session.run(**job(src_nbytes=len(packed), dst_nbytes=5000, **place())), 'ok', engine=SIMT)
        done = []
        if what == 'io':
            [process] = io_processes()
            files.stop(process)
            submit_many(session, packed)
            os.kill(process, signal.SIGKILL)
            equal(lost(session), errno.ESHUTDOWN)
            done += session.come_back()
        else:
            submit_many(session, packed)
            done += session.wait(1)
        if what == 'worker':
            for process in name_of_worker():
                os.kill(process, signal.SIGKILL)
        if what == 'daemon':
            files.DAEMON.kill()
            files.DAEMON.start()
        done += session.wait_through(60 - len(done))
        expect_many(done, memory)
        session.close()


# ---- files of a server of our own ----------------------------------------------------------------

def errors(mount):
    session, _ = gpu_client()
    for name in ('EIO', 'EACCES', 'ESTALE'):
        fd = mount.open(f'read-{name}')
        register(session, fd, read_only=True)
        expect(session.run(**stored(**place(src_offset=5, src_nbytes=90, dst_nbytes=90))),
               'file_error', files.failed_read(name), bit_offset=0)
        whole, results = run_batch(session, [place(src_offset=90 * i, src_nbytes=90, dst_offset=90 * i,
                                                   dst_nbytes=90) for i in range(5)])
        expect(whole, 'file_error', files.failed_read(name), bit_offset=0)
        for result in results:
            expect(result, 'file_error', files.failed_read(name), bit_offset=0)
        session.unregister(FILE)
        os.close(fd)
    fd = mount.open('read-half')
    register(session, fd, read_only=True)
    expect(session.run(**stored(**place(src_nbytes=4096, dst_nbytes=4096))), 'file_error', 'file_short',
           bit_offset=8 * 2048)
    session.close()
    os.close(fd)


def test_errors_of_files_are_told():
    with_fuse(errors)


def hanging(mount):
    """Reads that hang are in nobody's way: not another file's of their session, and not another
    session's.  Their jobs can be cancelled; what comes late changes nothing."""
    session, memory, fd = hanging_client(mount, n_entries=256)
    register(session, new_file(TEXT), region=SPARSE, read_only=True)
    for i in range(2):
        session.submit(**stored(user_data=1000 + i, **place(src_nbytes=90, dst_nbytes=90)))
    mount.await_hanging(2)
    for i in range(100):
        completion = session.run(**stored(user_data=i, src_region=SPARSE, src_offset=i, src_nbytes=90,
                                          dst_region=GPU, dst_offset=4096, dst_nbytes=90))
        expect(completion, 'ok', engine=SIMT)
        equal(memory.read(4096, 90), TEXT[i:i + 90])
    serves_another_client()
    session.submit(opcode=wc.OP_CANCEL, src_offset=1000, user_data=7)
    done = {c['user_data']: c for c in session.wait(2)}
    expect(done[1000], 'cancelled')
    expect(done[7], 'ok')
    memory.write(0, b'untouched')
    mount.release()
    [late] = session.wait(1)
    expect(late, 'ok', engine=SIMT, user_data=1001)
    equal(memory.read(0, 90), bytes(90))
    for i in range(50):
        expect(session.run(**stored(user_data=i, src_region=SPARSE, src_nbytes=90, dst_region=GPU,
                                    dst_nbytes=90)), 'ok', engine=SIMT)
        equal(memory.read(0, 90), TEXT[:90])
    session.close()
    os.close(fd)


def test_reads_that_hang_are_in_nobodys_way():
    with_fuse(hanging)


def many_hanging(mount):
    session, memory = gpu_client()
    fd = mount.open('read-hang')
    register(session, fd, read_only=True)
    for i in range(20):
        session.submit(publish=False, **stored(user_data=100 + i, **place(src_nbytes=90, dst_nbytes=90)))
    session.publish()
    mount.await_hanging(2)
    # None is left for these but one that is kept for them.
    for _ in range(3):
        register(session, new_file(TEXT), region=SPARSE, read_only=True)
        session.unregister(SPARSE)
    mount.release_all()
    equal(sorted(c['user_data'] for c in session.wait(20)), list(range(100, 120)))
    equal(memory.read(0, 90), bytes(90))
    session.close()
    os.close(fd)


def test_reads_that_hang_leave_a_thread_for_registering():
    """They occupied all threads of the process, and the session ended after file_timeout."""
    with_fuse(lambda mount: with_daemon('[cpu]\nworkers = 1\n', lambda: many_hanging(mount)))


def killed_while_it_hangs(mount):
    session, memory, fd = hanging_client(mount)
    session.submit(**stored(**place(src_nbytes=90, dst_nbytes=90)))
    mount.await_hanging(1)
    [process] = io_processes()
    os.kill(process, signal.SIGKILL)
    # Until the file's server answers, it is not gone; its successor's read hangs too.
    mount.release()
    equal(lost(session), errno.ESHUTDOWN)
    memory.write(0, b'x' * 90)
    equal(session.come_back(), [])
    mount.await_hanging(1)
    mount.release()
    expect(session.wait(1)[0], 'ok', engine=SIMT)
    equal(memory.read(0, 90), bytes(90))
    session.close()
    os.close(fd)
    wait_until(lambda: not io_processes(), 'the process for files lives on')


def test_killed_process_that_hangs_loses_no_job():
    with_fuse(killed_while_it_hangs)


def client_that_goes(mount):
    session, _, fd = hanging_client(mount)
    for i in range(20):
        session.submit(**stored(user_data=i, **place(src_nbytes=90, dst_nbytes=90)))
    mount.await_hanging(1)
    session.close()
    os.close(fd)
    mount.end()
    wait_until(lambda: not io_processes(), 'the process for files lives on')
    serves_another_client()


def test_client_that_goes_while_its_file_hangs_leaves_nothing():
    with_fuse(client_that_goes)


def hung_area(mount):
    session, _ = gpu_client()
    fd = mount.open('read-hang')
    register(session, fd, read_only=True)
    session.submit(**stored(**place(src_nbytes=90, dst_nbytes=90)))
    mount.await_hanging(1)
    other = client(engine='cpu', n_entries=8)
    session.close()
    os.close(fd)
    wait_until(lambda: metric(other, 'queue_entries') == 8, 'the session lives on')
    wait_until(lambda: metric(other, 'pinned_bytes') < AREA, 'the area stays pinned')
    equal(len(io_processes()), 1, 'processes')
    assert metric(other, 'memory_bytes') >= AREA, 'nobody pays for the area'
    mount.release()
    wait_until(lambda: not io_processes(), 'the process for files lives on')
    wait_until(lambda: metric(other, 'memory_bytes') < AREA, 'the area stays charged')
    other.close()


def test_area_is_paid_for_until_its_process_is_gone():
    """It was free of charge from the end of its session on, however long a file hung its process."""
    with_fuse(hung_area)


def late(mount):
    session, _, fd = hanging_client(mount)
    session.submit(**stored(**place(src_nbytes=90, dst_nbytes=90)))
    equal(lost(session), errno.ESHUTDOWN)
    [completion] = session._take()  # pylint: disable=protected-access
    expect(completion, 'file_error', 'file_time', bit_offset=0)
    session.close()
    os.close(fd)


def test_late_files_end_their_jobs():
    def test(mount):
        late(mount)
        mount.end()
        wait_until(lambda: not io_processes(), 'what hung lives on')
    with_fuse(lambda mount: with_daemon('file_timeout = 200ms\n', lambda: test(mount)))


def without_an_area():
    """The CPU does what it may do.  A job that is the GPU's alone is refused, whole and in batches."""
    packed = deflated(TEXT[:5000])
    file = new_file(packed)
    source = {'src_region': FILE, 'src_nbytes': len(packed), 'dst_nbytes': 5000}
    for engine, result in (('simt', 'no_memory'), ('auto', 'ok')):
        session = client(engine=engine, arena_nbytes=ROOM)
        register(session, file, read_only=True)
        for _ in range(3):
            expect(session.run(**job(**source)), result)
        whole, results = run_batch(session, 100 * [{**source, 'dst_offset': 1 << 16}], results=8192)
        expect(whole, result)
        for chunk in results:
            expect(chunk, result)
        session.close()


def test_tenant_without_memory_for_an_area_is_told():
    with_daemon('[quota]\nmax_memory = 64M\n', without_an_area)


def one_area_after_the_other():
    packed = deflated(TEXT[:5000])
    file = new_file(packed)
    for _ in range(10):
        session = client(engine='simt', arena_nbytes=ROOM)
        register(session, file, read_only=True)
        expect(session.run(**job(src_region=FILE, src_nbytes=len(packed), dst_nbytes=5000)), 'ok')
        session.close()


def test_client_that_comes_back_gets_the_area_that_it_gave_up():
    """Its quota has room for one.  It got none while the GPU still had the last one, and so no result."""
    with_daemon('[quota]\nmax_memory = 160M\n', one_area_after_the_other)


def with_daemon(sections, test):
    usual, files.DAEMON = files.DAEMON, files.Daemon(files.DAEMON.program, sections=sections + SECTIONS)
    try:
        test()
    finally:
        files.DAEMON.remove()
        files.DAEMON = usual


if __name__ == '__main__':
    sys.exit(files.main(globals(), SECTIONS))
