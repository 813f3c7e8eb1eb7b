#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""blosc2_frame.py CHUNK [SHAPE BLOCK ELEMENT]: a contiguous frame of Blosc 2 with one chunk, on standard output.

SHAPE and BLOCK, as in 5,7 and 2,4, make the metalayer b2nd: what the chunk holds is then taken for elements of ELEMENT
bytes, block by block.  `fill:N` in place of a chunk is N bytes that are the same everywhere: zeros, by an offset alone.
"""
import struct
import sys


def shape_of(word):
    return [int(number) for number in word.split(',')]


def b2nd(shape, block):
    """Version, dimensions, shape of the array and of its chunk, which are one, of a block; the elements' kind."""
    dimensions = bytes([0x90 + len(shape)])
    text = bytes([0x97, 0, len(shape)])
    text += dimensions + b''.join(b'\xd3' + struct.pack('>q', n) for n in shape)
    text += dimensions + b''.join(b'\xd2' + struct.pack('>i', n) for n in shape)
    text += dimensions + b''.join(b'\xd2' + struct.pack('>i', n) for n in block)
    text += b'\x00\xdb' + struct.pack('>I', 3) + b'|V1'
    return b'\xc6' + struct.pack('>I', len(text)) + text


def special(value):
    """A chunk with one element of 8 bytes, by its value."""
    return bytes([5, 1, 7, 8]) + struct.pack('<iii', 8, 8, 40) + bytes(15) + b'\x30' + struct.pack('<Q', value)


def frame(chunk, out_nbytes, element, layer=b'', offset=0):
    """The chunk lies right behind the header; `offset` is where the index says it does."""
    names = (b'\xa4b2nd', ) if layer else ()
    # The list's size, a name with where its contents lie, and the contents.
    start = 87 + 4 + 3 + 10 * len(names) + 3
    layers = b'\x93\xcd' + struct.pack('>H', 7 + 10 * len(names)) + b'\xde' + struct.pack('>H', len(names))
    layers += b''.join(name + b'\xd2' + struct.pack('>I', start) for name in names)
    layers += b'\xdc' + struct.pack('>H', len(names)) + layer
    header = b'\x9e\xa8b2frame\0\xd2' + struct.pack('>I', 87 + len(layers)) + b'\xcf%s'
    header += b'\xa4\x12\x00\x50\x03\xd3' + struct.pack('>q', out_nbytes) + b'\xd3' + struct.pack('>q', len(chunk))
    header += b'\xd2' + struct.pack('>i', element) + b'\xd2' + struct.pack('>i', out_nbytes)
    header += b'\xd2' + struct.pack('>i', out_nbytes) + b'\xd1\0\0\xd1\0\1\xc2\xd8\x06' + bytes(16)
    behind = layers + chunk + special(offset) + b'\x94\x01\x93\xcd\x00\x06\xde\0\0\xdc\0\0\xce\0\0\0\x23\xd8\0' + bytes(16)
    return header.replace(b'%s', struct.pack('>Q', len(header) + 6 + len(behind))) + behind


def main(arguments):
    chunk, offset, element, layer = b'', 0, 1, b''
    if arguments[0].startswith('fill:'):
        out_nbytes, offset = int(arguments[0][5:]), 0x81 << 56
    else:
        with open(arguments[0], 'rb') as file:
            chunk = file.read()
        out_nbytes = struct.unpack_from('<i', chunk, 4)[0]
    if len(arguments) > 1:
        layer, element = b2nd(shape_of(arguments[1]), shape_of(arguments[2])), int(arguments[3])
    sys.stdout.buffer.write(frame(chunk, out_nbytes, element, layer, offset))


if __name__ == '__main__':
    main(sys.argv[1:])
