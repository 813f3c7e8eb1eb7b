#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_compress_test.py [--build FOLDER] [PATTERN]: jobs that compress, as python_client_test.py tests others."""
import os
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import python_client_test as base  # noqa: E402  pylint: disable=wrong-import-position
from python_client_test import TEXT, equal, expect_result, place, wc  # noqa: E402  pylint: disable=wrong-import-position


def compressed(session, codec, **members):
    """The completion, and the stream."""
    job = {'opcode': wc.OP_DECODE, 'flags': wc.JOB_COMPRESS, 'codec': wc.CODECS[codec],
           'dst_offset': 1 << 19, 'dst_nbytes': 2 * len(TEXT) + 4096, **members}
    completion = session.run(**job)
    return completion, session.arena.read(1 << 19, completion['out_nbytes'])


def test_every_codec_compresses_what_it_decodes():
    session = base.client()
    text = bytes(c & 1 for c in TEXT)  # boolrle's bytes are 0 and 1
    for codec in wc.CODECS:
        completion, stream = compressed(session, codec, **place(session, 0, text))
        expect_result(completion, 'ok', in_nbytes=len(text), out_nbytes=len(stream))
        back = session.run(opcode=wc.OP_DECODE, codec=wc.CODECS[codec], dst_offset=1 << 19,
                           dst_nbytes=len(text), flags=wc.JOB_EXACT_INPUT,
                           **place(session, 0, stream))
        expect_result(back, 'ok', in_nbytes=len(stream), out_nbytes=len(text))
        equal(session.arena.read(1 << 19, len(text)), text, codec)
        if stream:
            full = compressed(session, codec, dst_nbytes=len(stream) - 1,
                              **place(session, 0, text))[0]
            expect_result(full, 'output_too_small', 'output_full', bit_offset=0)
    session.close()


def test_encoders_are_chosen_by_number_and_level():
    session = base.client()
    sizes = set()
    for encoder, levels in ((1, range(1, 13)), (2, range(1, 10))):
        for level in levels:
            completion, stream = compressed(session, 'deflate', encoder=encoder, level=level,
                                            **place(session, 0, TEXT))
            expect_result(completion, 'ok')
            equal(zlib.decompress(stream, -15), TEXT)
            sizes.add(len(stream))
    assert len(sizes) > 2, sizes
    source = place(session, 0, TEXT)
    steps = [
        ('request_flags', {'flags': wc.JOB_COMPRESS | wc.JOB_EXACT_INPUT}),
        ('request_parameter', {'parameter': 1}), ('request_encoder', {'encoder': 3}),
        ('request_encoder', {'level': 13}), ('request_encoder', {'encoder': 2, 'level': 10}),
    ]
    for reason, change in steps:
        expect_result(compressed(session, 'deflate', **{**source, **change})[0], 'bad_request',
                      reason)
    session.close()
    limit = session.hello.limits.max_compress_nbytes
    session = base.client(arena_nbytes=4 * limit)
    for nbytes, result in ((limit, ('ok',)), (limit + 1, ('bad_request', 'request_size'))):
        completion, _ = compressed(session, 'lz4', src_nbytes=nbytes, dst_offset=2 * limit,
                                   dst_nbytes=2 * limit)
        expect_result(completion, *result)
    session.close()


def test_compressing_has_to_be_agreed_on():
    connection = wc.Connection(base.DAEMON.socket)
    hello = connection.hello()
    equal((hello.features & wc.FEATURE_COMPRESS, hello.limits.max_compress_nbytes), (0, 0))
    connection.close()


if __name__ == '__main__':
    sys.exit(base.main(globals()))
