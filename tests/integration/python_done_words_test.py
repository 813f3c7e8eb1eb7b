#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_done_words_test.py [--build FOLDER] [PATTERN]: jobs with words, as python_client_test.py tests others."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import python_client_test as base  # noqa: E402  pylint: disable=wrong-import-position
from python_client_test import TEXT, equal, expect_result, place, wc  # noqa: E402  pylint: disable=wrong-import-position


def test_done_words_say_what_completions_say():
    session = base.client(arena_nbytes=1 << 20)
    assert session.hello.features & wc.FEATURE_DONE_WORDS
    packed = base.deflated(TEXT)
    job = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['deflate'], 'dst_offset': 1 << 16,
           'dst_nbytes': len(TEXT), **place(session, 0, packed)}
    bad = [{'src_nbytes': 5}, {'dst_nbytes': 5}, {'src_region': 9}, {'parameter': 99}]
    for i, change in enumerate([{}, *bad], 1):
        done = (0, 4096 + 64 * i, 0xfffffffe + i & 0xffffffff)
        session.submit(user_data=i, done=done, **{**job, **change})
        completion, = session.wait(1)
        # The word was there before; and it has no times.
        equal(session.done_word(done), {**completion, 'user_data': 0, 'queue_ns': 0, 'run_ns': 0})
        assert (completion['result'] == wc.RESULTS['ok']) == (not change), completion
    session.close()


def test_done_words_are_at_good_places():
    session = base.client(arena_nbytes=1 << 20)
    job = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['stored'], 'src_nbytes': 10,
           'dst_offset': 100, 'dst_nbytes': 10}
    fd = wc.sealed_memfd(4096)
    session.register(3, fd, 4096, read_only=True)
    for done in (0, 4096 + 32, 1), (0, 1 << 20, 1), (3, 0, 1), (4, 0, 1), (0, 1 << 63, 1):
        expect_result(session.run(done=done, **job), 'bad_request', reason='request_word')
    # Of a submission without the flag the entry is not looked at.
    session.rings.submit(wc.SUBMISSION.pack(*(
        job.get(name, 0) for name in wc.SUBMISSION_MEMBERS)), b'\xff' * wc.WORDS)
    session.outstanding[0] = [wc.Outstanding(b'', 0)]
    session.publish()
    expect_result(session.wait(1)[0], 'ok')
    session.close()
    os.close(fd)


def test_done_words_have_to_be_agreed_on():
    connection = wc.Connection(base.DAEMON.socket)
    equal(connection.hello(optional=wc.FEATURE_MARKS).features, wc.FEATURE_MARKS)
    _, fds = connection.ask('open_queue', wc.messages.OpenQueueRequest(n_entries=16),
                            'open_queue')
    equal(os.fstat(fds[0]).st_size, wc.ring_nbytes(16))
    rings = wc.Rings(connection, *fds, 16, True)
    rings.submit(wc.SUBMISSION.pack(*(
        {'opcode': wc.OP_DECODE, 'flags': wc.SUBMISSION_DONE_WORD}.get(name, 0)
        for name in wc.SUBMISSION_MEMBERS)))
    rings.publish(look=False)
    while rings.look() == 0:
        connection.receive(0.001)
    completion = dict(zip(wc.COMPLETION_MEMBERS, wc.COMPLETION.unpack(rings.reap())))
    expect_result(completion, 'bad_request', reason='request_flags')
    rings.close()
    connection.close()
    for fd in fds:
        os.close(fd)


def test_job_whose_word_is_set_never_runs_again():
    session = base.client(n_entries=256, arena_nbytes=32 << 20)
    plain = TEXT[:120000]
    packed, mine, words = base.deflated(plain), b'mine' * 30000, 30 << 20
    job = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['deflate'], 'dst_nbytes': len(plain),
           **place(session, 0, packed)}

    def output(i):
        return (1 << 20) + (i << 17)

    for i in range(200):
        session.submit(publish=False, user_data=i, done=(0, words + 64 * i, 1), dst_offset=output(i),
                       **job)
    session.publish()
    done = session.wait(1)
    base.DAEMON.kill()
    # As a stream does: from the word on the memory is its own.
    told = {i for i in range(200) if session.done_word((0, words + 64 * i, 1))}
    for i in told:
        session.arena.write(output(i), mine)
    base.DAEMON.start()
    base.lost(session.connection)
    done += session.come_back()
    equal(session.n_replayed, 200 - len(told))
    done += session.wait(200 - len(done))
    equal(sorted(c['user_data'] for c in done), list(range(200)))
    for completion in done:
        i = completion['user_data']
        expect_result(completion, 'ok', out_nbytes=len(plain))
        equal(session.arena.read(output(i), len(plain)), mine if i in told else plain, f'job {i}')
    session.close()


