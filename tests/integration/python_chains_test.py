#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_chains_test.py [--build FOLDER] [PATTERN]: chains, as python_client_test.py tests other jobs."""
import os
import random
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import python_client_test as base  # noqa: E402  pylint: disable=wrong-import-position
from python_client_test import TEXT, equal, expect_result, wc  # noqa: E402  pylint: disable=wrong-import-position
from python_done_words_test import add_starts  # noqa: E402  pylint: disable=wrong-import-position

BLOCK = 500


class Pair:
    """Data of its own, compressed twice, in an area of the arena; where its parts go can be a region."""
    NBYTES = 1 << 18

    def __init__(self, session, number, region=0):
        self.session, self.number, self.at = session, number, number * self.NBYTES
        self.region, self.middle = region, 0 if region else self.at + 30000
        self.plain = TEXT[number % 100:]
        self.stream = zlib.compress(self.plain, 1)
        pieces = [self.stream[i:i + BLOCK] for i in range(0, len(self.stream), BLOCK)]
        self.packed = [base.deflated(piece) for piece in pieces]
        self.parts, at = [], self.at
        for i, (piece, packed) in enumerate(zip(pieces, self.packed)):
            self.parts.append((at, self.middle + i * BLOCK, len(packed), len(piece), 0, 0, region))
            session.arena.write(at, packed)
            at += len(packed)
        assert at < self.at + 30000
        self.table, self.results = self.at + 60000, self.at + 70000
        self.chain, self.out = self.at + 80000, self.at + 90000

    def submit_parts(self, **more):
        table = b''.join(wc.CHUNK.pack(*part) for part in self.parts)
        self.session.arena.write(self.table, table)
        return self.session.submit(
            user_data=2 * self.number + 1, opcode=wc.OP_BATCH, codec=wc.CODECS['deflate'],
            src_offset=self.table, src_nbytes=len(table), dst_offset=self.results,
            dst_nbytes=wc.CHUNK_RESULT.size * len(self.parts),
            results=(self.results, len(self.parts)), **more)

    def submit_chain(self, after, order=(), **more):
        session, order_at = self.session, self.at + 75000 if order else 0
        session.arena.write(self.at + 75000, b''.join(i.to_bytes(4, 'little') for i in order))
        table = wc.CHAIN.pack(self.table, self.results, order_at, len(self.parts), len(order), 0,
                              0, 0)
        table += wc.CHUNK.pack(0, self.out, len(order or self.parts), len(self.plain), 0, 0, 0)
        session.arena.write(self.chain, table)
        session.arena.write(self.out, bytes(len(self.plain)))
        return session.submit(
            user_data=2 * self.number + 2, opcode=wc.OP_BATCH, codec=wc.CODECS['zlib'],
            flags=wc.SUBMISSION_CHAIN, src_offset=self.chain, src_nbytes=len(table), after=after,
            **more)

    def submit(self):
        self.submit_chain(self.submit_parts())

    def check(self, completion):
        expect_result(completion, 'ok', in_nbytes=len(self.stream), out_nbytes=len(self.plain))
        equal(self.session.arena.read(self.out, len(self.plain)), self.plain, f'pair {self.number}')


def by_number(completions):
    return {completion['user_data']: completion for completion in completions}


def expect_both(pair):
    done = by_number(pair.session.wait(2))
    expect_result(done[2 * pair.number + 1], 'ok', out_nbytes=len(pair.stream))
    pair.check(done[2 * pair.number + 2])


def test_chain_waits_and_decodes():
    session = base.client(arena_nbytes=1 << 20)
    assert session.hello.features & wc.FEATURE_CHAINS
    starts = add_starts(session)
    pair = Pair(session, 0)
    pair.submit_chain(pair.submit_parts(start=(5, 0, 1, 0)), timeout_us=3600 * 10**6)
    equal(session.run(user_data=99, opcode=wc.OP_NOOP)['user_data'], 99)
    starts.word64(0).value = 1 << 32
    expect_both(pair)
    session.close()


def test_first_part_that_is_not_good_is_named():
    session = base.client(arena_nbytes=1 << 20)
    pair = Pair(session, 0)
    good = list(pair.parts)
    # Cut off; with a place that is too large; with one that is elsewhere.
    for i, member, change, result, reason in (
            (4, 2, -3, 'bad_data', 'chain_part'), (3, 3, 1, 'output_short', 'chain_gap'),
            (2, 1, 7, 'bad_request', 'chain_place')):
        part = list(good[i])
        part[member] += change
        pair.parts = good[:i] + [tuple(part)] + good[i + 1:]
        pair.submit()
        done = by_number(session.wait(2))
        expect_result(done[2], result, reason, bit_offset=i, first_bad_chunk=0,
                      engine=wc.ENGINES['auto'])
    session.close()


def test_parts_have_an_order():
    session = base.client(arena_nbytes=1 << 20)
    pair = Pair(session, 0)
    numbers = list(range(len(pair.parts)))
    random.Random(1).shuffle(numbers)
    pair.parts = [pair.parts[i] for i in numbers]
    pair.submit_chain(pair.submit_parts(), order=[numbers.index(i) for i in range(len(numbers))])
    expect_both(pair)
    session.close()


