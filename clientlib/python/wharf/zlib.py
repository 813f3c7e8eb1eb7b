# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the standard module zlib, which decompresses by wharf.

    from wharf import zlib
    text = zlib.decompress(data)

What is good gives the same bytes as the standard module, and what is bad the same zlib.error, whose text says in
brackets what wharf found and at which bit.  decompress and decompressobj are wharf's; compression, checksums and
streams with a dictionary (zdict) are the standard module's own.
"""
import operator as _operator
import sys as _sys
import zlib as _zlib
from zlib import *  # noqa: F401,F403  pylint: disable=wildcard-import,redefined-builtin,unused-wildcard-import

from . import _wharf

_CODECS = {15: 'zlib', -15: 'deflate'}


def __getattr__(name):
    return getattr(_zlib, name)


def decompress(data, /, wbits=_zlib.MAX_WBITS, bufsize=_zlib.DEF_BUF_SIZE):
    """The bytes that one stream gives; what follows it is not looked at.

    data: bytes-like.  wbits: -15 raw Deflate, 15 zlib, 31 gzip's first member, 47 zlib or gzip, and zlib's other values.
    bufsize: taken, and of no use: room is made as it is needed.  Raises zlib.error where the data is bad.
    """
    bufsize = _operator.index(bufsize)
    if bufsize < 0:
        raise ValueError('bufsize must be non-negative')
    if bufsize > _sys.maxsize:
        raise OverflowError('bufsize: int too large')
    found = ''
    codec = _CODECS.get(_operator.index(wbits))
    if codec:
        try:
            return _wharf.decompress(data, codec)
        except _wharf.DataError as reason:
            found = f' (wharf: {reason})'
    return _decompress_as_zlib(data, wbits, found)


def _decompress_as_zlib(data, wbits, found):
    """Streams of other kinds; and bad ones, for zlib's own error."""
    inflater = _wharf.inflater(wbits)
    try:
        made = inflater.decompress(data)
    except _zlib.error as reason:
        if not found:
            raise
        raise _zlib.error(str(reason).partition(' (wharf')[0] + found) from None
    if not inflater.eof:
        raise _zlib.error('Error -5 while decompressing data: incomplete or truncated stream' + found)
    return made


def decompressobj(wbits=_zlib.MAX_WBITS, zdict=b''):
    """An object that decompresses a stream piece by piece, as zlib's; with zdict it is zlib's."""
    if zdict:
        return _zlib.decompressobj(wbits, zdict)
    memoryview(zdict)
    return _wharf.inflater(wbits)
