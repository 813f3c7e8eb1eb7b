#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_client_test.py [--build FOLDER] [PATTERN]: wharfd as lib/wharf_client.py knows it, which knows PROTOCOL.md.

Each test has a private daemon that serves the ones before it too, but for those that end it.  (The
interpreter is Debian's, to which python3-protobuf belongs.)  Reports in the Test Anything Protocol.
"""
import argparse
import errno
import os
import re
import select
import shutil
import signal
import socket
import struct
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
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

TEXT = b''.join(b'line %d of a text that is easily made smaller\n' % i for i in range(3000))


# ---- a daemon ------------------------------------------------------------------------------------

DAEMON = None


def client(**options):
    return wc.Client(DAEMON.socket, **options)


# ---- what is expected ----------------------------------------------------------------------------

def equal(got, expected, what=''):
    assert got == expected, f'{what}: {got!r} instead of {expected!r}'


def refused(code, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except wc.Refused as error:
        equal(error.code, getattr(errno, code), str(error))
        return
    raise AssertionError(f'not refused with {code}')


def lost(connection):
    """The daemon closes, with or without a last word; returns that word's errno."""
    code = None
    end = time.monotonic() + wc.PATIENCE_S
    while time.monotonic() < end:
        try:
            connection.receive(1)
        except wc.Refused as error:
            code = error.code
        except wc.Lost:
            return code
    raise AssertionError('still connected')


def expect_result(completion, result, reason='none', **members):
    equal(completion['result'], wc.RESULTS[result], f'result of {completion}')
    equal(completion['reason'], wc.REASONS[reason], f'reason of {completion}')
    if result != 'ok':
        members = {'in_nbytes': 0, 'out_nbytes': 0, **members}
    for name, value in {'reserved': 0, **members}.items():
        equal(completion[name], value, name)


def deflated(data, level=6, window=-15):
    packer = zlib.compressobj(level, zlib.DEFLATED, window)
    return packer.compress(data) + packer.flush()


def place(session, offset, data):
    session.arena.write(offset, data)
    return {'src_offset': offset, 'src_nbytes': len(data)}


# ---- control socket ------------------------------------------------------------------------------

def test_hello_tells_what_there_is():
    hello = wc.Connection(DAEMON.socket).hello(version=7)
    equal(hello.version, 1)
    equal(sorted(hello.codecs), sorted(wc.CODECS.values()), 'codecs')
    assert wc.ENGINES['cpu'] in hello.engines, hello.engines
    assert hello.generation != 0 and hello.daemon_version
    for name in hello.limits.DESCRIPTOR.fields_by_name:
        # Those of GPU memory, of compressing and of start words have to be agreed on.
        agreed = name.startswith(('max_gpu', 'max_compress', 'max_start'))
        assert (getattr(hello.limits, name) > 0) != agreed, name


def test_hello_is_the_first_word_and_said_once():
    for words in ([('ping', wc.messages.PingRequest())],
                  [('hello', wc.messages.HelloRequest(version=1, min_version=1))] * 2):
        connection = wc.Connection(DAEMON.socket)
        for body, message in words[:-1]:
            connection.call(body, message)
        refused('EPROTO', connection.call, *words[-1])
        lost(connection)


def test_hello_is_refused_without_version_or_feature_in_common():
    for code, wish in (('EPROTONOSUPPORT', {'version': 99, 'min_version': 98}),
                       ('EOPNOTSUPP', {'required': 1 << 63})):
        connection = wc.Connection(DAEMON.socket)
        refused(code, connection.hello, **wish)
        lost(connection)


def test_features_agreed_on_are_some_of_those_named():
    equal(wc.Connection(DAEMON.socket).hello(optional=1 << 62).features, 0)


def test_example_of_the_page_is_that_message():
    with open(f'{TOP}/proto/PROTOCOL.md', encoding='utf-8') as page:
        rows = re.search(r'```text\n(08 ac 02[ 0-9a-f]*)\n', page.read())
    request = wc.messages.Request.FromString(bytes.fromhex(rows.group(1)))
    equal(request.id, 300)
    equal((request.hello.version, request.hello.optional_features, request.hello.client_name),
          (1, 1, 'control_test'))


def test_unknown_body_is_refused_and_no_end():
    connection = wc.Connection(DAEMON.socket)
    connection.hello()
    # Field 999, of no bytes, beside id 77.
    connection.send(bytes([0x08, 77]) + bytes([0xba, 0x3e, 0x00]))
    reply, _ = connection.receive(20)
    equal((reply.id, reply.error.code), (77, errno.EOPNOTSUPP))
    connection.ask('ping', wc.messages.PingRequest(), 'done')


def test_nonsense_and_stray_descriptors_end_the_connection():
    ping = wc.messages.Request(id=9, ping=wc.messages.PingRequest()).SerializeToString()
    for packet, fds in ((b'\xff' * 20, []), (bytes(4097), []), (ping, [0])):
        connection = wc.Connection(DAEMON.socket)
        connection.hello()
        connection.send(packet, fds)
        equal(lost(connection), errno.EPROTO, f'{packet[:4]!r}')


# ---- queue ---------------------------------------------------------------------------------------

def test_queue_is_as_section_2_lays_it_out():
    session = client(n_entries=128, arena_nbytes=100000)
    rings = session.rings
    words = rings.d.read(0, 32)
    magic, layout, n_entries, reserved, arena_nbytes, generation = struct.unpack('<IIIIQQ', words)
    equal((magic, layout, n_entries, reserved), (0x46524857, 1, 128, 0))
    equal((arena_nbytes, generation), (session.arena.nbytes, session.hello.generation))
    assert session.arena.nbytes >= 100000
    equal(session.arena.read(0, session.arena.nbytes).count(0), session.arena.nbytes, 'zeros')
    equal(rings.c.read(0, rings.c.nbytes).count(0), rings.c.nbytes, 'zeros in C')
    equal((rings.cq_tail.value, rings.d.word32(128).value), (0, 0), 'counters')
    session.close()


def test_nobody_can_write_to_d():
    session = client()
    try:
        wc.Mapping(session.ring_fds[1], 4096, True)
    except OSError as error:
        assert error.errno in (errno.EPERM, errno.EACCES), error
    else:
        raise AssertionError('D can be mapped for writing')
    session.close()


def test_queue_requests_that_are_refused():
    session = client()
    again = wc.messages.OpenQueueRequest(n_entries=8)
    refused('EBUSY', session.connection.call, 'open_queue', again)
    session.close()
    limits = session.hello.limits
    bad = [('EINVAL', {'n_entries': 3}), ('EINVAL', {'n_entries': 1}), ('EINVAL', {'n_entries': 65536}),
           ('EINVAL', {'n_entries': 8, 'default_class': 9}), ('EINVAL', {'n_entries': 8, 'engine': 99}),
           ('EDQUOT', {'n_entries': 8, 'arena_nbytes': limits.max_arena_nbytes + 4096})]
    connection = wc.Connection(DAEMON.socket)
    engines = connection.hello().engines
    if wc.ENGINES['gpu'] not in engines:
        bad.append(('EOPNOTSUPP', {'n_entries': 8, 'engine': wc.ENGINES['gpu']}))
    for code, members in bad:
        refused(code, connection.call, 'open_queue', wc.messages.OpenQueueRequest(**members))
    # A refused request changes nothing.
    _, fds = connection.ask('open_queue', again, 'open_queue')
    equal(len(fds), 2)


def submissions_past_the_end(rings):
    rings.sq_tail.value = rings.n_entries + 1


def submissions_taken_back(rings):
    rings.sq_tail.value = rings.submitted - 1


def completions_from_the_future(rings):
    # All of a full queue are done; the client says that it has reaped one more, and uses that place.
    rings.sq_tail.value = rings.submitted + rings.n_entries - 1
    rings.connection.ring()
    while rings.cq_tail.value != rings.submitted + rings.n_entries - 1:
        time.sleep(0.001)
    rings.cq_head.value = rings.submitted + rings.n_entries
    rings.sq_tail.value = rings.submitted + rings.n_entries


def test_bad_index_ends_the_session():
    for spoil in (submissions_past_the_end, submissions_taken_back, completions_from_the_future):
        session = client()
        session.run(opcode=wc.OP_NOOP)
        spoil(session.rings)
        session.connection.ring()
        equal(lost(session.connection), errno.EPROTO, spoil.__name__)
        session.close()


# ---- jobs ----------------------------------------------------------------------------------------

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


def expect_vector(path, completion, expected, output):
    what = f'{path}: {completion}'
    equal(completion['result'], wc.RESULTS[expected['result']], what)
    if 'reason' in expected:
        assert completion['reason'] in [wc.REASONS[r] for r in expected['reason'].split('|')], what
    for name in ('bit_offset', 'in_nbytes', 'out_nbytes'):
        if name in expected:
            equal(completion[name], int(expected[name]), what)
    if completion['result'] == wc.RESULTS['ok'] and 'crc32' in expected:
        equal(zlib.crc32(output), int(expected['crc32'], 16), what)
    equal(completion['engine'], wc.ENGINES['cpu'], what)


def test_end_is_told_where_there_is_no_room_for_words():
    """Replies that are not read leave no room for the Error.  The arena is emptied all the same:
    a client that went on with it would decode zeros."""
    session = client(n_entries=4096, arena_nbytes=48 << 20)
    packed = deflated(bytes(32 << 20))
    session.arena.write(0, packed)
    # For many seconds: the daemon, which listens no more to the socket, looks at the ring meanwhile.
    for i in range(4000):
        session.submit(publish=False, opcode=wc.OP_DECODE, codec=wc.CODECS['deflate'],
                       user_data=i + 1, src_nbytes=len(packed), dst_offset=1 << 20,
                       dst_nbytes=32 << 20)
    session.publish()
    ping = wc.messages.Request(id=3, ping=wc.messages.PingRequest()).SerializeToString()
    session.connection.socket.settimeout(0.1)
    try:
        while True:
            session.connection.socket.send(ping)
    except TimeoutError:
        session.connection.socket.settimeout(None)
    session.rings.c.word32(0).value = 50000
    poll = select.poll()
    poll.register(session.connection.socket, select.POLLRDHUP)
    assert poll.poll(1000 * wc.PATIENCE_S), 'still connected'
    equal(lost(session.connection), None, 'an Error')
    assert session.rings.flags.value & wc.FLAG_FORFEITED
    end = time.monotonic() + wc.PATIENCE_S
    while session.arena.read(0, 5) != bytes(5):
        assert time.monotonic() < end, 'the arena is not emptied'
    session.close()


def test_every_codec_decodes_its_vectors():
    room = 4 << 20
    session = client(arena_nbytes=2 * room)
    for codec, number in sorted(wc.CODECS.items()):
        n = 0
        for path in vectors_of(codec):
            data, expected = read_vector(path)
            capacity = int(expected.get('out_avail', expected.get('out_nbytes', 2 << 20)))
            assert len(data) <= room and capacity <= room
            completion = session.run(
                opcode=wc.OP_DECODE, codec=number, user_data=n + 1,
                parameter=int(expected.get('parameter', 0)), **place(session, 0, data),
                dst_offset=room, dst_nbytes=capacity)
            equal(completion['user_data'], n + 1)
            expect_vector(path, completion, expected,
                          session.arena.read(room, completion['out_nbytes']))
            n += 1
        assert n > 0, f'no vectors of {codec}'
    session.close()


def test_job_flags_hold():
    session = client()
    packed = deflated(TEXT)
    job = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['deflate'], 'dst_offset': 1 << 19,
           'dst_nbytes': len(TEXT), **place(session, 0, packed + b'more')}
    right = {'in_nbytes': len(packed), 'out_nbytes': len(TEXT)}
    expect_result(session.run(**job), 'ok', **right)
    expect_result(session.run(**{**job, 'flags': wc.JOB_EXACT_INPUT}), 'bad_data', 'input_left',
                  bit_offset=8 * len(packed))
    more = {**job, 'flags': wc.JOB_EXACT_OUTPUT, 'dst_nbytes': len(TEXT) + 1}
    expect_result(session.run(**more), 'output_short', 'output_missing')
    expect_result(session.run(**{**job, 'dst_nbytes': len(TEXT) - 1}), 'output_too_small',
                  'output_full')
    summed = {**job, 'flags': wc.JOB_CHECKSUM, 'checksum': zlib.crc32(TEXT)}
    expect_result(session.run(**summed), 'ok', **right)
    expect_result(session.run(**{**summed, 'checksum': 1}), 'bad_checksum', 'job_checksum')
    # More room than there is anywhere.
    discarded = {**summed, 'flags': wc.JOB_CHECKSUM | wc.JOB_DISCARD, 'dst_offset': 0,
                 'dst_nbytes': 1 << 25}
    expect_result(session.run(**discarded), 'ok', **right)
    expect_result(session.run(**{**discarded, 'checksum': 1}), 'bad_checksum', 'job_checksum')
    expect_result(session.run(**{**discarded, 'dst_nbytes': len(TEXT) - 1}), 'output_too_small',
                  'output_full')
    expect_result(session.run(**{**discarded, 'dst_offset': 1}), 'bad_request', 'request_reserved')
    session.close()


