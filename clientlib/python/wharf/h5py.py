# SPDX-License-Identifier: Apache-2.0
"""Chunks of HDF5 datasets, read as they are stored and decoded by wharf all at once.

    import h5py
    from wharf.h5py import read
    with h5py.File('a.h5') as file:
        array = read(file['dataset'], numpy.s_[:100])

HDF5's library reads nothing but the stored bytes: the filters are undone here, those of the registered numbers 1 (deflate),
2 (shuffle), 3 (fletcher32), 32001 (Blosc), 32004 (LZ4), 32008 (bitshuffle), 32015 (zstd) and 32026 (Blosc 2).
"""
import itertools

import numpy

from . import _wharf
from .blosc2 import decode_frames
from .integrations import FileDataError, as_kind, bad_file_data

_DEFLATE, _SHUFFLE, _FLETCHER32, _BLOSC, _LZ4, _BITSHUFFLE, _ZSTD, _BLOSC2 = 1, 2, 3, 32001, 32004, 32008, 32015, 32026
_CODECS = {_DEFLATE: 'zlib', _BLOSC: 'blosc', _ZSTD: 'zstd'}
# wharf's parameter of bitshuffle's framing, by what HDF5's filter says is inside.
_BITSHUFFLED = {2: 256, 3: 512}


