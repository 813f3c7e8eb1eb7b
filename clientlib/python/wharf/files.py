# SPDX-License-Identifier: Apache-2.0
"""wharf.open: compressed files as Python's files.  What is written is writer.py's.

Three kinds of readers stand behind it.  _StreamReader goes forward, and begins anew to go back.  _PartReader has parts
that can be decoded alone: chunks of a wharf container, spans of an indexed gzip file.  _BlockReader is one whose parts
are listed in the file itself, and decodes several at once: BGZF, and seekable zstd.
"""
import builtins
import io
import os
import struct
import threading
import warnings

from . import _wharf
from .reader import BUFFER_NBYTES, ForwardReader
from .writer import TextWriter, open_writer

# BGZF's header may take this to be told from gzip's.
_HEAD_NBYTES = 66 << 10
_INDEX_SUFFIX = '.whi'
# Blocks that are decoded at once where a file is read in order.
_BATCH_NBYTES = 2 << 20
# Formats of which a whole file is what a chunk of the same name is.
_WHOLE = ('gzip', 'zlib')
# Longer ones are decoded as streams.
_MAX_BLOCK_NBYTES = 64 << 20


def open(file, mode='rb', *, format=None, index=None, level=None, chunk=None, codec=None, threads=0, encoding=None,  # pylint: disable=redefined-builtin
         errors=None, newline=None):
    """Opens a compressed file, of which bytes or text are read or written as if it was not compressed.

    file: a path, or a file object opened for reading or writing bytes.
    mode: 'r', 'w', 'x' or 'a', with 'b' or 't'; 't' is text, for which encoding, errors and newline are io.TextIOWrapper's.

    Reading: gzip, BGZF, zlib, zstd, LZ4 frames, framed Snappy, wharf containers.
    format: 'gzip', 'bgzf', 'zlib', 'zstd', 'lz4', 'snappy' or 'wharf'; None finds out by the first bytes.
    index: of a gzip or zlib file, the path of its index; None is the one beside it, if it is there and true (`wharf
    index FILE` makes it), False none.
    Returns an io.BufferedReader or io.TextIOWrapper.  Any byte of a BGZF, wharf or seekable zstd file, and of one with
    an index, is reached at once; others are decoded from the beginning to go back, and a pipe only goes forward.
    Raises OSError where the file cannot be read, UnsupportedError where it is of no format that wharf reads, and on
    reading DataError where it is bad: `bit` counts from the file's first bit.  Bytes before the bad place are given
    first.

    Writing: gzip, BGZF, seekable zstd, wharf containers.
    format: 'gzip', 'bgzf', 'zstd' or 'wharf'; None goes by the name: .gz, .bgz, .zst, .whr.
    level: effort; the higher, the smaller and slower.  gzip 0 to 9, bgzf and wharf 1 to 12, zstd as zstd's own.
    chunk: bytes in a block of BGZF, frame of zstd or chunk of wharf.  codec: name of wharf's, None is 'deflate'.
    threads: how many may pack; 0 is one for each core, at most 16.
    Returns a writer.Writer or TextWriter.  A path is there when it was closed, complete, and not before: an older file of
    that name stays until then, and stays where a `with` block ends by an exception, or nobody closes the file ('x'
    wants that there is none, also at the end).  'a' adds a member to gzip and wharf containers.  To other objects and
    pipes it is written at once, and what is given up is left so that readers find it bad.
    Raises OSError where the file cannot be written, by any call up to close, which may be called again.
    """
    kind, is_text = mode.replace('b', '', 1), 't' in mode
    kind = kind.replace('t', '', 1)
    if kind not in ('r', 'w', 'x', 'a') or (is_text and 'b' in mode):
        raise ValueError(f"mode is {mode!r}: it is 'r', 'w', 'x' or 'a', with 'b' or 't'")
    if not is_text and (encoding, errors, newline) != (None, None, None):
        raise ValueError('encoding, errors and newline are for text')
    if kind != 'r':
        if index is not None:
            raise ValueError('an index is for reading: wharf index makes it')
        made = open_writer(file, kind, format, {'level': level, 'chunk': chunk, 'codec': codec, 'threads': threads})
        return _as_text(TextWriter, made, encoding, errors, newline) if is_text else made
    if (level, chunk, codec, threads) != (None, None, None, 0):
        raise ValueError('level, chunk, codec and threads are for writing')
    source = _Source(file)
    try:
        raw = _make_reader(source, format or source.detect(), index)
    except BaseException:
        source.close()
        raise
    reader = io.BufferedReader(raw, BUFFER_NBYTES)
    return _as_text(io.TextIOWrapper, reader, encoding, errors, newline) if is_text else reader