def test_noops_complete_in_any_number():
    session = client(n_entries=8, arena_nbytes=0)
    # Often enough around the rings, and full.
    for first in range(0, 4000, 8):
        for i in range(8):
            session.submit(publish=False, opcode=wc.OP_NOOP, user_data=first + i)
        session.publish()
        done = session.wait(8)
        equal(sorted(c['user_data'] for c in done), list(range(first, first + 8)))
        for completion in done:
            expect_result(completion, 'ok', in_nbytes=0, out_nbytes=0)
    session.close()


def test_bad_submissions_have_their_reasons():
    session = client()
    size = session.arena.nbytes
    fd = wc.sealed_memfd(4096)
    session.register(7, fd, 4096, read_only=True)
    packed = deflated(TEXT)
    good = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['deflate'], 'dst_offset': 1 << 19,
            'dst_nbytes': len(TEXT), **place(session, 0, packed)}
    expect_result(session.run(**good), 'ok', in_nbytes=len(packed), out_nbytes=len(TEXT))
    big = 1 << 63
    steps = [  # in the page's order: each is told before all that follow
        ('request_opcode', {'opcode': 0}), ('request_opcode', {'opcode': 5}),
        ('request_codec', {'codec': 999}), ('request_flags', {'flags': 128}),
        ('request_flags', {'flags': 0x8000}), ('request_class', {'job_class': 4}),
        ('request_parameter', {'parameter': 0xffff}), ('request_reserved', {'level': 1}),
        ('request_region', {'src_region': 6}),
        ('request_range', {'src_offset': size + 1, 'src_nbytes': 0}),
        ('request_range', {'src_offset': size - 1, 'src_nbytes': 2}),
        ('request_range', {'src_offset': 0xffffffffffffffff, 'src_nbytes': 2}),
        ('request_range', {'src_nbytes': big}),
        ('request_region', {'dst_region': 6}), ('request_region', {'dst_region': 7, 'dst_offset': 0}),
        ('request_range', {'dst_offset': size, 'dst_nbytes': 1}),
        ('request_range', {'dst_offset': big}),
        ('request_overlap', {'dst_offset': 10}),
    ]
    for i, (reason, change) in enumerate(steps):
        expect_result(session.run(**{**good, **change}), 'bad_request', reason, bit_offset=0,
                      engine=0)
        for _, later in steps[i + 1:]:
            if not set(later) & set(change):
                expect_result(session.run(**{**good, **later, **change}), 'bad_request', reason)
    session.close()
    os.close(fd)


