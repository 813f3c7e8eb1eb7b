# SPDX-License-Identifier: Apache-2.0
"""Compressions of fsspec that read by wharf.open; wharf.enable('fsspec') registers them."""
import fsspec.compression

from .files import open as _open

# Names of fsspec, with the endings of files and wharf's name of the format; 'gzip' is found out, since it may be BGZF.
_COMPRESSIONS = {'gzip': ('gz', None), 'zstd': ('zst', 'zstd'), 'lz4': ('lz4', 'lz4'), 'snappy': ('snappy', 'snappy'),
                 'wharf': ('whr', 'wharf')}


class _Compression:
    """A callback of fsspec: reads by wharf, and writes as was registered before, or by wharf what nobody else can."""

    def __init__(self, format, before):  # pylint: disable=redefined-builtin
        self._format, self._before = format, before

    def __call__(self, file, mode='rb', **options):
        if 'r' in mode:
            return _open(file, format=self._format)
        if self._before is None:
            return _open(file, mode.replace('t', ''), format=self._format, **options)
        return self._before(file, mode=mode, **options)


def enable():
    """Registers them; once is enough."""
    for name, (ending, format) in _COMPRESSIONS.items():  # pylint: disable=redefined-builtin
        before = fsspec.compression.compr.get(name)
        if not isinstance(before, _Compression):
            fsspec.compression.register_compression(name, _Compression(format, before), ending, force=True)
