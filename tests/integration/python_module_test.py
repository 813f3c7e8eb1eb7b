#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_module_test.py [--build FOLDER] [PATTERN]: the Python package wharf, as programs use it.

The module of a build with sanitizers is loaded into a Python that has their library in front.
Reports in the Test Anything Protocol.
"""
import asyncio
import gc
import glob
import gzip
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import zlib

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import module_tests  # noqa: E402  pylint: disable=wrong-import-position
from module_tests import Skipped, in_child, raises  # noqa: E402  pylint: disable=wrong-import-position
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

PATIENCE_S = 300
TEXT = b''.join(b'line %d of a text that is easily made smaller\n' % i for i in range(3000))
PACKED = zlib.compress(TEXT)
DAMAGED = PACKED[:500] + b'damage' + PACKED[506:]
DAEMON = None
wharf = None


def wait_until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, 'it did not happen'
        time.sleep(0.001)


def through_daemon(**options):
    return wharf.Client('daemon', socket=DAEMON.socket, patience=PATIENCE_S, **options)


def each_client():
    yield wharf.Client('embedded')
    yield through_daemon()


class Stopped:
    """The daemon answers nobody meanwhile."""

    def __enter__(self):
        DAEMON.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, DAEMON.process.pid, os.WSTOPPED)

    def __exit__(self, *_):
        DAEMON.process.send_signal(signal.SIGCONT)


# ---- data ----------------------------------------------------------------------------------------

def vectors():
    for path in sorted(glob.glob(f'{TOP}/tests/vectors/*/*/*.expect')):
        with open(path, encoding='ascii') as file:
            expect = dict(line.split(None, 1) for line in file.read().splitlines() if line)
        with open(path.removesuffix('.expect'), 'rb') as file:
            yield path, path.split('/')[-3], expect, file.read()


def check_error(expect, error, path):
    assert error.result == expect.get('result', error.result), (path, error)
    assert error.reason in expect.get('reason', error.reason).split('|'), (path, error)
    assert error.bit == int(expect.get('bit_offset', error.bit)), (path, error)


def decode_vectors(client):
    n = 0
    for path, codec, expect, data in vectors():
        size = int(expect.get('out_avail', expect.get('out_nbytes', 2 << 20)))
        parameter = int(expect.get('parameter', 0))
        n += 1
        try:
            made = client.decompress(data, codec, size=size, parameter=parameter)
        except wharf.Error as error:
            assert '/bad/' in path or expect.get('result', 'ok') != 'ok', (path, error)
            check_error(expect, error, path)
        else:
            assert expect.get('result', 'ok') == 'ok' and '/ok/' in path, path
            assert len(made) == int(expect['out_nbytes']), path
            if 'crc32' in expect:
                assert zlib.crc32(made) == int(expect['crc32'], 16), path
    return n


def test_every_vector_gives_what_it_should():
    for client in each_client():
        with client:
            assert decode_vectors(client) > 300


def test_size_need_not_be_known():
    long = bytes(9 << 20)
    assert wharf.decompress(zlib.compress(long), 'zlib') == long
    assert wharf.decompress(gzip.compress(TEXT)) == TEXT
    # A trailer that promises more, or less, than there is.
    for promised in 0, 1, 0xffffffff:
        error = raises(wharf.BadChecksumError, wharf.decompress,
                       gzip.compress(TEXT)[:-4] + promised.to_bytes(4, 'little'))
        assert error.result == 'bad_checksum'
    assert wharf.decompress(b'', 'stored') == b''
    with through_daemon() as client:
        assert client.submit(zlib.compress(long), 'zlib').result() == long


def test_output_goes_to_memory_of_any_kind():
    import array  # pylint: disable=import-outside-toplevel
    for out in bytearray(len(TEXT) + 7), array.array('b', bytes(len(TEXT) + 7)):
        view = memoryview(out).cast('B')
        assert wharf.decompress(PACKED, 'zlib', out=view[3:-4]) == len(TEXT)
        assert view[:3] == bytes(3) and view[-4:] == bytes(4) and view[3:-4] == TEXT
    raises(BufferError, wharf.decompress, PACKED, 'zlib', out=memoryview(bytearray(200000))[::2])
    raises(BufferError, wharf.decompress, PACKED, 'zlib', out=bytes(200000))
    raises(BufferError, wharf.decompress, memoryview(PACKED * 2)[::2], 'zlib')
    raises(TypeError, wharf.decompress, 'text', 'zlib')
    both = bytearray(PACKED + TEXT)
    error = raises(wharf.BadRequestError, wharf.decompress, both, 'zlib', out=both)
    assert error.reason == 'request_overlap' and isinstance(error, ValueError)


def test_errors_say_what_where_and_in_which_chunk():
    error = raises(wharf.BadDataError, wharf.decompress, PACKED[:-9], 'zlib')
    assert (error.result, error.reason, error.index) == ('bad_data', 'input_truncated', None)
    assert 0 < error.bit <= 8 * len(PACKED) and isinstance(error, (wharf.DataError, ValueError))
    error = raises(wharf.OutputTooSmallError, wharf.decompress, PACKED, 'zlib', size=100)
    assert isinstance(error, wharf.DataError)
    error = raises(wharf.DataError, wharf.decompress_batch, [PACKED, DAMAGED], 'zlib')
    assert error.index == 1 and str(error).startswith('chunk 1: ')
    assert wharf.decompress(PACKED + b'more', 'zlib') == TEXT
    error = raises(wharf.BadDataError, wharf.decompress, PACKED + b'more', 'zlib', exact_input=True)
    assert error.reason == 'input_left'
    raises(wharf.OutputShortError, wharf.decompress, PACKED, 'zlib', size=len(TEXT) + 1,
           exact_output=True)
    raises(wharf.BadChecksumError, wharf.decompress, PACKED, 'zlib', checksum=7)
    assert wharf.decompress(PACKED, 'zlib', checksum=zlib.crc32(TEXT)) == TEXT
    assert raises(FileNotFoundError, wharf.Client, 'daemon', socket='/no/such').errno == 2


def test_arguments_that_make_no_sense_are_refused():
    for wrong in ({'codec': 'zip'}, {'codec': 999}, {'size': -1}, {'timeout': 0},
                  {'timeout': 1e9}, {'timeout': float('nan')}, {'priority': 'high'},
                  {'exact_output': True}):
        raises(ValueError, wharf.decompress, PACKED, **{'codec': 'zlib', **wrong})
    raises(OverflowError, wharf.decompress, PACKED, 'zlib', checksum=1 << 32)
    raises(TypeError, wharf.decompress)
    raises(ValueError, wharf.decompress, PACKED, 'zlib', out=bytearray(9), size=10)
    raises(ValueError, wharf.Client, 'nowhere')
    raises(ValueError, wharf.Client, engine='steam')
    raises(ValueError, wharf.decompress_batch, [PACKED] * 2, 'zlib', sizes=[1])
    raises(ValueError, wharf.decompress_batch, [PACKED] * 2, 'zlib', errors='ignore')
    same = bytearray(len(TEXT))
    raises(ValueError, wharf.decompress_batch, [PACKED] * 2, 'zlib', outs=[same, same])


def test_batches_give_what_single_chunks_give():
    for client in each_client():
        with client:
            chunks = [zlib.compress(TEXT[i:]) for i in range(40)]
            assert client.decompress_batch(chunks, 'zlib') == [TEXT[i:] for i in range(40)]
            assert client.decompress_batch([], 'zlib') == []
            outs = [bytearray(len(TEXT)) for _ in chunks]
            assert client.decompress_batch(chunks, 'zlib', outs=outs, threads=3) == [
                len(TEXT) - i for i in range(40)]
            assert outs[5][:len(TEXT) - 5] == TEXT[5:]
            chunks[7] = DAMAGED
            made = client.decompress_batch(chunks, 'zlib', errors='return', sizes=len(TEXT))
            assert isinstance(made[7], wharf.DataError) and made[7].index == 7 and made[8] == TEXT[8:]
            job = client.submit_batch(chunks, 'zlib', errors='return', sizes=len(TEXT))
            assert [type(one) for one in job.result()] == [type(one) for one in made]
            assert client.submit_batch([], 'zlib').result() == []


# ---- memory --------------------------------------------------------------------------------------

def test_buffers_are_released():
    data, out = bytearray(PACKED), bytearray(len(TEXT))

    def can_be_resized():
        data.append(0)
        out.append(0)
        del data[-1], out[-1]

    for client in each_client():
        with client:
            client.decompress(data, 'zlib', out=out)
            can_be_resized()
            data[600] ^= 255
            raises(wharf.DataError, client.decompress, data, 'zlib', out=out)
            raises(wharf.DataError, client.decompress_batch, [data], 'zlib', outs=[out])
            raises(ValueError, client.decompress, data, 'zlib', out=out, timeout=-1)
            raises(TypeError, client.decompress_batch, [data, 5], 'zlib', outs=[out, out])
            can_be_resized()
            data[600] ^= 255
            job = client.submit(data, 'zlib', out=out)
            raises(BufferError, data.append, 0)
            raises(BufferError, out.append, 0)
            assert job.result() == len(TEXT) and out == TEXT
            can_be_resized()


def test_nothing_is_kept_of_calls():
    client = wharf.Client('embedded')

    def calls():
        for _ in range(50):
            client.decompress(PACKED, 'zlib')
            client.decompress_batch([PACKED, DAMAGED], 'zlib', errors='return')
            raises(wharf.DataError, client.submit(DAMAGED, 'zlib').result)
            client.submit(PACKED, 'zlib', callback=lambda job: job.result()).result()
            raises(ValueError, client.decompress, PACKED, 'zlib', timeout=-1)
            wharf.Client('embedded').close()

    calls()
    gc.collect()
    before = sys.getrefcount(PACKED), sys.getrefcount(client), sys.getallocatedblocks()
    calls()
    gc.collect()
    after = sys.getrefcount(PACKED), sys.getrefcount(client), sys.getallocatedblocks()
    assert after[:2] == before[:2] and after[2] - before[2] < 40, (before, after)
    assert client.info()['arena_taken_nbytes'] == 0


def test_memory_of_a_client_is_reached_without_copies():
    for client in each_client():
        with client:
            source, target = client.alloc(len(PACKED)), client.alloc(2 * len(TEXT))
            memoryview(source)[:] = PACKED
            with memoryview(target) as view:
                taken = client.info()['arena_taken_nbytes']
                job = client.submit(source, 'zlib', out=view[:len(TEXT)])
                assert client.info()['arena_taken_nbytes'] == taken
                assert job.result() == len(TEXT) and view[:len(TEXT)] == TEXT
                del job
                assert client.decompress_batch([source] * 2, 'zlib', outs=[
                    view[:len(TEXT)], view[len(TEXT):]]) == [len(TEXT)] * 2
                raises(BufferError, client.close)
                assert not client.closed
            assert len(target) == 2 * len(TEXT)
        raises(BufferError, memoryview, target)
        assert client.closed
        raises(ValueError, client.alloc, 5)
        raises(ValueError, client.decompress, PACKED, 'zlib')
        client.close()
    with wharf.Client('embedded') as client:
        raises(ValueError, client.alloc, -1)
        raises(OSError, client.alloc, 1 << 40)


class Shrinks:
    """A sequence that gives fewer chunks than it said, or does what it likes meanwhile."""

    def __init__(self, then):
        self.then = then

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        if index == 3:
            return self.then()
        return PACKED


def test_hostile_arguments_do_no_harm():
    client = wharf.Client('embedded')

    def close():
        client.close()
        return PACKED

    def stop():
        raise IndexError('no more')

    raises(IndexError, client.decompress_batch, Shrinks(stop), 'zlib')
    raises(TypeError, client.decompress_batch, Shrinks(lambda: 'text'), 'zlib')
    raises(ValueError, client.decompress_batch, Shrinks(close), 'zlib')
    for thing in client, wharf.Client('embedded').alloc(9), wharf.Client('embedded'):
        raises(TypeError, pickle.dumps, thing)
    raises(TypeError, wharf.Job)
    raises(TypeError, wharf.Memory)
    error = raises(wharf.DataError, wharf.decompress, DAMAGED, 'zlib')
    again = pickle.loads(pickle.dumps(error))
    assert (again.result, again.bit, str(again)) == (error.result, error.bit, str(error))


# ---- jobs ----------------------------------------------------------------------------------------

def test_jobs_end_and_tell():
    for client in each_client():
        with client:
            told = []
            jobs = [client.submit(zlib.compress(TEXT[i:]), 'zlib', callback=told.append)
                    for i in range(20)]
            assert [job.result() for job in jobs] == [TEXT[i:] for i in range(20)]
            assert all(job.done() for job in jobs) and len(told) == 20 and set(told) == set(jobs)
            assert jobs[3].result(0) == TEXT[3:] and not jobs[3].cancel()
            bad = client.submit(DAMAGED, 'zlib')
            first, second = raises(wharf.DataError, bad.result), raises(wharf.DataError, bad.result)
            assert first is second


def test_jobs_end_for_who_asks_alone():
    """done() and result(0) told for ever what the last one who waited had seen."""
    for client in each_client():
        with client:
            job, other = client.submit(PACKED, 'zlib'), client.submit(PACKED, 'zlib')
            wait_until(job.done)

            def is_there():
                try:
                    return other.result(0) == TEXT
                except TimeoutError:
                    return False

            wait_until(is_there)
            assert job.result(0) == TEXT


def test_callbacks_may_wait_and_close():
    for client in each_client():
        seen = []
        last = client.submit(PACKED, 'zlib')
        first = client.submit(PACKED, 'zlib', callback=lambda job: seen.append(last.result()))
        assert first.result() == TEXT
        wait_until(lambda: client.poll() >= 0 and seen)
        assert seen == [TEXT]
        client.submit(PACKED, 'zlib', callback=lambda job: client.close()).result()
        assert client.closed


def test_callbacks_that_fail_are_told_of_and_no_more():
    said, before = [], sys.unraisablehook
    sys.unraisablehook = lambda hook: said.append(hook.exc_type)
    try:
        for client in each_client():
            with client:
                for callback in (lambda job: 1 / 0), 'nothing to call':
                    assert client.submit(PACKED, 'zlib', callback=callback).result() == TEXT
        assert said == [ZeroDivisionError, TypeError] * 2, said
    finally:
        sys.unraisablehook = before


def test_full_arena_and_many_jobs_are_told_apart():
    with through_daemon(arena=1 << 20, max_jobs=4) as client, Stopped():
        jobs = [client.submit(b'x', 'stored', size=1) for _ in range(4)]
        raises(BlockingIOError, client.submit, b'x', 'stored', size=1)
        raises(OSError, client.submit, bytes(2 << 20), 'stored')
        DAEMON.process.send_signal(signal.SIGCONT)
        assert [job.result() for job in jobs] == [b'x'] * 4
        assert client.info()['arena_taken_nbytes'] == 0


def test_descriptor_tells_of_completions():
    with through_daemon() as client:
        with Stopped():
            jobs = [client.submit(PACKED, 'zlib') for _ in range(100)]
            raises(TimeoutError, jobs[0].result, 0)
            assert not any(job.done() for job in jobs)
        n = 0
        while n < 100:
            select.select([client.fileno()], [], [], PATIENCE_S)
            n += client.poll()
        assert all(job.done() for job in jobs)


def test_asyncio_waits_by_the_descriptor():
    async def main(client):
        loop = asyncio.get_running_loop()
        loop.add_reader(client.fileno(), client.poll)
        futures = [loop.create_future() for _ in range(50)]
        jobs = [client.submit(PACKED, 'zlib', callback=future.set_result) for future in futures]
        client.poll()
        done = await asyncio.wait_for(asyncio.gather(*futures), PATIENCE_S)
        loop.remove_reader(client.fileno())
        assert done == jobs and all(job.result() == TEXT for job in done)

    with through_daemon() as client:
        asyncio.run(main(client))


def test_asyncio_client_waits_for_room_and_cancels():
    async def decode(**options):
        async with wharf.AsyncClient(**options) as client:
            # More than fit at once, of which one never does, and others are bad.
            calls = [client.decompress(data, 'zlib') for data in [PACKED] * 40 + [DAMAGED] * 3]
            calls += [client.decompress(zlib.compress(bytes(8 << 20)), 'zlib')]
            calls += [client.decompress_batch([PACKED] * 3, 'zlib', sizes=len(TEXT))]
            made = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), PATIENCE_S)
            assert made[:40] == [TEXT] * 40 and made[44] == [TEXT] * 3
            assert all(isinstance(one, wharf.DataError) for one in made[40:43])
            assert made[43] == bytes(8 << 20)

    async def cancel():
        async with wharf.AsyncClient('daemon', socket=DAEMON.socket) as client:
            with Stopped():
                task = asyncio.ensure_future(client.decompress(PACKED, 'zlib'))
                await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                    raise AssertionError('it was not cancelled')
                except asyncio.CancelledError:
                    pass
            assert await client.decompress(PACKED, 'zlib') == TEXT

    asyncio.run(decode(where='embedded'))
    asyncio.run(decode(where='auto', socket=DAEMON.socket, arena=2 << 20, max_jobs=8))
    asyncio.run(cancel())


def test_closing_cancels_what_is_in_flight():
    client, told = through_daemon(), []
    with Stopped():
        job = client.submit(bytearray(PACKED), 'zlib', callback=told.append)
        waiter = threading.Thread(target=lambda: told.append(raises(wharf.CancelledError, job.result)))
        waiter.start()
        client.close()
        waiter.join(PATIENCE_S)
        assert job.done() and job in told and len(told) == 2
        assert raises(wharf.CancelledError, job.result).result == 'cancelled'


def test_killed_daemon_loses_no_job():
    daemon = Daemon(DAEMON.program)
    try:
        with wharf.Client('daemon', socket=daemon.socket, patience=PATIENCE_S) as client:
            jobs = [client.submit(PACKED, 'zlib') for _ in range(50)]
            daemon.kill()
            daemon.start()
            assert [job.result() for job in jobs] == [TEXT] * 50
    finally:
        daemon.remove()


# ---- threads, fork, the end ----------------------------------------------------------------------

def test_other_threads_run_while_one_waits():
    """With the lock held in the library nobody would be here to let the daemon go on."""
    with through_daemon() as client:
        made = []
        for wait in (lambda: made.append(client.decompress(PACKED, 'zlib')),
                     lambda: made.append(client.submit(PACKED, 'zlib').result()),
                     lambda: made.append(client.decompress_batch([PACKED], 'zlib')[0])):
            waiter = threading.Thread(target=wait)
            with Stopped():
                waiter.start()
                wait_until(lambda: client.info()['arena_taken_nbytes'])  # pylint: disable=cell-var-from-loop
            waiter.join(PATIENCE_S)
        assert made == [TEXT] * 3


def test_threads_share_a_client():
    for client in each_client():
        with client:
            failed = []

            def work(client=client, failed=failed):
                try:
                    for _ in range(10):
                        jobs = [client.submit(PACKED, 'zlib') for _ in range(5)]
                        assert client.decompress(PACKED, 'zlib') == TEXT
                        assert client.decompress_batch([PACKED] * 5, 'zlib', threads=2) == [TEXT] * 5
                        raises(wharf.DataError, client.decompress, DAMAGED, 'zlib')
                        assert all(job.result() == TEXT for job in jobs)
                except BaseException as error:  # pylint: disable=broad-exception-caught
                    failed.append(error)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE_S)
            assert not failed, failed


def test_children_after_fork_make_their_own():
    for client in each_client():
        with client:
            told, memory = [], client.alloc(len(TEXT))
            view = memoryview(memory)
            view[:] = TEXT
            job = client.submit(PACKED, 'zlib', callback=told.append)

            def child(client=client, job=job, told=told, view=view):
                assert client.closed
                raises(ValueError, client.decompress, PACKED, 'zlib')
                raises(wharf.CancelledError, job.result)
                assert not told and bytes(view) in (TEXT, bytes(len(TEXT)))
                assert wharf.decompress(PACKED, 'zlib') == TEXT
                with through_daemon() as own:
                    assert own.submit(PACKED, 'zlib').result() == TEXT

            in_child(child)
            assert job.result() == TEXT and told == [job] and view == TEXT
            view.release()


def test_fork_while_other_threads_decode():
    if 'libasan' in os.environ.get('LD_PRELOAD', ''):
        raise Skipped("a thread may hold the lock of this sanitizer's allocator, which a child then waits for")
    ends = threading.Event()
    with through_daemon() as client:
        def work():
            while not ends.is_set():
                assert client.submit(PACKED, 'zlib').result() == TEXT
                assert wharf.decompress_batch([PACKED] * 3, 'zlib', threads=2) == [TEXT] * 3

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                in_child(lambda: wharf.decompress(PACKED, 'zlib') == TEXT or 1 / 0)
        finally:
            ends.set()
            for thread in threads:
                thread.join(PATIENCE_S)


ENDS = '''
import os, signal, sys, threading, zlib
import wharf
client = wharf.Client('daemon', socket=sys.argv[1], patience=1)
packed = zlib.compress(bytes(1 << 20))
jobs = [client.submit(packed, 'zlib', out=bytearray(1 << 20)) for _ in range(5)]
memory = memoryview(client.alloc(100)) if sys.argv[2] == 'memory' else None
def decode():
    while True:
        wharf.decompress_batch([packed] * 4, 'zlib')
threading.Thread(target=decode, daemon=True).start()
threading.Thread(target=jobs[4].result, daemon=True).start()
if sys.argv[2] == 'exception':
    raise SystemExit(3)
'''


def test_interpreter_ends_with_jobs_in_flight():
    for how, status in ('plain', 0), ('memory', 0), ('exception', 3):
        run = subprocess.run([sys.executable, '-c', ENDS, DAEMON.socket, how], check=False,
                             capture_output=True, text=True, timeout=PATIENCE_S)
        assert run.returncode == status, (how, run)


ENDS_LOOP = '''
import asyncio, sys, zlib
import wharf
kept = []
async def main():
    client = wharf.AsyncClient('daemon', socket=sys.argv[1], patience=1)
    packed = zlib.compress(bytes(1 << 20))
    kept.append([asyncio.ensure_future(client.decompress(packed, 'zlib')) for _ in range(20)])
    await asyncio.sleep(0)
    client._client.submit(packed, 'zlib', callback=lambda job: kept.append(job))
    raise SystemExit(5)
asyncio.run(main())
'''


def test_loops_end_with_jobs_in_flight():
    run = subprocess.run([sys.executable, '-c', ENDS_LOOP, DAEMON.socket], check=False, capture_output=True, text=True,
                         timeout=PATIENCE_S)
    assert run.returncode == 5 and not run.stderr, run


def test_signals_are_handled_while_a_job_is_waited_for():
    """The signal that lets the daemon go on comes while the main thread is in the library."""
    def wait():
        return job.result()

    def send():
        main_thread = threading.main_thread()
        wait_until(lambda: sys._current_frames()[main_thread.ident].f_code is wait.__code__)
        signal.pthread_kill(main_thread.ident, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1,
                           lambda *_: DAEMON.process.send_signal(signal.SIGCONT))
    try:
        with through_daemon() as client, Stopped():
            job = client.submit(PACKED, 'zlib')
            sender = threading.Thread(target=send)
            sender.start()
            assert wait() == TEXT
            sender.join(PATIENCE_S)
    finally:
        signal.signal(signal.SIGUSR1, before)


def main():
    global DAEMON, wharf  # pylint: disable=global-statement
    build, pattern = module_tests.begin()
    import wharf as module  # pylint: disable=import-outside-toplevel
    wharf = module
    DAEMON = Daemon(f'{build}/wharfd')
    os.environ['WHARF_SOCKET'] = DAEMON.socket
    try:
        return module_tests.run(globals(), pattern) > 0
    finally:
        DAEMON.remove()


if __name__ == '__main__':
    sys.exit(main())