def _as_text(kind, file, encoding, errors, newline):
    try:
        return kind(file, encoding, errors, newline)
    except BaseException:
        getattr(file, 'discard', file.close)()
        raise


# ---- the file ------------------------------------------------------------------------------------

class _Source:
    """The compressed file: bytes in order by `read`, and at any place by `read_at`."""

    def __init__(self, file):
        self.is_own = isinstance(file, (str, bytes, os.PathLike))
        self.file = builtins.open(file, 'rb', buffering=0) if self.is_own else file
        self.name = file if self.is_own else getattr(file, 'name', None)
        self._lock = threading.Lock()
        self._is_seekable = bool(getattr(self.file, 'seekable', lambda: False)())
        self._base = self.file.tell() if self._is_seekable else 0
        # A file of fsspec: ranges are asked of its file system, which reads no more than that.
        self._ranges = getattr(getattr(self.file, 'fs', None), 'cat_file', None)
        self._head = self._read_head()
        self._at = 0

    def _read_head(self):
        head = b''
        while len(head) < _HEAD_NBYTES:
            more = self.file.read(_HEAD_NBYTES - len(head))
            if not more:
                break
            head += more
        return head

    def detect(self):
        format, foreign = _wharf.detect(self._head)  # pylint: disable=redefined-builtin
        if format != 'other':
            return format
        what = f'it is {foreign}' if foreign else 'it is none of the formats that wharf reads'
        error = _wharf.UnsupportedError(f'{self.name}: {what}')
        error.result, error.reason, error.bit, error.index = 'unsupported', 'none', 0, None
        raise error

    def seekable(self):
        return self._is_seekable

    def seek(self, offset):
        """For readers that go forward: to the beginning."""
        self._at = offset

    def read(self, nbytes):
        data = self._head[self._at:self._at + nbytes]
        if not data:
            data = self.read_at(self._at, nbytes) if self._is_seekable else self.file.read(nbytes)
        self._at += len(data)
        return data

    def read_at(self, offset, nbytes):
        """All of it, but at the file's end."""
        if self._ranges:
            begin, end = self._base + offset, min(self._base + offset + nbytes, self._end())
            return self._ranges(self.file.path, start=begin, end=end) if begin < end else b''
        with self._lock:
            self.file.seek(self._base + offset)
            parts = []
            while nbytes > 0:
                part = self.file.read(nbytes)
                if not part:
                    break
                if len(part) > nbytes:
                    raise ValueError(f'{self.name}: its read gives more than it is asked for')
                parts.append(part)
                nbytes -= len(part)
            return parts[0] if len(parts) == 1 else b''.join(parts)

    def nbytes(self):
        return self._end() - self._base

    def _end(self):
        with self._lock:
            return self.file.seek(0, io.SEEK_END)

    def descriptor(self):
        """Of a file that has nothing before its beginning, or None."""
        try:
            return None if self._base else self.file.fileno()
        except (AttributeError, OSError):
            return None

    def close(self):
        if self.is_own:
            self.file.close()


def _make_reader(source, format, index):  # pylint: disable=redefined-builtin
    if index:
        return _IndexReader(source, 'gzip' if format == 'bgzf' else format, _load_index(source, index))
    if format == 'empty':
        return _StreamReader(source, 'gzip', is_empty=True)
    if source.seekable():
        if format == 'wharf':
            return _ContainerReader(source)
        if format == 'bgzf':
            return _BlockReader(source, 'gzip', _BgzfTable(source))
        table = _zstd_table(source) if format == 'zstd' else None
        if table:
            return _BlockReader(source, 'zstd', table)
        found = _index_beside(source) if index is None and format in ('gzip', 'zlib') else None
        if found:
            return _IndexReader(source, format, found)
    elif format == 'wharf':
        raise io.UnsupportedOperation('a wharf container is read from a file that can seek; wharf cat reads pipes')
    return _StreamReader(source, 'gzip' if format == 'bgzf' else format)


def _load_index(source, path):
    fd = source.descriptor()
    if fd is None:
        raise ValueError('an index is of files alone')
    return _wharf.GzipIndex(fd, path)


def _index_beside(source):
    if not source.is_own or source.descriptor() is None:
        return None
    try:
        return _load_index(source, os.fsdecode(source.name) + _INDEX_SUFFIX)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        warnings.warn(f'{error}; reading without it', stacklevel=4)
        return None