# ---- start words ---------------------------------------------------------------------------------

def add_starts(session, region=5, seals=wc.SEALS | wc.SEAL_FUTURE_WRITE, nbytes=4096):
    """Registers memory for start words, as section 2 says: sealed after the client's own mapping."""
    fd = wc.sealed_memfd(nbytes, 0)
    starts = wc.Mapping(fd, nbytes, True)
    wc.fcntl.fcntl(fd, wc.F_ADD_SEALS, seals)
    session.register(region, fd, nbytes, read_only=True)
    return starts


def copy_of(user_data):
    return {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['stored'], 'src_nbytes': 10,
            'dst_offset': 4096 + 16 * user_data, 'dst_nbytes': 10, 'user_data': user_data}


def test_jobs_wait_for_their_start_words():
    session = base.client(arena_nbytes=1 << 20)
    assert session.hello.features & wc.FEATURE_START_WORDS
    assert session.hello.limits.max_start_ns > 0
    starts = add_starts(session)
    for i in range(1, 30):
        session.submit(start=(5, 8 * i, 7, 0), **copy_of(i))
    equal(session.run(**copy_of(0))['user_data'], 0)
    for i in reversed(range(1, 30)):
        # Source and destination are not looked at before.
        session.arena.write(0, b'%10d' % i)
        starts.word64(8 * i).value = 7 << 32
        completion, = session.wait(1)
        equal(completion['user_data'], i)
        equal(session.arena.read(4096 + 16 * i, 10), b'%10d' % i)
    session.submit(start=(5, 0, 7, 20000), done=(0, 512 << 10, 3), **copy_of(31))
    late, = session.wait(1)
    expect_result(late, 'deadline', reason='start_time')
    equal(session.done_word((0, 512 << 10, 3))['reason'], wc.REASONS['start_time'])
    session.close()


def test_start_words_are_where_nobody_can_punch_holes():
    session = base.client(arena_nbytes=1 << 20)
    add_starts(session, 5)
    add_starts(session, 6, seals=wc.SEALS)
    add_starts(session, 7, nbytes=(1 << 20) + 4096)
    for start in (6, 0, 1, 0), (7, 0, 1, 0), (0, 0, 1, 0), (5, 4, 1, 0), (5, 4096, 1, 0):
        # And a good done word beside it stays as it is.
        done = (0, 512 << 10, 1)
        expect_result(session.run(start=start, done=done, **copy_of(1)), 'bad_request',
                      reason='request_word')
        equal(session.done_word(done), None)
    session.close()


def test_start_words_of_a_session_take_a_megabyte():
    session = base.client(arena_nbytes=1 << 20)
    # Memory of another kind does not count.
    sealed = wc.sealed_memfd(1 << 20, wc.SEALS | wc.SEAL_WRITE)
    session.register(4, sealed, 1 << 20, read_only=True)
    add_starts(session, 5, nbytes=(1 << 20) - 4096)
    add_starts(session, 6, nbytes=4096)
    add_starts(session, 7, nbytes=4096)
    for region, result in (4, 'bad_request'), (5, 'ok'), (6, 'ok'), (7, 'bad_request'):
        equal(session.run(start=(region, 0, 0, 0), **copy_of(1))['result'], wc.RESULTS[result], region)
    session.unregister(6)
    session.unregister(7)
    add_starts(session, 7, nbytes=4096)
    expect_result(session.run(start=(7, 0, 0, 0), **copy_of(1)), 'ok')
    session.close()
    os.close(sealed)


def test_start_words_need_done_words():
    connection = wc.Connection(base.DAEMON.socket)
    hello = connection.hello(optional=wc.FEATURE_START_WORDS)
    equal((hello.features, hello.limits.max_start_ns), (0, 0))
    connection.close()


def test_jobs_that_wait_survive_a_kill():
    session = base.client(arena_nbytes=1 << 20)
    starts = add_starts(session)
    for i in range(1, 20):
        session.submit(start=(5, 8 * i, 1, 0), done=(0, (512 << 10) + 64 * i, 1), **copy_of(i))
    base.DAEMON.kill()
    for i in range(1, 10):
        starts.word64(8 * i).value = 1 << 32
    base.DAEMON.start()
    base.lost(session.connection)
    done = session.come_back()
    done += session.wait(9 - len(done))
    equal(sorted(c['user_data'] for c in done), list(range(1, 10)))
    for i in range(10, 20):
        starts.word64(8 * i).value = 1 << 32
    done = session.wait(10)
    equal(sorted(c['user_data'] for c in done), list(range(10, 20)))
    session.close()


if __name__ == '__main__':
    sys.exit(base.main(globals()))