def test_unused_members_must_be_zero():
    session = client()
    for opcode, used in ((wc.OP_NOOP, {'user_data'}), (wc.OP_CANCEL, {'user_data', 'src_offset'})):
        for name in wc.SUBMISSION_MEMBERS[1:]:
            if name not in used:
                expect_result(session.run(opcode=opcode, **{name: 1}), 'bad_request',
                              'request_reserved')
    session.close()


def test_jobs_over_the_limit_are_refused():
    connection = wc.Connection(DAEMON.socket)
    limit = connection.hello().limits.max_job_nbytes
    connection.close()
    session = client(arena_nbytes=limit + (1 << 20))
    job = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['stored'], 'src_nbytes': 10, 'dst_offset': 4096}
    expect_result(session.run(**job, dst_nbytes=limit - 10), 'ok', in_nbytes=10, out_nbytes=10)
    expect_result(session.run(**job, dst_nbytes=limit - 9), 'bad_request', 'request_size')
    session.close()


# ---- batches -------------------------------------------------------------------------------------

RESULTS_AT, OUTPUT_AT = 1 << 17, 1 << 18


def write_batch(session, sources, capacity=4096, region=0):
    """Sources from offset 4096 on, the table at 0, outputs and results behind; the submission."""
    table, at = b'', 4096
    for i, source in enumerate(sources):
        session.arena.write(at, source)
        table += wc.CHUNK.pack(at, OUTPUT_AT + capacity * i, len(source), capacity, 0, region, 0)
        at += len(source)
    assert len(table) <= 4096 and at <= RESULTS_AT
    session.arena.write(0, table)
    return {'opcode': wc.OP_BATCH, 'codec': wc.CODECS['zlib'], 'src_nbytes': len(table),
            'dst_offset': RESULTS_AT, 'dst_nbytes': 24 * len(sources)}


