# SPDX-License-Identifier: Apache-2.0
"""Compressed files that are written: what wharf.open gives in modes w, x and a.

A file is there when it is complete, or not at all.  It is written without a name, in the folder where it will stand, and
gets its name when it is closed; until then an older file of that name stays as it was.  What cannot be done so, objects
and pipes, ends with the beginning of a part that has no end where it was given up, so that readers find it bad.
"""
import errno
import fcntl
import io
import os
import secrets
import stat
import threading
import warnings

from . import _wharf

# What a file's name ends in.
_SUFFIXES = {'.whr': 'wharf', '.gz': 'gzip', '.tgz': 'gzip', '.taz': 'gzip', '.bgz': 'bgzf', '.bgzf': 'bgzf',
             '.zst': 'zstd', '.tzst': 'zstd'}
# Whole files of these stand behind each other in one file; what others have at their end counts for all of it.
_APPENDED = ('gzip', 'wharf')
# The first bytes of each, which alone are a file that is cut off.
_BEGINNINGS = {'gzip': b'\x1f\x8b\x08\x00', 'bgzf': b'\x1f\x8b\x08\x04', 'zstd': b'\x28\xb5\x2f\xfd',
               'wharf': b'\x89WHR\r\n\x1a\n'}
_HEAD_NBYTES = 66 << 10
# So much is handed over at once: memory for what is made of it stays bounded.
_STEP_NBYTES = 16 << 20
_NO_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)


def open_writer(file, mode, format, options):  # pylint: disable=redefined-builtin
    """A Writer.  mode: 'w', 'x' or 'a'.  options: Packer's."""
    is_path = isinstance(file, (str, bytes, os.PathLike))
    name = file if is_path else getattr(file, 'name', None)
    if format is None:
        format = _format_of(name)
    packer = _wharf.Packer(format, **options)
    if mode == 'a' and format not in _APPENDED:
        raise io.UnsupportedOperation(f'nothing is appended to {format}, whose end is of the whole file: gzip and wharf take more')
    if not is_path:
        if isinstance(file, io.TextIOBase) or not hasattr(file, 'write'):
            raise TypeError('file is a path, or an object that is opened for writing bytes')
        return Writer(_Stream(file, format), packer, name)
    return Writer(_target(os.fsdecode(file), mode, format), packer, name)


def _format_of(name):
    if isinstance(name, (str, bytes, os.PathLike)):
        suffix = os.path.splitext(os.fsdecode(name))[1].lower()
        if suffix in _SUFFIXES:
            return _SUFFIXES[suffix]
    raise ValueError(f"the name {name!r} does not say which format to write: format='gzip', 'bgzf', 'zstd' or 'wharf' does")


def _target(path, mode, format):  # pylint: disable=redefined-builtin
    if path.endswith(os.sep):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if mode == 'x' and os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
        # What another process puts there meanwhile is replaced only by mode w.
        return _NewFile(path, mode == 'w')
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if mode == 'x':
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    if not stat.S_ISREG(status.st_mode):
        return _Stream(open(path, 'wb', buffering=0), format, is_own=True)
    return _NewFile(path, True, status) if mode == 'w' else _Appended(path, format)


# ---- where it goes -------------------------------------------------------------------------------

def _write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