# ---- readers -------------------------------------------------------------------------------------

class _StreamReader(ForwardReader):
    """By a stream decoder, from the beginning on."""

    def __init__(self, source, format, is_empty=False):  # pylint: disable=redefined-builtin
        super().__init__(source)
        self._format, self._is_nothing = format, is_empty
        self._begin()

    @property
    def name(self):
        return self._file.name

    def _begin(self):
        self._file.seek(0)
        self._stream = _wharf.Stream(self._format)
        self._is_over = self._is_nothing

    def _fill(self, view):
        while not self._is_over:
            n = self._stream.readinto(view)
            if n or self._stream.eof:
                return n
            self._stream.feed(self._file.read(BUFFER_NBYTES))
        return 0

    def _decode_whole(self):
        # What is bad is decoded again, for the bytes before the bad place.
        if self._format not in _WHOLE or self._is_over or not self._file.seekable():
            return None
        data = self._file.read_at(0, self._file.nbytes())
        try:
            made = _wharf.decompress(data, self._format)
        except _wharf.DataError:
            return None
        self._is_over = True
        return made

    def close(self):
        if not self.closed:
            self._file.close()
        super().close()


class _PartReader(io.RawIOBase):
    """By parts that can be decoded alone.

    A subclass has `_part(offset)`, which returns where the part that holds this byte of the output begins, and its
    bytes, or None at the end; and `_size()`.  It raises _Untrue where what it knows of the file is not so: then the file
    is read from its beginning, which says what is wrong with it, if anything is.
    """

    def __init__(self, source, format):  # pylint: disable=redefined-builtin
        super().__init__()
        self._source, self._format = source, format
        self._at = 0
        self._begin, self._data = 0, b''
        self._forward = None

    @property
    def name(self):
        return self._source.name

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self._at

    def close(self):
        if not self.closed:
            self._source.close()
        super().close()

    def seek(self, offset, whence=io.SEEK_SET):
        if whence == io.SEEK_CUR:
            offset += self._at
        elif whence == io.SEEK_END:
            offset += self._try(self._size, lambda: self._forward.seek(0, io.SEEK_END))
        elif whence != io.SEEK_SET:
            raise ValueError(f'whence is {whence}, which is none')
        if offset < 0:
            raise ValueError(f'there is no place {offset}')
        self._at = offset
        return offset

    def readinto(self, buffer):
        with memoryview(buffer) as given, given.cast('B') as view:
            n = self._try(lambda: self._read_part(view), lambda: self._read_forward(view))
        self._at += n
        return n

    def _try(self, by_parts, forward):
        if not self._forward:
            try:
                return by_parts()
            except _Untrue:
                self._forward = _StreamReader(self._source, self._format)
        return forward()

    def _read_forward(self, view):
        if self._forward.tell() != self._at:
            self._forward.seek(self._at)
        return self._forward.readinto(view) if self._forward.tell() == self._at else 0

    def _read_part(self, view):
        if not self._begin <= self._at < self._begin + len(self._data):
            part = self._part(self._at)
            if part is None:
                return 0
            self._begin, self._data = part
        data = memoryview(self._data)[self._at - self._begin:][:len(view)]
        view[:len(data)] = data
        return len(data)

    def _part(self, offset):
        raise NotImplementedError

    def _size(self):
        raise NotImplementedError


class _Untrue(Exception):
    """What is known of a file's parts does not hold."""


class _ContainerReader(_PartReader):
    """By the chunks of a wharf container."""

    def __init__(self, source):
        super().__init__(source, 'wharf')
        self._container = _wharf.Container(source.read_at, source.nbytes())
        self._next = -1  # where the output begins that the container gives next; -1: not known

    def _part(self, offset):
        if offset != self._next:
            self._next = -1
            self._container.seek(offset)
        part = self._container.next()
        self._next = part[0] + len(part[1]) if part else -1
        # The container's end is before it.
        return part if part and part[0] <= offset < self._next else None

    def _size(self):
        total = self._container.total()
        if total is not None:
            return total
        # Its end is damaged: what is before that is found by walking.
        offset = 0
        while part := self._part(offset):
            offset = part[0] + len(part[1])
        return offset