def results_of(session, n):
    return [dict(zip(wc.CHUNK_RESULT_MEMBERS, row)) for row in
            wc.CHUNK_RESULT.iter_unpack(session.arena.read(RESULTS_AT, 24 * n))]


def test_batch_tells_of_every_chunk():
    session = client()
    plain = [TEXT[100 * i:100 * i + 1000 + i] for i in range(50)]
    packed = [zlib.compress(part) for part in plain]
    done = session.run(**write_batch(session, packed))
    expect_result(done, 'ok', in_nbytes=sum(map(len, packed)), out_nbytes=sum(map(len, plain)),
                  flags=wc.COMPLETION_RESULTS, first_bad_chunk=0)
    for i, result in enumerate(results_of(session, 50)):
        expect_result(result, 'ok', in_nbytes=len(packed[i]), out_nbytes=len(plain[i]),
                      engine=wc.ENGINES['cpu'], bit_offset=0)
        equal(session.arena.read(OUTPUT_AT + 4096 * i, len(plain[i])), plain[i])
    session.close()


def test_bad_chunk_leaves_others_alone():
    session = client()
    packed = [zlib.compress(TEXT[:2000])] * 20
    packed[13] = packed[13][:-4] + b'nope'
    packed[17] = b'\0' + packed[17][1:]
    batch = write_batch(session, packed)
    done = session.run(**batch)
    expect_result(done, 'bad_checksum', 'zlib_checksum', first_bad_chunk=13,
                  flags=wc.COMPLETION_RESULTS, bit_offset=8 * (len(packed[13]) - 4))
    for i, result in enumerate(results_of(session, 20)):
        if i == 13:
            expect_result(result, 'bad_checksum', 'zlib_checksum',
                          bit_offset=8 * (len(packed[13]) - 4))
        elif i == 17:
            expect_result(result, 'bad_data', 'zlib_header')
        else:
            expect_result(result, 'ok', in_nbytes=len(packed[i]), out_nbytes=2000)
    # Without a place for results the completion says the same.
    done = session.run(**{**batch, 'dst_offset': 0, 'dst_nbytes': 0})
    expect_result(done, 'bad_checksum', 'zlib_checksum', first_bad_chunk=13, flags=0)
    session.close()


def test_batches_that_make_no_sense():
    session = client()
    packed = [zlib.compress(TEXT[:500])] * 4
    batch = write_batch(session, packed)
    limit = session.hello.limits.max_batch_chunks
    for reason, change in (
            ('request_batch', {'src_nbytes': 0, 'dst_nbytes': 0, 'dst_offset': 0}),
            ('request_batch', {'src_nbytes': 33}), ('request_batch', {'dst_nbytes': 24 * 3}),
            ('request_batch', {'src_nbytes': 32 * (limit + 1), 'dst_nbytes': 0, 'dst_offset': 0}),
            ('request_reserved', {'checksum': 1}), ('request_codec', {'codec': 999}),
            ('request_batch', {'dst_nbytes': 0}),
            ('request_region', {'src_region': 9}),
            ('request_range', {'src_offset': session.arena.nbytes - 64})):
        expect_result(session.run(**{**batch, **change}), 'bad_request', reason, flags=0,
                      first_bad_chunk=0)
    bad_rows = [('request_region', (4096, OUTPUT_AT, 10, 100, 0, 9, 0)),
                ('request_region', (4096, OUTPUT_AT, 10, 100, 0, 0, 9)),
                ('request_range', (session.arena.nbytes, OUTPUT_AT, 1, 100, 0, 0, 0)),
                ('request_overlap', (4096, 4097, 10, 100, 0, 0, 0))]
    for reason, row in bad_rows:
        write_batch(session, packed)
        session.arena.write(32 * 2, wc.CHUNK.pack(*row))
        session.arena.write(OUTPUT_AT, bytes(100))
        expect_result(session.run(**batch), 'bad_request', reason, flags=0, first_bad_chunk=2)
        equal(session.arena.read(OUTPUT_AT, 100), bytes(100), 'nothing is decoded')
    session.close()


