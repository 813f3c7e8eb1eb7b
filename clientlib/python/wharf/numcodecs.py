# SPDX-License-Identifier: Apache-2.0
"""Codecs of numcodecs that decode by wharf and encode as numcodecs does; wharf.enable('numcodecs') registers them."""
import numcodecs.blosc
import numcodecs.gzip
import numcodecs.lz4
import numcodecs.registry
import numcodecs.zlib
import numcodecs.zstd
from numcodecs.compat import ensure_bytes, ensure_contiguous_ndarray

from . import _wharf
from .integrations import CodecDataError, GzipDataError, ZlibDataError, as_kind

# LZ4 makes at most 255 bytes of one.
_LZ4_RATIO = 255


class _Decodes:
    """What the classes have in common, before numcodecs' own.  `_codec` is wharf's, `_error` what bad data raises."""

    def decode(self, buf, out=None):
        """The chunk's bytes, or `out` with them in it."""
        data = memoryview(ensure_contiguous_ndarray(buf)).cast('B')
        try:
            data, size = self._split(data)
            if out is None:
                return _wharf.decompress(data, self._codec, size=size, exact_output=size is not None)
            with memoryview(ensure_contiguous_ndarray(out)).cast('B') as view:
                _wharf.decompress(data, self._codec, out=view, exact_output=True)
            return out
        except _wharf.UnsupportedError:
            return super().decode(ensure_bytes(buf), out)
        except _wharf.DataError as error:
            raise as_kind(self._error, error) from None

    @staticmethod
    def _split(data):
        """The stream, and its output's size where that stands before it."""
        return data, None


class Zlib(_Decodes, numcodecs.zlib.Zlib):
    """numcodecs.Zlib, which decodes by wharf."""

    _codec, _error = 'zlib', ZlibDataError


class GZip(_Decodes, numcodecs.gzip.GZip):
    """numcodecs.GZip, which decodes by wharf."""

    _codec, _error = 'gzip', GzipDataError


class Zstd(_Decodes, numcodecs.zstd.Zstd):
    """numcodecs.Zstd, which decodes by wharf."""

    _codec, _error = 'zstd', CodecDataError


class Blosc(_Decodes, numcodecs.blosc.Blosc):
    """numcodecs.Blosc, which decodes by wharf."""

    _codec, _error = 'blosc', CodecDataError


class LZ4(_Decodes, numcodecs.lz4.LZ4):
    """numcodecs.LZ4, which decodes by wharf: a block with its output's size in four bytes before it."""

    _codec, _error = 'lz4', CodecDataError

    @staticmethod
    def _split(data):
        size = int.from_bytes(data[:4], 'little')
        if len(data) < 5 or not 0 < size <= _LZ4_RATIO * len(data):
            error = CodecDataError(f'bad data: {len(data)} bytes of LZ4 do not give {size}, at bit 0')
            error.result, error.reason, error.bit, error.index = 'bad_data', 'none', 0, None
            raise error
        return data[4:], size


def enable():
    """Registers the classes in the places of numcodecs' own."""
    for codec in Zlib, GZip, Zstd, Blosc, LZ4:
        numcodecs.registry.register_codec(codec)
