# SPDX-License-Identifier: Apache-2.0
"""A codec pipeline for zarr 3 that hands all chunks of a read over at once; wharf.enable('zarr') makes it zarr's.

Where a chunk has one codec, which wharf has, and nothing but its bytes inside, the size is known before: wharf decodes
it to its place in the array that is read into, if its bytes lie there one after another, and else to memory that is
used again for the next ones.  Fresh memory for each chunk would take longer than decoding LZ4.
"""
import asyncio
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy
import zarr
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec
from zarr.codecs._v2 import V2Codec
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.common import concurrent_map
from zarr.core.dtype.common import HasEndianness
from zarr.registry import register_pipeline

from . import _wharf
from . import numcodecs as own
from .integrations import as_kind

_CODECS = {BloscCodec: own.Blosc, GzipCodec: own.GZip, ZstdCodec: own.Zstd}
_V2_CODECS = {kind: one for one in (own.Zlib, own.GZip, own.LZ4, own.Zstd, own.Blosc) for kind in (one, *one.__bases__[1:])}
# As many as one read hands over; more are read in several turns, so that memory stays bounded.
_BATCH_CHUNKS = 1024
# Of chunks that are copied to their places, as many as fit there are decoded by one call: for each core.
_SCRATCH_NBYTES = 4 << 20
_LARGE_NBYTES = 128 << 10


class CodecPipeline(BatchedCodecPipeline):
    """zarr's own pipeline, but that chunks of codecs that wharf has are decoded by one call of wharf's."""

    @classmethod
    def from_codecs(cls, codecs, *, batch_size=None):
        """As zarr's, with batches of a whole read."""
        return super().from_codecs(codecs, batch_size=batch_size or _BATCH_CHUNKS)

    async def decode_batch(self, chunk_bytes_and_specs):
        """Undoes the codecs that wharf has, from the last on, and leaves the others to zarr."""
        pairs = list(chunk_bytes_and_specs)
        codecs = list(self.bytes_bytes_codecs)
        while codecs and type(codecs[-1]) in _CODECS:
            codec = codecs.pop()
            pairs = await _undo(codec, _CODECS[type(codec)], pairs)
        rest = BatchedCodecPipeline.from_codecs([*self.array_array_codecs, self.array_bytes_codec, *codecs])
        return await rest.decode_batch(pairs)

    async def read_batch(self, batch_info, out, drop_axes=()):
        """Decodes chunks whose size is known at once, and leaves the others to decode_batch."""
        infos, codec = list(batch_info), self._only_codec()
        reads = [_Read(self.array_bytes_codec, i, info, out, drop_axes) for i, info in enumerate(infos)] if codec else []
        reads = [read for read in reads if not read.dtype.hasobject]
        getters = [(read.info[0], read.info[1].prototype) for read in reads]
        chunks = await concurrent_map(getters, lambda getter, prototype: getter.get(prototype),
                                      zarr.config.get('async.concurrency'))
        # Chunks that are not there have a fill value.
        found = [(read, chunk) for read, chunk in zip(reads, chunks) if chunk is not None]
        done = await asyncio.to_thread(_decode_to_places, found, codec) if found else ()
        rest = [info for i, info in enumerate(infos) if i not in done]
        if rest:
            await super().read_batch(rest, out, drop_axes)

    def _only_codec(self):
        """The class of wharf.numcodecs that undoes all that was done to an array's bytes, or None."""
        last, others = self.array_bytes_codec, self.bytes_bytes_codecs
        if self.array_array_codecs:
            return None
        if type(last) is BytesCodec and len(others) == 1:
            return _CODECS.get(type(others[0]))
        if type(last) is V2Codec and not others and not last.filters:
            return _V2_CODECS.get(type(last.compressor))
        return None


def _are_slices(selection):
    return isinstance(selection, tuple) and all(isinstance(part, slice) for part in selection)