# ---- cancel --------------------------------------------------------------------------------------

def test_cancel_of_nothing_says_so():
    session = client()
    expect_result(session.run(opcode=wc.OP_CANCEL, src_offset=4, user_data=5), 'bad_request',
                  'request_no_job', user_data=5)
    session.close()


def test_cancel_ends_what_waits():
    session = client(n_entries=256, arena_nbytes=16 << 20)
    # Jobs long enough for some to wait when the cancel comes, unless the daemon's thread that reads it
    # is kept from the processor until all are done.
    end = time.monotonic() + wc.PATIENCE_S
    while cancel_those_of_many(session) == 0:
        assert time.monotonic() < end, 'nothing is ever cancelled'
    session.close()


def cancel_those_of_many(session):
    """Of 200 jobs, which are all cancelled: how many it ended."""
    packed = deflated(TEXT * 40)
    job = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['deflate'], 'dst_offset': 1 << 20,
           'dst_nbytes': 40 * len(TEXT), **place(session, 0, packed)}
    for _ in range(200):
        session.submit(publish=False, user_data=3, **job)
    session.submit(publish=False, user_data=4, opcode=wc.OP_CANCEL, src_offset=3)
    session.publish()
    done = session.wait(201)
    equal(len(done), 201)
    counts = {}
    for completion in done:
        key = completion['user_data'], completion['result']
        counts[key] = counts.get(key, 0) + 1
        if completion['result'] == wc.RESULTS['cancelled']:
            equal(completion['out_nbytes'], 0)
    equal(counts.pop((4, wc.RESULTS['ok'])), 1, 'the cancel itself')
    assert set(counts) <= {(3, wc.RESULTS['cancelled']), (3, wc.RESULTS['ok'])}, counts
    equal(sum(counts.values()), 200)
    return counts.get((3, wc.RESULTS['cancelled']), 0)


def test_deadline_passes():
    session = client(n_entries=256, arena_nbytes=16 << 20)
    packed = deflated(TEXT * 40)
    job = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['deflate'], 'dst_offset': 1 << 20,
           'dst_nbytes': 40 * len(TEXT), **place(session, 0, packed)}
    # No processor decodes one in a microsecond.
    for i in range(200):
        session.submit(publish=False, user_data=i, timeout_us=1, **job)
    session.publish()
    late = [c for c in session.wait(200) if c['result'] != wc.RESULTS['ok']]
    assert late, 'each in a microsecond'
    for completion in late:
        expect_result(completion, 'deadline')
    session.close()


# ---- waking --------------------------------------------------------------------------------------

def wait_until_the_daemon_sleeps(session):
    """Until it has asked for a packet with the next submission."""
    end = time.monotonic() + wc.PATIENCE_S
    while session.rings.sq_wait.value != wc.WAIT_PACKET | session.rings.published:
        assert time.monotonic() < end, 'the daemon never sleeps'
        time.sleep(0.001)


def sleep_rounds(way):
    session = client(way=way)
    packed = deflated(TEXT)
    job = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['deflate'], 'dst_offset': 1 << 19,
           'dst_nbytes': len(TEXT), **place(session, 0, packed)}
    for i in range(300):
        if i % 10 == 0 and way != 'poll':
            wait_until_the_daemon_sleeps(session)
        start = time.monotonic()
        n = 1 + i % 3
        for k in range(n):
            session.submit(publish=False, user_data=i * 3 + k, **job)
        session.publish()
        equal(len(session.wait(n)), n)
        # A wake-up that was lost would show as the futex's own limit, or never end.
        assert way != 'packet' or time.monotonic() - start < 10
    session.close()


def test_sleeper_on_the_futex_is_woken():
    sleep_rounds('futex')


def test_sleeper_on_the_socket_is_woken():
    sleep_rounds('packet')


def test_client_without_fences_rings_always():
    sleep_rounds('poll')


def test_futex_is_woken_and_not_only_timed_out():
    session = client()
    packed = deflated(TEXT * 400)
    fd = wc.sealed_memfd(len(TEXT) * 400 + len(packed), contents=packed)
    session.register(1, fd, len(TEXT) * 400 + len(packed))
    woken, rounds, end = 0, 0, time.monotonic() + wc.PATIENCE_S
    # Where this process is slow, or the daemon fast, a job may be done before it can be waited for.
    while rounds < 10 or (woken == 0 and time.monotonic() < end):
        rounds += 1
        session.submit(opcode=wc.OP_DECODE, codec=wc.CODECS['deflate'], src_region=1, dst_region=1,
                       src_nbytes=len(packed), dst_offset=len(packed), dst_nbytes=400 * len(TEXT))
        if session.rings.arm(wc.WAIT_FUTEX, 1) == 0:
            start = time.monotonic()
            session.rings.sleep_on_futex(20_000_000_000)
            assert time.monotonic() - start < 10, 'not woken'
            woken += 1
        expect_result(session.wait(1)[0], 'ok', in_nbytes=len(packed), out_nbytes=400 * len(TEXT))
    assert woken > 0, 'never slept'
    session.close()
    os.close(fd)


# ---- registered memory ---------------------------------------------------------------------------

