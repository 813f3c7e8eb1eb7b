# SPDX-License-Identifier: Apache-2.0
"""Decompress chunks of data with wharf: by its daemon where there is one, else in this process.

    import wharf
    text = wharf.decompress(stream, 'gzip')
    parts = wharf.decompress_batch(chunks, 'zstd')

    with wharf.open('a.gz', 'rt') as file:
        n = sum(1 for line in file)

    with wharf.Client() as client:
        jobs = [client.submit(chunk, 'lz4', size=1 << 16) for chunk in chunks]
        parts = [job.result() for job in jobs]
"""
import atexit as _atexit
import importlib as _importlib
import os as _os

from . import _wharf
from ._wharf import (  # noqa: F401
    BadChecksumError, BadDataError, BadRequestError, CancelledError, Client, DataError, DeadlineError,
    DeviceFaultError, Error, GpuMemory, InternalError, Job, Memory, NoMemoryError, OutputShortError,
    OutputTooSmallError, QuotaError, UnsupportedError, __version__, codecs, decompress,
    decompress_batch)

_atexit.register(_wharf._end)
_os.register_at_fork(after_in_child=_wharf._forked)


# What takes a moment to load, and may not be needed: the name, and the module that has it.
_LATER = {'AsyncClient': 'aio', 'open': 'files', 'enable': 'integrations', 'gzip': 'gzip', 'zlib': 'zlib'}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'wharf' has no attribute '{name}'")
    module = _importlib.import_module(f'.{_LATER[name]}', __name__)
    return module if name == _LATER[name] else getattr(module, name)


def __dir__():
    return sorted({*globals(), *_LATER})