class _IndexReader(_PartReader):
    """By the spans of an index."""

    def __init__(self, source, format, index):  # pylint: disable=redefined-builtin
        super().__init__(source, format)
        self._index = index

    def _part(self, offset):
        if self._index.nbytes is not None and offset >= self._index.nbytes:
            return None
        try:
            begin, data = self._index.read(offset)
        except (_wharf.DataError, OverflowError):
            raise _Untrue from None
        if not begin <= offset < begin + len(data):
            raise _Untrue
        return begin, data

    def _size(self):
        if self._index.nbytes is None:
            raise _Untrue
        return self._index.nbytes


# ---- blocks --------------------------------------------------------------------------------------

class _Table:
    """Where blocks begin, in the file and in the output, as far as is known; the last place is the end's."""

    def __init__(self):
        self.in_at, self.out_at = [0], [0]

    def add(self, in_nbytes, out_nbytes):
        self.in_at.append(self.in_at[-1] + in_nbytes)
        self.out_at.append(self.out_at[-1] + out_nbytes)

    def grow(self):
        """Finds one more block.  Whether there was one."""
        return False

    def find(self, offset):
        """The number of the block that holds this byte of the output, or None."""
        while self.out_at[-1] <= offset:
            if not self.grow():
                return None
        low, high = 0, len(self.out_at) - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.out_at[middle] <= offset else (low, middle)
        return low


class _BgzfTable(_Table):
    """Blocks of a BGZF file, whose headers say how long they are and whose ends what they give."""

    def __init__(self, source):
        super().__init__()
        self._source = source

    def grow(self):
        at = self.in_at[-1]
        head = self._source.read_at(at, 64)
        if not head:
            return False
        nbytes = _wharf.bgzf_block(head)
        if nbytes < 0:
            nbytes = _wharf.bgzf_block(self._source.read_at(at, _HEAD_NBYTES))
        end = self._source.read_at(at + nbytes - 4, 4) if nbytes > 0 else b''
        if len(end) < 4:
            raise _Untrue
        self.add(nbytes, int.from_bytes(end, 'little'))
        if self.out_at[-1] - self.out_at[-2] > 1 << 16:
            raise _Untrue
        return True


def _zstd_table(source):
    """Of a file in zstd's seekable format; None if it is not."""
    nbytes = source.nbytes()
    footer = source.read_at(nbytes - 9, 9) if nbytes >= 17 else b''
    if len(footer) < 9 or footer[5:] != b'\xb1\xea\x92\x8f' or footer[4] & 0x7c:
        return None
    n_frames = int.from_bytes(footer[:4], 'little')
    entry = '<III' if footer[4] & 0x80 else '<II'
    at = nbytes - 9 - n_frames * struct.calcsize(entry) - 8
    header = source.read_at(at, 8) if at >= 0 else b''
    if header != struct.pack('<II', 0x184d2a5e, nbytes - at - 8):
        return None
    table = _Table()
    entries = source.read_at(at + 8, n_frames * struct.calcsize(entry))
    for in_nbytes, out_nbytes, *_ in struct.iter_unpack(entry, entries):
        if out_nbytes > _MAX_BLOCK_NBYTES:
            return None
        table.add(in_nbytes, out_nbytes)
    return table if table.in_at[-1] == at else None


class _BlockReader(_PartReader):
    """By blocks of a table: one where a place was sought, and several where reading goes on."""

    def __init__(self, source, codec, table):
        super().__init__(source, codec)
        self._table = table
        self._next = 0  # where the last part ended

    def _part(self, offset):
        first = self._table.find(offset)
        if first is None:
            return None
        last = first + 1
        while offset == self._next and self._table.out_at[last] - self._table.out_at[first] < _BATCH_NBYTES and (
                last + 1 < len(self._table.in_at) or self._table.grow()):
            last += 1
        data = b''.join(self._decode(first, last))
        begin = self._table.out_at[first]
        self._next = begin + len(data)
        return begin, data

    def _decode(self, first, last):
        in_at, out_at = self._table.in_at[first:last + 1], self._table.out_at[first:last + 1]
        data = memoryview(self._source.read_at(in_at[0], in_at[-1] - in_at[0]))
        blocks = [data[a - in_at[0]:b - in_at[0]] for a, b in zip(in_at, in_at[1:])]
        sizes = [b - a for a, b in zip(out_at, out_at[1:])]
        try:
            return _wharf.decompress_batch(blocks, self._format, sizes=sizes, exact_input=True, exact_output=True)
        except (_wharf.DataError, MemoryError):
            raise _Untrue from None

    def _size(self):
        while self._table.grow():
            pass
        return self._table.out_at[-1]