def test_registered_memory_is_read_and_written():
    session = client(arena_nbytes=0)
    packed = deflated(TEXT)
    source = wc.sealed_memfd(len(packed), wc.SEALS | wc.SEAL_WRITE, packed)
    target = wc.sealed_memfd(1 << 20)
    session.register(65535, source, len(packed), read_only=True)
    session.register(1, target, 1 << 20)
    expect_result(session.run(
        opcode=wc.OP_DECODE, codec=wc.CODECS['deflate'], src_region=65535, src_nbytes=len(packed),
        dst_region=1, dst_offset=12345, dst_nbytes=len(TEXT)), 'ok', in_nbytes=len(packed),
        out_nbytes=len(TEXT))
    equal(os.pread(target, len(TEXT), 12345), TEXT)
    equal(os.pread(target, 12345, 0), bytes(12345))
    session.unregister(1)
    expect_result(session.run(opcode=wc.OP_DECODE, src_region=65535, dst_region=1), 'bad_request',
                  'request_region')
    session.close()
    os.close(source)
    os.close(target)


def test_memory_that_is_not_taken():
    session = client()
    good = wc.sealed_memfd(8192)
    plain = tempfile.TemporaryFile()
    plain.truncate(8192)
    pair = socket.socketpair()
    session.register(5, good, 8192)
    for code, region, fd, options in (
            ('EPERM', 1, wc.sealed_memfd(8192, 0), {}), ('EPERM', 1, wc.sealed_memfd(8192, 2), {}),
            ('EPERM', 1, wc.sealed_memfd(8192, wc.SEALS | wc.SEAL_WRITE), {}),
            ('EEXIST', 5, good, {}), ('EINVAL', 0, good, {}), ('EINVAL', 65536, good, {}),
            ('EINVAL', 1, wc.sealed_memfd(4096), {}), ('EBADF', 1, plain.fileno(), {}),
            ('EBADF', 1, pair[0].fileno(), {}), ('EOPNOTSUPP', 1, good, {'kind': 2})):
        refused(code, session.register, region, fd, 8192, **options)
    refused('ENOENT', session.connection.call, 'unregister_memory',
            wc.messages.UnregisterMemoryRequest(region=1))
    refused('EINVAL', session.connection.call, 'unregister_memory',
            wc.messages.UnregisterMemoryRequest(region=0))
    session.unregister(5)
    session.close()


def rans_with_model(folder):
    """A stream of TEXT that leaves its model out, and the model, from the command."""
    def path(name):
        return os.path.join(folder, name)
    with open(path('text'), 'wb') as file:
        file.write(TEXT)
    wharf = os.path.join(os.path.dirname(DAEMON.program), 'wharf')
    for command in (('encode', '--splits', '5', '--cdf', path('cdf'), '-o', path('s'), path('text')),
                    ('import', '-n', '11', '--cdf', path('cdf'), '--model', path('model'),
                     '-o', path('stream'), path('s'))):
        subprocess.run([wharf, 'rans', *command], check=True)
    contents = []
    for name in 'stream', 'model':
        with open(path(name), 'rb') as file:
            contents.append(file.read())
    return contents


def decode_by_model(session, packed, number):
    return session.run(opcode=wc.OP_DECODE, codec=wc.CODECS['rans'], parameter=number,
                       **place(session, 0, packed), dst_offset=1 << 19, dst_nbytes=len(TEXT))


def test_models_are_registered_once():
    with tempfile.TemporaryDirectory() as folder:
        packed, model = rans_with_model(folder)
    session = client()
    codec = wc.CODECS['rans']
    assert session.hello.limits.max_models > 0
    most = 255 + session.hello.limits.max_models
    expect_result(decode_by_model(session, packed, most), 'bad_request', 'request_parameter')
    for code, number, contents in (('EINVAL', 255, model), ('EDQUOT', most + 1, model),
                                   ('EBADMSG', most, model[:-1]), ('EBADMSG', most, b'no model')):
        refused(code, session.register_model, number, codec, contents)
    session.register_model(most, codec, model)
    refused('EEXIST', session.register_model, most, codec, model)
    for _ in range(2):
        expect_result(decode_by_model(session, packed, most), 'ok', in_nbytes=len(packed),
                      out_nbytes=len(TEXT))
        equal(session.arena.read(1 << 19, len(TEXT)), TEXT)
        # The next daemon is told of it.
        DAEMON.kill()
        DAEMON.start()
        lost(session.connection)
        session.come_back()
    session.unregister_model(most)
    refused('ENOENT', session.connection.ask, 'unregister_model',
            wc.messages.UnregisterModelRequest(model=most), 'done')
    expect_result(decode_by_model(session, packed, most), 'bad_request', 'request_parameter')
    session.close()


def test_models_have_to_be_agreed_on():
    bare = wc.Connection(DAEMON.socket)
    equal(bare.hello().features, 0)
    fd = wc.sealed_memfd(4096, wc.SEALS | wc.SEAL_WRITE)
    refused('EOPNOTSUPP', bare.ask, 'register_model',
            wc.messages.RegisterModelRequest(model=256, codec=wc.CODECS['rans'], nbytes=4096),
            'done', [fd])
    os.close(fd)
    bare.close()


