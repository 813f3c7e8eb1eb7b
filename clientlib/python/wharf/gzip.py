# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the standard module gzip, which reads by wharf.

    from wharf import gzip
    with gzip.open('a.gz', 'rt') as file:
        for line in file: ...

Reading and decompress are wharf's; writing is the standard module's own.  Errors are the standard ones: BadGzipFile where
a header or a checksum is bad, zlib.error where the data between is, EOFError where the file is cut off.  Checksums of
headers are verified, which the standard module does not do.
"""
import gzip as _gzip
import io
import os
import zlib as _zlib
from gzip import BadGzipFile, compress  # noqa: F401

from . import _wharf
from .reader import BUFFER_NBYTES, ForwardReader

__all__ = ['BadGzipFile', 'GzipFile', 'open', 'compress', 'decompress']

_GZIP_WBITS = 31
# Of what zlib calls bad, what is gzip's.
_OF_GZIP = ('incorrect header check', 'unknown compression method', 'unknown header flags set', 'header crc mismatch',
            'incorrect data check', 'incorrect length check')
_HEADER_NBYTES = 10
_CUT_OFF = 'Compressed file ended before the end-of-stream marker was reached'


def __getattr__(name):
    return getattr(_gzip, name)


class _Reader(ForwardReader):
    """A file of gzip members, with zeros behind any of them."""

    def __init__(self, file):
        super().__init__(file)
        self.mtime = None
        self._begin()

    def _begin(self):
        self._inflater = _wharf.inflater(_GZIP_WBITS)
        self._rest = b''
        self._is_inside = self._had_member = False

    def _fill(self, view):
        while self._is_inside or self._begin_member():
            n = self._inflate(view)
            if n:
                return n
            if self._inflater.eof:
                self._rest = self._inflater.take_rest()
                self._is_inside = False
                continue
            data = self._file.read(BUFFER_NBYTES)
            if not data:
                raise EOFError(_CUT_OFF)
            self._inflater.feed(data)
        return 0

    def _decode_whole(self):
        if self._had_member:
            return None
        data = self._rest + self._file.read()
        try:
            made = _wharf.decompress(data, 'gzip', exact_input=True)
        except _wharf.DataError:
            # Zeros are behind it, or it is bad: as it comes.
            self._rest = data
            return None
        self.mtime = int.from_bytes(data[4:8], 'little')
        self._had_member = True
        return made

    def _inflate(self, view):
        try:
            return self._inflater.readinto(view)
        except _zlib.error as error:
            text = str(error).partition(': ')[2]
            if text.startswith(_OF_GZIP):
                raise BadGzipFile(text) from None
            raise

    def _begin_member(self):
        """Whether there is one.  Its header is looked at for the time, and to say what else it is."""
        head = self._rest.lstrip(b'\0') if self._had_member else self._rest
        while len(head) < _HEADER_NBYTES:
            data = self._file.read(BUFFER_NBYTES)
            if not data:
                break
            head += data
            if self._had_member:
                head = head.lstrip(b'\0')
        if not head:
            return False
        if head[:2] != b'\x1f\x8b':
            raise BadGzipFile(f'Not a gzipped file ({head[:2]!r})')
        if len(head) < _HEADER_NBYTES:
            raise EOFError(_CUT_OFF)
        self.mtime = int.from_bytes(head[4:8], 'little')
        self._inflater.restart()
        self._inflater.feed(head)
        self._is_inside = self._had_member = True
        return True


class GzipFile(_gzip.GzipFile):
    """gzip.GzipFile, which reads by wharf and writes by itself."""

    def __init__(self, filename=None, mode=None, compresslevel=9, fileobj=None, mtime=None):
        super().__init__(filename, mode, compresslevel, fileobj, mtime)
        self._reader = None
        if self.readable():
            self._reader = _Reader(self.fileobj)
            # The standard class hands all its reading to this.
            self._buffer = io.BufferedReader(self._reader)

    def __iter__(self):
        """Lines, by a reader in C where the standard class makes a call in Python for each."""
        self._check_not_closed()
        return iter(self._buffer) if self._reader else super().__iter__()

    @property
    def mtime(self):
        """Seconds of the last member whose header was read, or None."""
        return self._reader.mtime if self._reader else None


def open(filename, mode='rb', compresslevel=9, encoding=None, errors=None, newline=None):  # pylint: disable=redefined-builtin
    """As gzip.open: a path or a file object; 'r', 'w', 'x' or 'a' with 'b' or 't'."""
    is_text = 't' in mode
    if is_text and 'b' in mode:
        raise ValueError(f'Invalid mode: {mode!r}')
    if not is_text:
        for name, value in ('encoding', encoding), ('errors', errors), ('newline', newline):
            if value is not None:
                raise ValueError(f"Argument '{name}' not supported in binary mode")
    mode = mode.replace('t', '')
    if isinstance(filename, (str, bytes, os.PathLike)):
        file = GzipFile(filename, mode, compresslevel)
    elif hasattr(filename, 'read') or hasattr(filename, 'write'):
        file = GzipFile(None, mode, compresslevel, filename)
    else:
        raise TypeError('filename must be a str or bytes object, or a file')
    return io.TextIOWrapper(file, io.text_encoding(encoding), errors, newline) if is_text else file


def decompress(data):
    """The bytes of all members of `data`, bytes-like."""
    try:
        if len(data):
            return _wharf.decompress(data, 'gzip', exact_input=True)
    except _wharf.DataError:
        pass
    # Zeros behind it, or the standard error.
    with io.BytesIO(data) as file, GzipFile(fileobj=file) as reader:
        return reader.read()
