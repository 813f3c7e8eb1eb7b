#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_gzip.py KIND MIB: writes a file of so many MiB of output, quickly.

KIND is member (one gzip member), members (one of 1 MiB after another), bgzf or zlib.  The content
is 1 MiB of text over and over; it is compressed once, up to a point where Deflate's window is
forgotten, and those bytes are repeated.
"""
import struct
import sys
import zlib

MIB = 1 << 20
HEADER = b'\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff'
MARKER = bytes.fromhex('1f8b08040000000000ff0600424302001b0003000000000000000000')


def text():
    lines = (f'{i},{i * i % 977},wharf,{i % 7}\n' for i in range(100000))
    return ''.join(lines).encode()[:MIB]


def deflate(data, flush):
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush(flush)


def member(data, mib):
    body = deflate(data, zlib.Z_FULL_FLUSH)
    crc = 0
    for _ in range(mib):
        crc = zlib.crc32(data, crc)
        yield body
    # An empty last block, checksum and length.
    yield b'\x03\x00' + struct.pack('<II', crc, mib * MIB & 0xffffffff)


def zlib_stream(data, mib):
    body = deflate(data, zlib.Z_FULL_FLUSH)
    adler = 1
    yield b'\x78\x9c'
    for _ in range(mib):
        adler = zlib.adler32(data, adler)
        yield body
    yield b'\x03\x00' + struct.pack('>I', adler)


def bgzf_block(data):
    body = deflate(data, zlib.Z_FINISH)
    extra = b'BC' + struct.pack('<HH', 2, len(body) + 25)
    return (b'\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff' + struct.pack('<H', 6) + extra + body +
            struct.pack('<II', zlib.crc32(data), len(data)))


def main():
    kind, mib, data, out = sys.argv[1], int(sys.argv[2]), text(), sys.stdout.buffer
    if kind == 'member':
        out.write(HEADER)
        for piece in member(data, mib):
            out.write(piece)
    elif kind == 'zlib':
        for piece in zlib_stream(data, mib):
            out.write(piece)
    elif kind == 'members':
        one = HEADER + b''.join(member(data, 1))
        for _ in range(mib):
            out.write(one)
    elif kind == 'bgzf':
        block = b''.join(bgzf_block(data[i:i + 65280]) for i in range(0, MIB, 65280))
        for _ in range(mib):
            out.write(block)
        out.write(MARKER)
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