def test_memory_in_use_stays():
    session = client(arena_nbytes=16 << 20)
    n = 600 * len(TEXT)
    packed = deflated(TEXT * 600)
    fd = wc.sealed_memfd(n)
    session.register(3, fd, n)
    session.submit(opcode=wc.OP_DECODE, codec=wc.CODECS['deflate'], dst_region=3, dst_nbytes=n,
                   **place(session, 0, packed))
    refused('EBUSY', session.unregister, 3)
    expect_result(session.wait(1)[0], 'ok', in_nbytes=len(packed), out_nbytes=n)
    session.unregister(3)
    session.close()
    os.close(fd)


# ---- statistics ----------------------------------------------------------------------------------

def value_of(families, name):
    return sum(sample.value for family in families if family.name == name
               for sample in family.samples if not sample.suffix)


def test_statistics_keep_the_conventions():
    session = client()
    families = session.stats()
    assert families
    for family in families:
        assert re.fullmatch(r'(wharf|process)_[a-z0-9_]+', family.name), family.name
        assert family.help and family.type in (1, 2, 3), family.name
        equal(family.type == 1, family.name.endswith('_total'), family.name)
        for sample in family.samples:
            suffixes = ('_bucket', '_sum', '_count') if family.type == 3 else ('',)
            assert sample.suffix in suffixes, (family.name, sample.suffix)
            equal(sample.suffix == '_bucket', 'le' in [label.name for label in sample.labels])
    session.close()


def test_statistics_count_jobs():
    session = client()
    counters = {f.name for f in session.stats() if f.type == 1}
    before = {name: value_of(session.stats(), name) for name in counters}
    for i in range(50):
        session.run(opcode=wc.OP_NOOP, user_data=i)
    grown = {name for name in counters if value_of(session.stats(), name) >= before[name] + 50}
    assert any('jobs' in name for name in grown), grown
    session.close()


# ---- ends ----------------------------------------------------------------------------------------

def stop_daemon():
    """All of its threads: they go on until the one that takes the signal has had its turn."""
    DAEMON.process.send_signal(signal.SIGSTOP)
    end = time.monotonic() + wc.PATIENCE_S
    tasks = f'/proc/{DAEMON.process.pid}/task'
    while True:
        states = set()
        for task in os.listdir(tasks):
            with open(f'{tasks}/{task}/stat', encoding='utf-8') as stat:
                states.add(stat.read().rpartition(')')[2].split()[0])
        if states <= {'T', 't'}:
            return
        assert time.monotonic() < end, 'the daemon does not stop'


def test_replay_after_kill():
    """Jobs in the arena and in registered memory, of which some were done and some were not."""
    for way in ('futex', 'packet', 'poll'):
        session = client(n_entries=1024, arena_nbytes=48 << 20, way=way)
        packed = [deflated(TEXT[i * 50:]) for i in range(16)]
        source = wc.sealed_memfd(1 << 20, contents=b''.join(packed))
        session.register(2, source, 1 << 20, read_only=True)
        starts = [sum(map(len, packed[:i])) for i in range(16)]
        room = len(TEXT)
        for i in range(300):
            k = i % 16
            session.submit(publish=False, opcode=wc.OP_DECODE, codec=wc.CODECS['deflate'],
                           user_data=i + 1, src_region=2, src_offset=starts[k],
                           src_nbytes=len(packed[k]), dst_offset=i * room, dst_nbytes=room)
            if i == 149:
                session.publish()
        generation = session.hello.generation
        done = session.wait(1)
        # Of the other half nothing is done, however long it takes to hand it in.
        stop_daemon()
        session.publish()
        DAEMON.kill()
        DAEMON.start()
        done += session.wait_through(300 - len(done))
        equal(sorted(c['user_data'] for c in done), list(range(1, 301)))
        for completion in done:
            i = completion['user_data'] - 1
            plain = TEXT[(i % 16) * 50:]
            expect_result(completion, 'ok', in_nbytes=len(packed[i % 16]), out_nbytes=len(plain))
            equal(session.arena.read(i * room, len(plain)), plain, f'job {i}')
        assert session.n_replayed >= 150, session.n_replayed
        assert session.hello.generation != generation
        session.close()
        os.close(source)


def test_death_counts_against_what_was_begun():
    session = client(n_entries=256, arena_nbytes=16 << 20)
    assert session.hello.features & wc.FEATURE_MARKS
    packed = deflated(TEXT * 40)
    job = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['deflate'], 'dst_offset': 1 << 20,
           'dst_nbytes': 40 * len(TEXT), **place(session, 0, packed)}
    for i in range(200):
        session.submit(publish=False, user_data=i, **job)
    session.publish()
    done = session.wait(1)
    # What comes now it does not even take.
    stop_daemon()
    for i in range(200, 210):
        session.submit(user_data=i, **job)
    DAEMON.kill()
    DAEMON.start()
    lost(session.connection)
    done += session.come_back()
    deaths = {i: jobs[0].n_deaths for i, jobs in session.outstanding.items()}
    equal([deaths[i] for i in range(200, 210)], [0] * 10, 'deaths with jobs that were not taken')
    # Each worker has one, and one more where it is blocked in it.
    assert sum(deaths.values()) <= 2 * os.cpu_count() + 2, deaths
    done += session.wait(210 - len(done))
    for completion in done:
        expect_result(completion, 'ok')
    session.close()


def test_session_survives_an_idle_kill():
    session = client()
    session.arena.write(0, b'kept')
    DAEMON.kill()
    DAEMON.start()
    lost(session.connection)
    session.come_back()
    equal(session.arena.read(0, 4), b'kept')
    expect_result(session.run(opcode=wc.OP_NOOP), 'ok')
    session.close()