class _Read:
    """Chunk i of a read: `dtype` is that of its bytes, `place` the bytes of `out` that they become, or None."""

    def __init__(self, array_bytes_codec, i, info, out, drop_axes):
        _, spec, chunk_selection, out_selection, _ = info
        self.i, self.info, self.out, self.drop_axes, self.place = i, info, out, drop_axes, None
        dtype, self.order = spec.dtype, spec.order
        if type(array_bytes_codec) is BytesCodec:
            self.order = 'C'
            if isinstance(dtype, HasEndianness):
                dtype = replace(dtype, endianness=array_bytes_codec.endian and array_bytes_codec.endian.value)
        self.dtype = dtype.to_native_dtype()
        self.nbytes = math.prod(spec.shape) * self.dtype.itemsize
        array = out.as_ndarray_like()
        if (type(array) is not numpy.ndarray or drop_axes or self.order != 'C' or not spec.shape
                or not _are_slices(chunk_selection) or not _are_slices(out_selection)
                or [part.indices(n) for part, n in zip(chunk_selection, spec.shape)] != [(0, n, 1) for n in spec.shape]):
            return
        part = array[out_selection]
        if part.shape == spec.shape and part.dtype == self.dtype and part.flags.c_contiguous and part.flags.writeable:
            self.place = part.reshape(-1).view('u1')

    def put(self, chunk):
        """Copies what is wanted of the chunk's bytes, as zarr does."""
        _, spec, chunk_selection, out_selection, _ = self.info
        array = chunk.view(self.dtype).reshape(spec.shape, order=self.order)
        part = spec.prototype.nd_buffer.from_ndarray_like(array)[chunk_selection]
        self.out[out_selection] = part.squeeze(axis=self.drop_axes) if self.drop_axes else part


def _decode_to_places(found, codec):
    """Decodes (read, chunk) each; the numbers of those that wharf supports."""
    fit = [(read, data) for read, chunk in found for data, size in [codec._split(chunk.as_numpy_array())]
           if read.nbytes and size in (None, read.nbytes)]
    done = _decode([(read, data, read.place) for read, data in fit if read.place is not None], codec)
    others = [(read, data) for read, data in fit if read.place is None]
    most = max((read.nbytes for read, _ in others), default=1)
    n_cores = len(os.sched_getaffinity(0))
    n = max(1, n_cores * _SCRATCH_NBYTES // most)
    scratch = numpy.empty((min(n, len(others)), most), 'u1')
    # Of small chunks threads would wait for the interpreter more than copy.
    with ThreadPoolExecutor(n_cores if most >= _LARGE_NBYTES else 1) as pool:
        for i in range(0, len(others), n):
            turn = [(read, data, row[:read.nbytes]) for (read, data), row in zip(others[i:i + n], scratch)]
            their = set(_decode(turn, codec))
            list(pool.map(lambda part: part[0] in their and part[0].put(part[2]), turn))
            done += their
    return {read.i for read in done}


def _decode(parts, codec):
    """Decodes (read, data, memory) each by one call; the reads that wharf supports."""
    answers = _wharf.decompress_batch([data for _, data, _ in parts], codec._codec, outs=[memory for *_, memory in parts],
                                      exact_output=True, errors='return') if parts else ()
    return [read for (read, *_), answer in zip(parts, answers) if _is_there(answer, codec, read.i)]


async def _undo(codec, wharfs, pairs):
    """One codec of all chunks; those that wharf does not support are left to zarr's, which has more."""
    there = [i for i, (chunk, _) in enumerate(pairs) if chunk is not None]
    datas = [pairs[i][0].as_numpy_array() for i in there]
    answers = await asyncio.to_thread(_wharf.decompress_batch, datas, wharfs._codec, errors='return')
    pairs = list(pairs)
    for i, answer in zip(there, answers):
        chunk, spec = pairs[i]
        if _is_there(answer, wharfs, i):
            pairs[i] = spec.prototype.buffer.from_bytes(answer), spec
        else:
            made, = await codec.decode([(chunk, spec)])
            pairs[i] = made, spec
    return pairs


def _is_there(answer, codec, i):
    """Whether chunk i was decoded.  False: wharf does not support it.  Errors are raised, as those of the codec."""
    if isinstance(answer, _wharf.UnsupportedError):
        return False
    if isinstance(answer, _wharf.DataError):
        answer.index = i
        raise as_kind(codec._error, answer)
    if isinstance(answer, Exception):
        raise answer
    return True


def enable():
    """Makes it the pipeline of arrays that are opened from now on."""
    register_pipeline(CodecPipeline)
    zarr.config.set({'codec_pipeline.path': f'{CodecPipeline.__module__}.{CodecPipeline.__qualname__}'})