def test_results_of_a_cancelled_batch_are_none():
    session = base.client(arena_nbytes=1 << 20)
    add_starts(session)
    pair = Pair(session, 0)
    pair.submit()
    expect_both(pair)
    # Once more, with the results of the first time there.
    pair.submit_chain(pair.submit_parts(start=(5, 0, 1, 0)))
    session.submit(opcode=wc.OP_CANCEL, user_data=77, src_offset=1)
    done = by_number(session.wait(3))
    expect_result(done[1], 'cancelled')
    expect_result(done[2], 'cancelled', 'chain_part')
    session.close()


def test_chains_have_to_be_agreed_on():
    connection = wc.Connection(base.DAEMON.socket)
    equal(connection.hello(optional=wc.FEATURE_MARKS).features, wc.FEATURE_MARKS)
    _, fds = connection.ask('open_queue', wc.messages.OpenQueueRequest(n_entries=16),
                            'open_queue')
    rings = wc.Rings(connection, *fds, 16, True)
    rings.submit(wc.SUBMISSION.pack(*(
        {'opcode': wc.OP_BATCH, 'flags': wc.SUBMISSION_CHAIN}.get(name, 0)
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


# ---- deaths --------------------------------------------------------------------------------------

def test_waiting_chain_survives_a_kill():
    session = base.client(arena_nbytes=1 << 20)
    starts = add_starts(session)
    pair = Pair(session, 0)
    # So that indices are others afterwards.
    for i in range(5):
        session.run(user_data=90 + i, opcode=wc.OP_NOOP)
    pair.submit_chain(pair.submit_parts(start=(5, 0, 1, 0)))
    base.DAEMON.kill()
    base.DAEMON.start()
    base.lost(session.connection)
    equal(session.come_back(), [])
    equal(session.n_replayed, 2)
    starts.word64(0).value = 1 << 32
    expect_both(pair)
    session.close()


def test_chain_whose_first_part_had_ended_survives_a_kill():
    session = base.client(arena_nbytes=1 << 20)
    pair = Pair(session, 0)
    parts = pair.submit_parts()
    # The completion is reaped, or still in the dead daemon's ring.
    session.wait(1)
    base.stop_daemon()
    pair.submit_chain(parts)
    base.DAEMON.kill()
    base.DAEMON.start()
    base.lost(session.connection)
    done = session.come_back()
    equal(session.n_replayed, 1)
    done += session.wait(1 - len(done))
    pair.check(done[0])
    session.close()


def test_pairs_survive_kills():
    n_pairs = 120
    for round_number in range(4):
        session = base.client(n_entries=256, arena_nbytes=n_pairs * Pair.NBYTES)
        pairs = [Pair(session, i) for i in range(n_pairs)]
        parts = [pair.submit_parts(publish=False) for pair in pairs]
        for pair, part in zip(pairs[::2], parts[::2]):
            pair.submit_chain(part, publish=False)
        session.publish()
        done = session.wait(1 + 50 * round_number)
        # Of the other chains none is done, though what they wait for may be.
        base.stop_daemon()
        for pair, part in zip(pairs[1::2], parts[1::2]):
            pair.submit_chain(part, publish=False)
        session.publish()
        base.DAEMON.kill()
        base.DAEMON.start()
        done += session.wait_through(2 * n_pairs - len(done))
        done = by_number(done)
        equal(sorted(done), list(range(1, 2 * n_pairs + 1)))
        for pair in pairs:
            pair.check(done[2 * pair.number + 2])
        assert session.n_replayed >= n_pairs // 2, session.n_replayed
        session.close()


# ---- GPU memory ----------------------------------------------------------------------------------

def test_parts_stay_in_gpu_memory():
    daemon = base.Daemon(base.DAEMON.program, sections='[gpu]\nengine = simt\ndevice = 0\n')
    try:
        session = wc.Client(daemon.socket)
        fd = wc.sealed_memfd(1 << 18)
        session.register(1, fd, 1 << 18, kind=wc.MEMORY_KIND_GPU)
        pair = Pair(session, 0, region=1)
        pair.submit()
        done = by_number(session.wait(2))
        pair.check(done[2])
        equal(done[2]['engine'], wc.ENGINES['simt'])
        # Tables and results are the host's.
        table = wc.CHAIN.pack(0, 0, 0, 1, 0, 1, 0, 0) + wc.CHUNK.pack(0, 0, 1, 0, 0, 0, 0)
        session.arena.write(pair.chain, table)
        expect_result(session.run(opcode=wc.OP_BATCH, flags=wc.SUBMISSION_CHAIN,
                                  codec=wc.CODECS['zlib'], src_offset=pair.chain,
                                  src_nbytes=len(table)), 'bad_request', 'request_region')
        session.close()
        os.close(fd)
    finally:
        daemon.remove()


if __name__ == '__main__':
    sys.exit(base.main(globals()))
