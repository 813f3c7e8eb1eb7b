# SPDX-License-Identifier: Apache-2.0
"""wharf.enable, which makes other packages decode by wharf; and errors that are theirs as well as wharf's."""
import gzip as _gzip
import importlib
import importlib.util
import zlib as _zlib

from ._wharf import DataError

_PACKAGES = ('numcodecs', 'zarr', 'fsspec')


class ZlibDataError(DataError, _zlib.error):
    """Bad data, for who expects zlib.error."""


class GzipDataError(DataError, _gzip.BadGzipFile):
    """Bad data, for who expects gzip.BadGzipFile."""


class CodecDataError(DataError, RuntimeError):
    """Bad data, for who expects the RuntimeError of codecs in C."""


class FileDataError(DataError, OSError):
    """Bad data, for who expects an OSError."""


def as_kind(kind, error):
    """The error as another kind, one of the classes here."""
    made = kind(str(error))
    for name in 'result', 'reason', 'bit', 'index':
        setattr(made, name, getattr(error, name))
    return made


def bad_file_data(text, reason):
    """A FileDataError of what was found here."""
    error = FileDataError(f'bad data: {text}')
    error.result, error.reason, error.bit, error.index = 'bad_data', reason, 0, None
    return error


def enable(*packages):
    """Makes packages decode by wharf from now on, in this process: 'numcodecs', 'zarr', 'fsspec'; none named is all of
    these that are installed.

    numcodecs: its registered codecs zlib, gzip, lz4, zstd and blosc decode by wharf.  They encode as before, and the
    metadata that they store stays the same.  zarr 3: arrays that are opened from now on hand a read's chunks over at
    once.  fsspec: compression='gzip', 'zstd', 'lz4' and 'snappy' read by wharf.open, and 'wharf' is added.

    Returns the names of what was enabled.  Raises ImportError where a package that is named is not installed, and
    ValueError where wharf has nothing for it.  Bad data raises a DataError that is also the error of the codec's own
    package: zlib.error, gzip.BadGzipFile or RuntimeError.
    """
    for name in packages:
        if name not in _PACKAGES:
            raise ValueError(f'{name} is none of {", ".join(_PACKAGES)}')
    names = packages or [name for name in _PACKAGES if importlib.util.find_spec(name)]
    for name in names:
        importlib.import_module(f'.{name}', __package__).enable()
    return tuple(names)
