# SPDX-License-Identifier: Apache-2.0
"""A codec pipeline for zarr 3 that hands all chunks of a read over at once; wharf.enable('zarr') makes it zarr's."""
import asyncio

import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline

from . import _wharf
from .integrations import CodecDataError, GzipDataError, as_kind

_CODECS = {BloscCodec: ('blosc', CodecDataError), GzipCodec: ('gzip', GzipDataError), ZstdCodec: ('zstd', CodecDataError)}
# As many as one read hands over; more are read in several turns, so that memory stays bounded.
_BATCH_CHUNKS = 1024


class CodecPipeline(BatchedCodecPipeline):
    """zarr's own pipeline, but that gzip, zstd and blosc chunks are decoded by one call of wharf's."""

    @classmethod
    def from_codecs(cls, codecs, *, batch_size=None):
        """As zarr's, with batches of a whole read."""
        return super().from_codecs(codecs, batch_size=batch_size or _BATCH_CHUNKS)

    async def decode_batch(self, chunk_bytes_and_specs):
        """Undoes the codecs that wharf has, from the last on, and leaves the others to zarr."""
        pairs = list(chunk_bytes_and_specs)
        codecs = list(self.bytes_bytes_codecs)
        while codecs and type(codecs[-1]) in _CODECS:
            pairs = await asyncio.to_thread(_decode, pairs, *_CODECS[type(codecs.pop())])
        rest = BatchedCodecPipeline.from_codecs([*self.array_array_codecs, self.array_bytes_codec, *codecs])
        return await rest.decode_batch(pairs)


def _decode(pairs, codec, kind):
    """Chunks that are not there are None and stay so."""
    there = [i for i, (chunk, _) in enumerate(pairs) if chunk is not None]
    datas = [pairs[i][0].to_bytes() for i in there]
    made = _wharf.decompress_batch(datas, codec, errors='return')
    pairs = list(pairs)
    for i, one in zip(there, made):
        if isinstance(one, _wharf.DataError):
            raise as_kind(kind, one)
        if isinstance(one, Exception):
            raise one
        pairs[i] = (pairs[i][1].prototype.buffer.from_bytes(one), pairs[i][1])
    return pairs


def enable():
    """Makes it the pipeline of arrays that are opened from now on."""
    register_pipeline(CodecPipeline)
    zarr.config.set({'codec_pipeline.path': f'{CodecPipeline.__module__}.{CodecPipeline.__qualname__}'})