def read(dataset, selection=()):
    """The selected part of a dataset in chunks, as a NumPy array.

    dataset: h5py.Dataset.  selection: as in dataset[selection], of numbers and slices with step 1.

    Raises FileDataError, a wharf.DataError and OSError, for a chunk that is bad; NotImplementedError for another filter or
    another kind of selection, and for a dataset that is not in chunks.
    """
    ranges, shape = _ranges(dataset, selection)
    out = numpy.full([stop - start for start, stop in ranges], dataset.fillvalue, dataset.dtype)
    origins = list(itertools.product(*(range(start // n * n, stop, n) for (start, stop), n in zip(ranges, dataset.chunks))))
    there = [at for at in origins if dataset.id.get_chunk_info_by_coord(at).byte_offset is not None]
    for origin, data in zip(there, _decode(dataset, there)):
        chunk = numpy.frombuffer(data, dataset.dtype).reshape(dataset.chunks)
        pairs = [(max(start, at), min(stop, at + n), at, start)
                 for (start, stop), at, n in zip(ranges, origin, dataset.chunks)]
        out[tuple(slice(a - start, b - start) for a, b, _, start in pairs)] = \
            chunk[tuple(slice(a - at, b - at) for a, b, at, _ in pairs)]
    return out.reshape(shape)


def _ranges(dataset, selection):
    """(start, stop) of each dimension, and the answer's shape, in which numbers have no dimension."""
    if not dataset.chunks:
        raise NotImplementedError('the dataset is not in chunks')
    given = list(selection) if isinstance(selection, tuple) else [selection]
    if Ellipsis in given:
        at = given.index(Ellipsis)
        given[at:at + 1] = [slice(None)] * (dataset.ndim - len(given) + 1)
    given += [slice(None)] * (dataset.ndim - len(given))
    if len(given) > dataset.ndim:
        raise IndexError(f'the dataset has {dataset.ndim} dimensions')
    ranges, shape = [], []
    for one, n in zip(given, dataset.shape):
        if isinstance(one, slice):
            start, stop, step = one.indices(n)
            if step != 1:
                raise NotImplementedError('slices have step 1')
            ranges.append((start, max(start, stop)))
            shape.append(max(start, stop) - start)
        else:
            at = range(n)[one]
            ranges.append((at, at + 1))
    return ranges, shape


# ---- filters -------------------------------------------------------------------------------------

def _filters(dataset):
    """(number, values) of each, in the order in which they were applied."""
    properties = dataset.id.get_create_plist()
    return [(code, values) for code, _, values, _ in map(properties.get_filter, range(properties.get_nfilters()))]


def _decode(dataset, origins):
    """The bytes of chunks, all filters undone but those that a chunk's mask says were left out."""
    nbytes = dataset.dtype.itemsize
    for n in dataset.chunks:
        nbytes *= n
    masks, datas = [], []
    for origin in origins:
        mask, data = dataset.id.read_direct_chunk(origin)
        masks.append(mask)
        datas.append(data)
    for i, (code, values) in reversed(list(enumerate(_filters(dataset)))):
        used = [k for k, mask in enumerate(masks) if not mask >> i & 1]
        for k, data in zip(used, _undo(code, values, [datas[k] for k in used], dataset.dtype.itemsize, nbytes)):
            datas[k] = data
    for origin, data in zip(origins, datas):
        if len(data) != nbytes:
            raise bad_file_data(f'the chunk at {origin} has {len(data)} bytes in the place of {nbytes}', 'output_missing')
    return datas


def _undo(code, values, datas, item_nbytes, nbytes):
    if code in _CODECS:
        return _batch(datas, _CODECS[code], 0, nbytes)
    if code == _BLOSC2:
        return decode_frames(datas, nbytes + 64)
    if code == _SHUFFLE:
        return [_unshuffle(data, values[0] if values else item_nbytes) for data in datas]
    if code == _FLETCHER32:
        return [_verify(data) for data in datas]
    if code == _LZ4:
        return [_lz4(data, nbytes) for data in datas]
    if code == _BITSHUFFLE:
        size, inside = values[2] if len(values) > 2 else item_nbytes, values[4] if len(values) > 4 else 0
        if inside in _BITSHUFFLED:
            return _batch(datas, 'blosc', _BITSHUFFLED[inside] + size, nbytes)
        if inside == 0:
            return [_unbitshuffle(data, size, values[3] if len(values) > 3 else 0) for data in datas]
    raise NotImplementedError(f'filter {code} with {values} is not undone here')


def _batch(datas, codec, parameter, nbytes):
    # A checksum or another filter may stand between, which makes few bytes more.
    try:
        return _wharf.decompress_batch(datas, codec, parameter=parameter, sizes=nbytes + 64)
    except _wharf.DataError as error:
        raise as_kind(FileDataError, error) from None


def _unshuffle(data, size):
    n = len(data) // size
    whole = numpy.frombuffer(data, 'u1', n * size).reshape(size, n).T.tobytes()
    return whole + bytes(data[n * size:])


def _unbitshuffle(data, size, block):
    """Bits of `block` elements at a time; what is no multiple of eight elements stays."""
    block = block or max(8192 // size // 8 * 8, 128)
    parts, at = [], 0
    while (n := min(block, (len(data) - at) // size) // 8 * 8) > 0:
        bits = numpy.unpackbits(numpy.frombuffer(data, 'u1', n * size, at), bitorder='little').reshape(size * 8, n)
        parts.append(numpy.packbits(bits.T, bitorder='little').tobytes())
        at += n * size
    return b''.join(parts) + bytes(data[at:])


def _verify(data):
    """The data without its checksum: two sums of 16-bit words, as HDF5 makes them."""
    if len(data) < 4:
        raise bad_file_data('a chunk has no room for its checksum', 'input_truncated')
    body, stored = data[:-4], int.from_bytes(data[-4:], 'little')
    words = numpy.frombuffer(body + bytes(len(body) % 2), '>u2').astype('u8')
    weights = numpy.arange(len(words), 0, -1, dtype='u8') % 65535
    first, second = (int(total) and (int(total) - 1) % 65535 + 1 for total in (words.sum(), (words * weights).sum()))
    if second << 16 | first != stored:
        raise bad_file_data('Fletcher-32 of a chunk is wrong', 'job_checksum')
    return body


def _lz4(data, most):
    """HDF5's framing of LZ4: sizes of all and of a block, then blocks with their sizes, which are stored where they did not
    become smaller."""
    total, block = int.from_bytes(data[:8], 'big'), int.from_bytes(data[8:12], 'big')
    if len(data) < 12 or total > most + 64 or (total and not block):
        raise bad_file_data(f'the header of LZ4 says {total} bytes in blocks of {block}', 'none')
    blocks, sizes, at, left = [], [], 12, total
    while left:
        nbytes, out = int.from_bytes(data[at:at + 4], 'big'), min(left, block)
        if len(data) < at + 4 + nbytes or nbytes == 0:
            raise bad_file_data('a block of LZ4 is cut off', 'input_truncated')
        blocks.append((data[at + 4:at + 4 + nbytes], nbytes == out))
        sizes.append(out)
        at, left = at + 4 + nbytes, left - out
    packed = [(one, n) for (one, is_stored), n in zip(blocks, sizes) if not is_stored]
    try:
        made = iter(_wharf.decompress_batch([one for one, _ in packed], 'lz4', sizes=[n for _, n in packed], exact_output=True))
    except _wharf.DataError as error:
        raise as_kind(FileDataError, error) from None
    return b''.join(one if is_stored else next(made) for one, is_stored in blocks)