class _NewFile:
    """A file that gets its name when it is complete."""

    def __init__(self, path, may_replace, status=None):
        self._path = os.path.realpath(path) if may_replace else os.path.abspath(path)
        self._may_replace, self._temporary = may_replace, None
        self._folder = os.path.dirname(self._path)
        self._fd = self._open()
        if status:
            self._take_after(status)

    def _open(self):
        try:
            fd = os.open(self._folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
        else:
            if os.path.exists(f'/proc/self/fd/{fd}'):
                return fd
            os.close(fd)
        temporary = self._make_name()
        try:
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from None
        self._temporary = temporary
        return fd

    def _make_name(self):
        name = os.fsdecode(os.fsencode(os.path.basename(self._path))[:200])
        return os.path.join(self._folder, f'.{name}.{secrets.token_hex(4)}')

    def _take_after(self, status):
        """Permissions, and owners as far as this user may."""
        mode = status.st_mode & 0o777
        try:
            os.fchown(self._fd, -1, status.st_gid)
        except OSError:
            mode &= ~0o070
        os.fchmod(self._fd, mode)
        try:
            os.fchown(self._fd, status.st_uid, -1)
        except OSError:
            pass

    def write(self, data):
        _write_all(self._fd, data)

    def commit(self):
        # Where network file systems tell that the disk is full.
        os.close(os.dup(self._fd))
        if not self._temporary:
            try:
                self._link(self._path)
            except FileExistsError:
                if not self._may_replace:
                    raise
                temporary = self._make_name()
                self._link(temporary)
                self._temporary = temporary
        if self._temporary:
            self._rename()
        self._close()

    def _link(self, path):
        # With a folder's descriptor, which counts for nothing here, os.link follows the first name.
        os.link(f'/proc/self/fd/{self._fd}', path, src_dir_fd=self._fd, follow_symlinks=True)

    def _rename(self):
        if not self._may_replace:
            try:
                os.link(self._temporary, self._path)
            except FileExistsError:
                raise
            except OSError:
                # A file system without such links.
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            else:
                os.unlink(self._temporary)
                self._temporary = None
                return
        os.replace(self._temporary, self._path)
        self._temporary = None

    def discard(self, is_child):
        if self._temporary and not is_child:
            try:
                os.unlink(self._temporary)
            except OSError:
                pass
        self._close()

    def _close(self):
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _Appended:
    """A file that grows.  What is added stands there only as a whole; meanwhile readers find its end cut off."""

    def __init__(self, path, format):  # pylint: disable=redefined-builtin
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._lock()
            found = _wharf.detect(os.pread(self._fd, _HEAD_NBYTES, 0))[0]
            if found not in ('empty', format):
                raise ValueError(f'{path} is of the format {found}: {format} is not appended to it')
            self._size = os.lseek(self._fd, 0, os.SEEK_END)
        except BaseException:
            os.close(self._fd)
            raise

    def _lock(self):
        """Against others that append by wharf."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            pass  # a file system without locks

    def write(self, data):
        _write_all(self._fd, data)

    def commit(self):
        # Children that were forked meanwhile have the lock too, which ends for all by this.
        try:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        except OSError:
            pass  # as above
        self._close()

    def discard(self, is_child):
        if self._fd < 0:
            return
        if is_child:
            self._close()
            return
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            pass
        self.commit()

    def _close(self):
        fd, self._fd = self._fd, -1
        os.close(fd)


class _Stream:
    """An object that takes bytes, or a pipe or device."""

    def __init__(self, file, format, is_own=False):  # pylint: disable=redefined-builtin
        self._file, self._format, self._is_own = file, format, is_own
        self._is_begun = False

    def write(self, data):
        self._is_begun = True
        is_raw = isinstance(self._file, io.RawIOBase)
        view = memoryview(data)
        while view:
            n = self._file.write(view if is_raw else data)
            # Others may be raw inside, as those of tempfile are: one that says nothing took all.
            if not is_raw and not (isinstance(n, int) and 0 < n < len(view)):
                return
            if n is None:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            if not 0 < n <= len(view):
                raise ValueError(f'write said that it took {n} of {len(view)} bytes')
            view = view[n:]
            data = bytes(view)

    def commit(self):
        flush = getattr(self._file, 'flush', None)
        if flush:
            flush()
        if self._is_own:
            self._file.close()

    def discard(self, is_child):
        # In the middle of gzip and wharf there is nothing that could be taken for an end.
        try:
            if not is_child and not (self._is_begun and self._format in _APPENDED):
                self.write(_BEGINNINGS[self._format])
        except Exception:  # pylint: disable=broad-exception-caught
            pass  # nobody can be told, and it may be the reason why it is given up
        if self._is_own:
            self._file.close()


# ---- what is written to --------------------------------------------------------------------------

class Writer(io.BufferedIOBase):
    """A compressed file that is written: see wharf.open.

    `close` completes it.  A `with` block that ends by an exception, `discard`, and a Writer that nobody closes, leave what
    was there before.  Any thread may write; a forked child cannot.
    """

    def __init__(self, target, packer, name):
        super().__init__()
        self._target, self._packer = target, packer
        self.name = name
        self._at = 0
        self._seems_seekable = False
        self._lock = threading.RLock()
        self._is_busy = False
        self._errno = 0  # of a write that failed: the file cannot become complete
        self._pid = os.getpid()

    def writable(self):
        """True."""
        return True

    def seekable(self):
        """False."""
        return self._seems_seekable

    def tell(self):
        """Bytes that were written, uncompressed."""
        self._check()
        return self._at

    def flush(self):
        """Nothing: what is gathered is packed when there is enough of it, or by `close`."""
        self._check()

    def _check(self):
        if self.closed:
            raise ValueError('the file is closed')

    def _begin(self):
        self._check()
        if self._is_busy:
            raise RuntimeError('the file is written to by what it writes to')
        if self._errno:
            raise OSError(self._errno, 'the file is not complete, since an earlier write failed', self.name)

    def _is_child(self):
        return os.getpid() != self._pid

    def _put(self, make, *arguments):
        """Whatever happens between the two, what is there is then not what was written."""
        self._begin()
        self._is_busy = True
        try:
            made = make(*arguments)
            if made:
                self._target.write(made)
        except BaseException as error:
            self._errno = getattr(error, 'errno', None) or errno.EIO
            raise
        finally:
            self._is_busy = False

    def write(self, data):
        """Takes all of the bytes, and returns how many.  data: bytes-like, contiguous.  Raises OSError."""
        if type(data) is not bytes:  # one made of it may tell another length
            data = memoryview(data)
            if not data.c_contiguous:
                raise BufferError('the data is not contiguous')
            if data.nbytes == 0:
                self._check()
                return 0
            data = data.cast('B')
        if self._is_child():
            raise ValueError('the file belongs to the parent process')
        with self._lock:
            if len(data) <= _STEP_NBYTES:
                self._put(self._packer.pack, data)
            else:
                view = memoryview(data)
                for at in range(0, len(view), _STEP_NBYTES):
                    self._put(self._packer.pack, view[at:at + _STEP_NBYTES])
            self._at += len(data)
            return len(data)

    def close(self):
        """Completes the file and gives it its name.  Raises OSError, and then what was there before is there; once is
        enough, and more do nothing."""
        if self._is_child():
            self._give_up(True)
            return
        with self._lock:
            if self.closed:
                return
            try:
                self._put(self._packer.finish)
                self._target.commit()
            except BaseException:
                self._target.discard(False)
                raise
            finally:
                super().close()

    def discard(self):
        """Gives the file up.  Never fails; after `close` it does nothing."""
        if self._is_child():
            self._give_up(True)
            return
        with self._lock:
            self._give_up(False)

    def _give_up(self, is_child):
        """A child lets go of its copy: the lock there may be held for ever."""
        if not self.closed:
            try:
                self._target.discard(is_child)
            finally:
                super().close()

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self):
        if hasattr(self, '_pid') and not self.closed:
            try:
                _warn(self)
            finally:
                self.discard()


class TextWriter(io.TextIOWrapper):
    """A Writer, which is `buffer`, for text."""

    def __init__(self, buffer, *arguments):
        # Without it the standard class leaves out the mark that UTF-16 begins with.
        buffer._seems_seekable = True
        super().__init__(buffer, *arguments)
        buffer._seems_seekable = False

    def close(self):
        """Completes the file, but where the last of the text does not reach it: then it is given up."""
        if not self.closed:
            try:
                self.flush()
            except BaseException:
                self.buffer.discard()
                raise
        super().close()

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.buffer.discard()
        self.close()

    def __del__(self):
        try:
            is_open = not self.closed
        except ValueError:
            return  # detached, or never made
        if is_open:
            try:
                _warn(self)
            finally:
                self.buffer.discard()


def _warn(writer):
    warnings.warn(f'{writer!r} was not closed: the file is not written', ResourceWarning, stacklevel=2, source=writer)
