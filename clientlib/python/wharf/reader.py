# SPDX-License-Identifier: Apache-2.0
"""Readers of compressed files that go forward: what gzip and open have in common."""
import io

# What is read of a file at once, and what is decoded ahead.
BUFFER_NBYTES = 128 << 10


class ForwardReader(io.RawIOBase):
    """A decoded file, from its beginning on.  Going back begins anew.

    A subclass has `_begin()`, which is called at the file's beginning, and `_fill(view)`, which returns how many bytes
    it wrote, 0 at the end.
    """

    def __init__(self, file):
        super().__init__()
        self._file = file
        self._at = 0
        self._nbytes = None  # of all output, when it is known

    def readable(self):
        return True

    def seekable(self):
        return self._file.seekable()

    def tell(self):
        return self._at

    def readinto(self, buffer):
        with memoryview(buffer) as given, given.cast('B') as view:
            n = self._fill(view) if len(view) else 0
            if n == 0 and len(view):
                self._nbytes = self._at
        self._at += n
        return n

    def readall(self):
        """All that is left: of a file from its beginning in one piece, which needs no copies."""
        if self._at == 0:
            made = self._decode_whole()
            if made is not None:
                self._at = self._nbytes = len(made)
                return made
        return super().readall()

    def _decode_whole(self):
        """What all of the file gives, or None with nothing changed."""
        return None

    def seek(self, offset, whence=io.SEEK_SET):
        if whence == io.SEEK_CUR:
            offset += self._at
        elif whence == io.SEEK_END:
            offset += self._size()
        elif whence != io.SEEK_SET:
            raise ValueError(f'whence is {whence}, which is none')
        if offset < 0:
            raise ValueError(f'there is no place {offset}')
        if offset < self._at:
            self._rewind()
        self._skip(offset - self._at)
        return self._at

    def _rewind(self):
        self._file.seek(0)
        self._at = 0
        self._begin()

    def _skip(self, nbytes):
        scratch = bytearray(min(BUFFER_NBYTES, max(nbytes, 0)))
        with memoryview(scratch) as view:
            while nbytes > 0:
                n = self.readinto(view[:nbytes])
                if n == 0:
                    return
                nbytes -= n

    def _size(self):
        while self._nbytes is None:
            self._skip(1 << 30)
        return self._nbytes

    def _begin(self):
        raise NotImplementedError

    def _fill(self, view):
        raise NotImplementedError
