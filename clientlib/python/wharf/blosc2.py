# SPDX-License-Identifier: Apache-2.0
"""Contiguous frames of Blosc 2 with one chunk each, as filter 32026 of HDF5 stores them.

A frame, as c-blosc2's README_CFRAME_FORMAT has it: numbers are big-endian, with a byte of MessagePack before each.  A header,
whose size stands at byte 11, the frame's at 16, the output's at 30, the compressed chunks' at 39, an element's at 48 and a
chunk's at 58; from byte 87 it lists metalayers, their names and where their contents lie.  Then come the chunks, and a chunk that holds where
each begins, in 8 bytes, little-endian: of one that is not there, since it has one value, bit 63 and which value in bits 56
to 62.

The metalayer b2nd says that a chunk has several dimensions, its shape and that of its blocks: in the output the elements of
a block lie together, and the last blocks of each dimension are filled up.
"""
import math
import struct

import numpy

from . import _wharf
from .integrations import FileDataError, as_kind, bad_file_data

_MAGIC = b'\x9e\xa8b2frame\0'
_LEAST_NBYTES, _METALAYERS_AT = 97, 87
_MAX_NBYTES = 0x7fffffff
_MAX_DIMENSIONS, _MAX_METALAYERS, _MAX_NAME_NBYTES = 8, 16, 31
# Values of a chunk that is not there.
_ZEROS, _NANS, _UNINITIALISED = 1, 2, 4


def decode_frames(datas, most):
    """The output of each frame, as bytes.  datas: bytes-like.  most: bytes that may come out of one.

    Raises FileDataError, whose `bit` counts from the frame's first one.
    """
    frames = [_Frame(data, most) for data in datas]
    indexes = _batch([(frame, frame.data[frame.end:], frame.end, 8) for frame in frames])
    offsets = [int.from_bytes(index, 'little') for index in indexes]
    there = [(frame, *frame.chunk(offset)) for frame, offset in zip(frames, offsets) if not offset >> 63]
    made = iter(_batch(there))
    return [frame.in_order(frame.fill(offset >> 56 & 0x7f) if offset >> 63 else next(made))
            for frame, offset in zip(frames, offsets)]


def _batch(parts):
    """parts: of each the frame, a chunk, where it begins there, and the size of its output."""
    try:
        return _wharf.decompress_batch([part[1] for part in parts], 'blosc', sizes=[part[3] for part in parts], exact_output=True)
    except _wharf.DataError as error:
        made = as_kind(FileDataError, error)
        made.bit += 8 * parts[error.index][2]
        raise made from None


class _Frame:
    def __init__(self, data, most):
        self.data = memoryview(data)
        if len(self.data) < _LEAST_NBYTES or self.data[:len(_MAGIC)] != _MAGIC:
            raise self._bad('no header')
        header, = struct.unpack_from('>I', self.data, 11)
        whole, = struct.unpack_from('>Q', self.data, 16)
        out, = struct.unpack_from('>Q', self.data, 30)
        chunks, = struct.unpack_from('>Q', self.data, 39)
        self.element, = struct.unpack_from('>I', self.data, 48)
        one, = struct.unpack_from('>I', self.data, 58)
        if whole > len(self.data) or not _LEAST_NBYTES <= header <= whole or chunks > whole - header:
            raise self._bad('sizes that reach beyond its end')
        if not 0 < out <= _MAX_NBYTES or not self.element:
            raise self._bad('no output, or too much')
        if out > one:
            raise self._bad('several chunks')
        self.header, self.end, self.out_nbytes = header, header + chunks, out
        self.shape, self.blocks = self._read_shape()
        if (math.prod(self.shape) * self.element if self.shape else out) > most:
            raise self._bad('more output than a chunk has')

    def _bad(self, what):
        return bad_file_data(f'{what} in a frame of Blosc 2 of {len(self.data)} bytes', 'blosc_header')

    def chunk(self, offset):
        """The chunk that begins at an offset, where that is in the frame, and its output's size."""
        if offset >= self.end - self.header:
            raise self._bad('a chunk that begins beyond its end')
        return self.data[self.header + offset:self.end], self.header + offset, self.out_nbytes

    def fill(self, value):
        """The output of a chunk that is not there."""
        if value in (_ZEROS, _UNINITIALISED):
            return bytes(self.out_nbytes)
        if value != _NANS or self.element not in (4, 8) or self.out_nbytes % self.element:
            raise self._bad('a value of no known kind')
        return numpy.full(self.out_nbytes // self.element, numpy.nan, f'<f{self.element}').tobytes()

    def in_order(self, made):
        """The elements in the order of the array."""
        if not self.shape:
            return made
        n = len(self.shape)
        counts = [-(-size // block) for size, block in zip(self.shape, self.blocks)]
        whole = numpy.frombuffer(made, f'V{self.element}').reshape(counts + self.blocks)
        whole = whole.transpose([axis for i in range(n) for axis in (i, n + i)])
        whole = whole.reshape([count * block for count, block in zip(counts, self.blocks)])
        return whole[tuple(slice(size) for size in self.shape)].tobytes()

    # ---- b2nd ----

    def _read_shape(self):
        """Of the chunk and its blocks; empty lists if it has one dimension."""
        try:
            at = self._find_b2nd()
            if at == 0:
                return [], []
            shape, blocks = self._read_b2nd(at)
        except (struct.error, IndexError):
            raise self._bad('a header that is cut off') from None
        filled = math.prod(-(-size // block) * block for size, block in zip(shape, blocks)) * self.element
        if any(block > size for size, block in zip(shape, blocks)) or filled != self.out_nbytes:
            raise self._bad('a bad metalayer b2nd')
        return shape, blocks

    def _take(self, at, tag, code):
        """A number behind its tag, and where the next one stands."""
        head = self.data[:self.header]
        if head[at] != tag:
            raise self._bad('a bad metalayer')
        return struct.unpack_from(code, head, at + 1)[0], at + 1 + struct.calcsize(code)

    def _find_b2nd(self):
        head = self.data[:self.header]
        if head[_METALAYERS_AT] != 0x93:
            raise self._bad('a bad list of metalayers')
        _, at = self._take(_METALAYERS_AT + 1, 0xcd, '>H')
        n, at = self._take(at, 0xde, '>H')
        if n > _MAX_METALAYERS:
            raise self._bad('too many metalayers')
        found = 0
        for _ in range(n):
            length = head[at] - 0xa0
            if not 0 <= length <= _MAX_NAME_NBYTES:
                raise self._bad('a bad list of metalayers')
            name = bytes(head[at + 1:at + 1 + length])
            offset, at = self._take(at + 1 + length, 0xd2, '>I')
            found = offset if name == b'b2nd' else found
        if found >= self.header:
            raise self._bad('a bad list of metalayers')
        return found

    def _read_b2nd(self, at):
        _, at = self._take(at, 0xc6, '>I')
        head = self.data[:self.header]
        n = head[at + 2]
        if not 0x95 <= head[at] < 0xa0 or not 1 <= n <= _MAX_DIMENSIONS:
            raise self._bad('a bad metalayer b2nd')
        at, shapes = at + 3, []
        for tag, code in (0xd3, '>q'), (0xd2, '>i'), (0xd2, '>i'):
            if head[at] != 0x90 + n:
                raise self._bad('a bad metalayer b2nd')
            at, shape = at + 1, []
            for _ in range(n):
                size, at = self._take(at, tag, code)
                if not 0 < size <= _MAX_NBYTES:
                    raise self._bad('a bad metalayer b2nd')
                shape.append(size)
            shapes.append(shape)
        return shapes[1], shapes[2]