def drain_with(ask):
    session = client(n_entries=64, arena_nbytes=32 << 20)
    packed = deflated(TEXT * 2)
    for i in range(60):
        session.submit(publish=False, opcode=wc.OP_DECODE, codec=wc.CODECS['deflate'], user_data=i,
                       **place(session, 0, packed), dst_offset=(1 << 20) + i * 2 * len(TEXT),
                       dst_nbytes=2 * len(TEXT))
    session.publish()
    # Those that it took are completed; the others are the client's to submit elsewhere.
    end = time.monotonic() + wc.PATIENCE_S
    while session.rings.d.word32(128).value != 60:
        assert time.monotonic() < end
    ask(session)
    lost(session.connection)
    assert session.rings.flags.value & wc.FLAG_DRAINING
    done = session.wait(60)
    equal(len(done), 60)
    for completion in done:
        expect_result(completion, 'ok', in_nbytes=len(packed), out_nbytes=2 * len(TEXT))
    equal(DAEMON.process.wait(wc.PATIENCE_S), 0, 'exit status')
    DAEMON.start()
    session.come_back()
    expect_result(session.run(opcode=wc.OP_NOOP), 'ok')
    session.close()


def test_drain_finishes_what_was_taken():
    drain_with(lambda session: session.connection.ask('drain', wc.messages.DrainRequest(), 'done'))


def test_term_finishes_what_was_taken():
    drain_with(lambda _: DAEMON.process.send_signal(signal.SIGTERM))


# ---- GPU memory ----------------------------------------------------------------------------------

def decode_in_gpu_memory(session, memory, packed):
    """In all ways that have GPU memory, by chunks and by a batch of one."""
    at, table = 1 << 16, 1 << 19
    for batch, src, dst in ((b, s, d) for b in (False, True) for s, d in ((0, 1), (1, 0), (1, 1))):
        where = memory if dst else session.arena
        where.write(at, bytes(len(TEXT)))
        if batch:
            session.arena.write(table, wc.CHUNK.pack(0, at, len(packed), len(TEXT), 0, src, dst))
            places = {'opcode': wc.OP_BATCH, 'src_offset': table, 'src_nbytes': wc.CHUNK.size}
        else:
            places = {'opcode': wc.OP_DECODE, 'src_region': src, 'src_nbytes': len(packed),
                      'dst_region': dst, 'dst_offset': at, 'dst_nbytes': len(TEXT)}
        completion = session.run(codec=wc.CODECS['deflate'], **places)
        expect_result(completion, 'ok', in_nbytes=len(packed), out_nbytes=len(TEXT),
                      engine=wc.ENGINES['simt'])
        assert where.read(at, len(TEXT)) == TEXT, (batch, src, dst)


def test_gpu_memory_has_sources_and_outputs():
    daemon = Daemon(DAEMON.program, sections='[gpu]\nengine = simt\ndevice = 0\n')
    try:
        session = wc.Client(daemon.socket)
        assert session.hello.features & wc.FEATURE_GPU_SOURCES
        packed, nbytes = deflated(TEXT), 1 << 18
        fd = wc.sealed_memfd(nbytes, wc.SEALS, packed + bytes(nbytes - len(packed)))
        memory = wc.Mapping(fd, nbytes, True)
        session.arena.write(0, packed)
        session.register(1, fd, nbytes, kind=wc.MEMORY_KIND_GPU)
        decode_in_gpu_memory(session, memory, packed)
        session.register(2, fd, nbytes, read_only=True, kind=wc.MEMORY_KIND_GPU)
        only_read = {'opcode': wc.OP_DECODE, 'codec': wc.CODECS['stored']}
        expect_result(session.run(src_region=2, src_nbytes=9, dst_nbytes=9, **only_read), 'ok',
                      in_nbytes=9, out_nbytes=9)
        expect_result(session.run(dst_region=2, **only_read), 'bad_request', 'request_region')
        memory.close()
        session.close()
        os.close(fd)
    finally:
        daemon.remove()


# ---- all of them ---------------------------------------------------------------------------------

def run_tests(program, pattern, tests):
    global DAEMON  # pylint: disable=global-statement
    names = [name for name in tests if name.startswith('test_') and re.search(pattern, name)]
    failed = 0
    print(f'1..{len(names)}', flush=True)
    DAEMON = Daemon(program)
    try:
        for number, name in enumerate(names, 1):
            try:
                tests[name]()
                if DAEMON.process.poll() is not None:
                    raise AssertionError(f'the daemon has ended; it said:\n{DAEMON.says()}')
                word = 'ok'
            except Exception:  # pylint: disable=broad-exception-caught
                word, failed = 'not ok', failed + 1
                print(re.sub('^', '# ', traceback.format_exc().rstrip(), flags=re.M))
                if DAEMON.process.poll() is not None:
                    DAEMON.start()
            print(f'{word} {number} - {name.removeprefix("test_")}', flush=True)
    finally:
        DAEMON.remove()
    return failed


def main(tests):
    """Runs those of a module's functions that are tests."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    parser.add_argument('pattern', nargs='?', default='.')
    options = parser.parse_args()
    return run_tests(os.path.join(TOP, options.build, 'wharfd'), options.pattern, tests) > 0


if __name__ == '__main__':
    sys.exit(main(globals()))
