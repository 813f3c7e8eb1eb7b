#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""packages.py [--build FOLDER] [PATTERN]: Python packages that decode by wharf: numcodecs, zarr, fsspec, h5py.

Runs itself in the virtual environment build/callers-python, made of tests/callers/python-packages.  Every answer is
compared with the package's own.
"""
import gzip
import io
import os
import subprocess
import sys
import tempfile
import warnings
import zlib

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
ENVIRONMENT = os.path.join(TOP, 'build', 'callers-python')
PACKAGES = os.path.join(TOP, 'tests', 'callers', 'python-packages')
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import module_tests  # noqa: E402  pylint: disable=wrong-import-position
from module_tests import raises  # noqa: E402  pylint: disable=wrong-import-position

SIZES = (1, 7, 100, 1000, 65536, 300001)
numcodecs = numpy = wharf = None


def make_environment():
    """Once, and again when the list of packages is another."""
    mark = os.path.join(ENVIRONMENT, 'packages')
    with open(PACKAGES, encoding='ascii') as file:
        wanted = file.read()
    if os.path.exists(mark):
        with open(mark, encoding='ascii') as file:
            if file.read() == wanted:
                return
    subprocess.run([sys.executable, '-m', 'venv', '--clear', ENVIRONMENT], check=True)
    subprocess.run([f'{ENVIRONMENT}/bin/pip', 'install', '-q', '-r', PACKAGES], check=True)
    with open(mark, 'w', encoding='ascii') as file:
        file.write(wanted)


def numbers(n, dtype='<i4', seed=1):
    chance = numpy.random.default_rng(seed)
    return numpy.cumsum(chance.integers(-3, 9, n)).astype(dtype)


# ---- numcodecs -----------------------------------------------------------------------------------

def codecs():
    """numcodecs' own, by the classes that encode."""
    yield numcodecs.zlib.Zlib(level=6)
    yield numcodecs.gzip.GZip(level=6)
    yield numcodecs.lz4.LZ4()
    yield numcodecs.zstd.Zstd(level=3)
    for name in 'blosclz', 'lz4', 'lz4hc', 'zlib', 'zstd':
        for shuffle in 0, 1, 2:
            yield numcodecs.blosc.Blosc(name, clevel=5, shuffle=shuffle)


def test_numcodecs_chunks_are_what_they_were():
    for own in codecs():
        codec = numcodecs.get_codec(own.get_config())
        assert type(codec).__module__ == 'wharf.numcodecs' and isinstance(codec, type(own))
        assert codec.get_config() == own.get_config() and codec == own
        for n in SIZES:
            data = numbers(n)
            packed = codec.encode(data)
            assert bytes(packed) == bytes(own.encode(data)) or own.codec_id == 'gzip'
            assert bytes(codec.decode(packed)) == data.tobytes(), (own, n)
            out = numpy.empty_like(data)
            codec.decode(packed, out=out)
            assert (out == data).all(), (own, n)
            raises(ValueError, codec.decode, packed, out=numpy.empty(n + 3, data.dtype))


def test_numcodecs_bad_chunks_raise_what_their_callers_expect():
    kinds = {'zlib': zlib.error, 'gzip': gzip.BadGzipFile}
    for own in codecs():
        codec = numcodecs.get_codec(own.get_config())
        kind = kinds.get(own.codec_id, RuntimeError)
        packed = bytes(codec.encode(numbers(5000)))
        for bad in packed[:-5], packed[:3], b'', packed[:8] + bytes(30) + packed[38:]:
            try:
                codec.decode(bad)
            except wharf.DataError as error:
                assert isinstance(error, kind) and error.reason and error.bit >= 0, (own, error)
            except (RuntimeError, ValueError):
                assert own.codec_id == 'blosc'  # numcodecs' own, of what wharf does not support
            else:
                assert bad == packed[:8] + bytes(30) + packed[38:], own  # of which some have no checksum
    forged = b'\xff\xff\xff\x7f' + bytes(100)
    assert isinstance(raises(wharf.DataError, numcodecs.get_codec({'id': 'lz4'}).decode, forged), RuntimeError)


# ---- zarr ----------------------------------------------------------------------------------------

class Counted:
    """wharf's batches, counted."""

    def __init__(self):
        self.sizes, self.inner = [], wharf._wharf.decompress_batch

    def __call__(self, chunks, *args, **kwargs):
        self.sizes.append(len(chunks))
        return self.inner(chunks, *args, **kwargs)


def test_zarr_reads_hand_all_chunks_over_at_once():
    import zarr  # pylint: disable=import-outside-toplevel
    import wharf.zarr as module  # pylint: disable=import-outside-toplevel
    data = numbers(400 * 500).reshape(400, 500)
    compressors = {'gzip': zarr.codecs.GzipCodec(), 'zstd': zarr.codecs.ZstdCodec(), 'blosc': zarr.codecs.BloscCodec(),
                   'both': (zarr.codecs.GzipCodec(), zarr.codecs.ZstdCodec()), 'none': None}
    for name, compressor in compressors.items():
        store = zarr.storage.MemoryStore()
        zarr.create_array(store, data=data, chunks=(50, 50), compressors=compressor, fill_value=7)
        metadata = dict(store._store_dict)['zarr.json'].to_bytes()
        assert b'wharf' not in metadata
        array = zarr.open_array(store)
        counted = Counted()
        module._wharf = type('Module', (), {'decompress_batch': counted, 'DataError': wharf.DataError,
                                            'UnsupportedError': wharf.UnsupportedError})
        try:
            assert (array[:] == data).all(), name
            assert counted.sizes == {'none': [], 'both': [80, 80]}.get(name, [80]), (name, counted.sizes)
            assert (array[49:120, 3:60] == data[49:120, 3:60]).all()
        finally:
            module._wharf = wharf._wharf
        del store._store_dict['c/1/1']
        holed = data.copy()
        holed[50:100, 50:100] = 7
        assert (array[:] == holed).all(), name


def test_zarr_shards_filters_and_version_2_are_read():
    import zarr  # pylint: disable=import-outside-toplevel
    data = numbers(400 * 500).reshape(400, 500)
    for options in ({'shards': (200, 250)}, {'filters': zarr.codecs.TransposeCodec(order=(1, 0))}, {
            'zarr_format': 2, 'compressors': numcodecs.get_codec({'id': 'zlib', 'level': 5})}, {
                'zarr_format': 2, 'compressors': numcodecs.get_codec({'id': 'blosc'})}):
        array = zarr.create_array({}, data=data, chunks=(50, 50), **options)
        assert (array[:] == data).all() and (array[77, 5:300] == data[77, 5:300]).all(), options


def selections(shape):
    """Of two axes: whole, parts, steps, single items, and lists of items."""
    rows, columns = shape
    yield from ((slice(None), slice(None)), (slice(50, 100), slice(None)), (slice(3, rows - 9), slice(60, 61)), (7, slice(9, 333)),
                (slice(None), 80), (77, 5), (slice(0, 0), slice(None)), (slice(5, 200, 7), slice(None, None, 3)))
    yield numpy.array([3, 5, 200, 50]), slice(10, 90)
    yield numpy.array([9, 9, 1]), numpy.array([columns - 1, 0, 60])


def same(one, other, what):
    assert type(one) is type(other) and one.shape == other.shape and one.dtype == other.dtype, what
    assert one.tobytes() == other.tobytes(), what


def test_zarr_reads_parts_as_zarr_does():
    import zarr  # pylint: disable=import-outside-toplevel
    import wharf.zarr as module  # pylint: disable=import-outside-toplevel
    whole = numbers(230 * 410).reshape(230, 410)
    zarrs = 'zarr.core.codec_pipeline.BatchedCodecPipeline'
    kinds = ('<i4', '>i4', 'i1', '?', '<f8', '>u2', '<c8', '<U3', 'S5', '<M8[s]', [('a', '<i2'), ('b', '>f4')])
    options = [{'compressors': zarr.codecs.ZstdCodec(), 'serializer': zarr.codecs.BytesCodec(endian='big')},
               {'compressors': zarr.codecs.BloscCodec(cname='zlib')}]
    options += [{'zarr_format': 2, 'order': order, 'compressors': one} for order in 'CF'
                for one in (numcodecs.LZ4(), numcodecs.Zlib(1), numcodecs.get_codec({'id': 'zstd'}))]
    n_read = 0
    for kind, option in ((kind, option) for kind in kinds for option in options):
        data = numpy.zeros(whole.shape, kind)
        for name in data.dtype.names or (Ellipsis,):
            data[name] = whole & 1 if kind == '?' else whole
        if 'serializer' in option and data.dtype.kind not in 'iufcM':
            continue
        # A row of chunks lies in the array as it is stored, or not; the last of each axis are cut.
        for chunks in (50, 410), (50, 60):
            store, counted = zarr.storage.MemoryStore(), Counted()
            with warnings.catch_warnings(action='ignore'), zarr.config.set({'codec_pipeline.path': zarrs}):
                zarr.create_array(store, data=data, chunks=chunks, **option)
                own = zarr.open_array(store)
            array = zarr.open_array(store)
            module._wharf = type('Module', (), {'decompress_batch': counted, 'DataError': wharf.DataError,
                                                'UnsupportedError': wharf.UnsupportedError})
            try:
                for one in selections(data.shape):
                    same(array.oindex[one], own.oindex[one], (kind, option, chunks, one))
                points = [3, 200, 3], [409, 5, 0]
                same(array.vindex[points], own.vindex[points], (kind, option, chunks))
            finally:
                module._wharf = wharf._wharf
            n_read += sum(counted.sizes)
            out = numpy.zeros(data.shape, own[:].dtype)
            array.get_basic_selection(..., out=zarr.core.buffer.default_buffer_prototype().nd_buffer.from_numpy_array(out))
            same(out, own[:], (kind, option, chunks))
    assert n_read > 5000


def test_zarr_reads_what_wharf_does_not_support():
    """Every second chunk, as far as wharf tells."""
    import zarr  # pylint: disable=import-outside-toplevel
    import wharf.zarr as module  # pylint: disable=import-outside-toplevel

    def half(chunks, *args, **kwargs):
        answers = wharf._wharf.decompress_batch(chunks, *args, **kwargs)
        return [wharf.UnsupportedError() if i % 2 else answer for i, answer in enumerate(answers)]

    data = numbers(400 * 500).reshape(400, 500)
    for chunks in (50, 500), (50, 50):
        for options in ({'compressors': zarr.codecs.BloscCodec()}, {'zarr_format': 2, 'compressors': numcodecs.LZ4()},
                        {'compressors': (zarr.codecs.GzipCodec(), zarr.codecs.ZstdCodec())}):
            store = zarr.storage.MemoryStore()
            zarr.create_array(store, data=data, chunks=chunks, **options)
            module._wharf = type('Module', (), {'decompress_batch': staticmethod(half), 'DataError': wharf.DataError,
                                                'UnsupportedError': wharf.UnsupportedError})
            try:
                assert (zarr.open_array(store)[:] == data).all(), (chunks, options)
            finally:
                module._wharf = wharf._wharf


def test_zarr_chunks_of_another_size_raise():
    import zarr  # pylint: disable=import-outside-toplevel
    for options in ({'compressors': zarr.codecs.GzipCodec()}, {'compressors': zarr.codecs.BloscCodec()},
                    {'zarr_format': 2, 'compressors': numcodecs.LZ4()}):
        for chunks in (10, 100), (10, 50):
            store, other = zarr.storage.MemoryStore(), zarr.storage.MemoryStore()
            array = zarr.create_array(store, data=numbers(10000).reshape(100, 100), chunks=chunks, **options)
            zarr.create_array(other, data=numbers(990).reshape(10, 99), chunks=(10, 99), **options)
            key = '2.0' if options.get('zarr_format') == 2 else 'c/2/0'
            store._store_dict[key] = other._store_dict[key.replace('2', '0')]
            raises(ValueError, lambda: array[:])  # pylint: disable=cell-var-from-loop
            store._store_dict[key] = type(store._store_dict[key]).from_bytes(b'')
            raises((ValueError, RuntimeError), lambda: array[:])  # pylint: disable=cell-var-from-loop


def test_zarr_bad_chunks_raise():
    import zarr  # pylint: disable=import-outside-toplevel
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(store, data=numbers(10000), chunks=(1000,), compressors=zarr.codecs.GzipCodec())
    chunk = store._store_dict['c/3']
    store._store_dict['c/3'] = type(chunk).from_bytes(chunk.to_bytes()[:-9])
    error = raises(wharf.DataError, lambda: array[:])
    assert isinstance(error, gzip.BadGzipFile) and error.index == 3 and error.reason == 'input_truncated'
    assert (array[:3000] == numbers(10000)[:3000]).all()


# ---- fsspec --------------------------------------------------------------------------------------

def test_fsspec_files_are_read_by_wharf():
    import fsspec  # pylint: disable=import-outside-toplevel
    text = ''.join(f'line {i}\n' for i in range(50000))
    with fsspec.open('memory://a.gz', 'wt', compression='infer') as file:
        file.write(text)
    with fsspec.open('memory://a.gz', 'rt', compression='infer') as file:
        assert file.read() == text
    with fsspec.open('memory://a.gz', 'rb', compression='gzip') as file:
        assert type(file.raw).__module__ == 'wharf.files'
        assert file.read(100) == text[:100].encode()
    with fsspec.open('memory://a.whr', 'wt', compression='infer') as file:
        file.write(text)
    with fsspec.open('memory://a.whr', 'rt', compression='wharf') as file:
        assert file.read() == text
    memory = fsspec.filesystem('memory')
    memory.pipe_file('/bad.gz', memory.cat_file('/a.gz')[:-4])
    with fsspec.open('memory://bad.gz', 'rb', compression='gzip') as file:
        raises(wharf.DataError, file.read)


def test_fsspec_files_are_asked_for_ranges():
    import fsspec  # pylint: disable=import-outside-toplevel
    text = ''.join(f'line {i * i}\n' for i in range(400000)).encode()
    command = os.path.join(BUILD, 'wharf')
    memory = fsspec.filesystem('memory')
    for suffix, options in ('whr', ()), ('gz', ('--format', 'bgzf')):
        packed = subprocess.run([command, 'pack', '-q', *options], input=text, stdout=subprocess.PIPE, check=True).stdout
        memory.pipe_file(f'/b.{suffix}', packed)
        with memory.open(f'/b.{suffix}') as inner:
            asked, cat_file = [], memory.cat_file
            inner.fs.cat_file = lambda path, start, end: asked.append(end - start) or cat_file(path, start=start, end=end)  # pylint: disable=cell-var-from-loop
            try:
                with wharf.open(inner) as file:
                    file.seek(len(text) // 2)
                    assert file.read(1000) == text[len(text) // 2:][:1000]
            finally:
                del inner.fs.cat_file
        assert 0 < sum(asked) < len(packed) // 2, (sum(asked), len(packed))


# ---- h5py ----------------------------------------------------------------------------------------

def hdf5_options():
    import hdf5plugin  # pylint: disable=import-outside-toplevel
    yield {'compression': 'gzip'}
    yield {'compression': 'gzip', 'shuffle': True, 'fletcher32': True}
    yield {'shuffle': True}
    yield {'fletcher32': True}
    yield {}
    yield hdf5plugin.LZ4()
    yield hdf5plugin.LZ4(nbytes=1000)
    yield hdf5plugin.Zstd()
    yield hdf5plugin.Blosc(cname='zstd', shuffle=hdf5plugin.Blosc.BITSHUFFLE)
    yield hdf5plugin.Bitshuffle(cname='lz4')
    yield hdf5plugin.Bitshuffle(cname='zstd')
    yield hdf5plugin.Bitshuffle(cname='none')
    yield hdf5plugin.Bitshuffle(nelems=64, cname='none')
    for codec in 'blosclz', 'lz4', 'lz4hc', 'zlib', 'zstd':
        for undo in range(5):
            yield hdf5plugin.Blosc2(codec, 5, undo)


def test_hdf5_chunks_are_read_as_they_are_stored():
    import h5py  # pylint: disable=import-outside-toplevel
    from wharf.h5py import read  # pylint: disable=import-outside-toplevel
    for options in hdf5_options():
        for dtype in '<i4', '>f8', 'i1':
            file = h5py.File(io.BytesIO(), 'w')
            data = numbers(300 * 77, dtype).reshape(300, 77)
            dataset = file.create_dataset('a', data=data, chunks=(64, 30), **options)
            assert (read(dataset) == data).all(), (dict(options), dtype)
            for at in numpy.s_[5], numpy.s_[64:65, 3:61], numpy.s_[..., -1], numpy.s_[200:, :], numpy.s_[7:7]:
                assert numpy.array_equal(read(dataset, at), data[at]), (options, at)


def test_hdf5_frames_of_blosc2_have_any_dimensions():
    import h5py  # pylint: disable=import-outside-toplevel
    import hdf5plugin  # pylint: disable=import-outside-toplevel
    from wharf.h5py import read  # pylint: disable=import-outside-toplevel
    file = h5py.File(io.BytesIO(), 'w')
    for shape, chunks in (((4000,), (1000,)), ((40, 50, 30), (16, 50, 7)), ((9, 8, 7, 6, 5), (5, 3, 7, 4, 2)), ((300, 300), (299, 300))):
        for dtype in '<i2', '>f8', 'u1', 'S3':
            n = int(numpy.prod(shape))
            data = numbers(n).astype(dtype).reshape(shape)
            dataset = file.create_dataset(f'{len(file)}', data=data, chunks=chunks, fletcher32=dtype == 'u1', **hdf5plugin.Blosc2())
            assert (read(dataset) == data).all(), (shape, dtype)
    for name, value in ('zeros', 0), ('nan', numpy.nan), ('one', 7):
        data = numpy.full((300, 300), value, 'f4')
        dataset = file.create_dataset(name, data=data, chunks=(300, 200), **hdf5plugin.Blosc2())
        assert numpy.array_equal(read(dataset), data, equal_nan=True), name


def test_hdf5_frames_of_blosc2_that_are_damaged_do_no_harm():
    import random  # pylint: disable=import-outside-toplevel
    import h5py  # pylint: disable=import-outside-toplevel
    import hdf5plugin  # pylint: disable=import-outside-toplevel
    from wharf.h5py import read  # pylint: disable=import-outside-toplevel
    chance, n_bad = random.Random(1), 0
    for chunks in (1000,), (10, 100):
        data = numbers(1000).reshape(chunks)
        dataset = h5py.File(io.BytesIO(), 'w').create_dataset('a', data=data, chunks=chunks, **hdf5plugin.Blosc2())
        mask, stored = dataset.id.read_direct_chunk((0,) * len(chunks))
        for at in range(len(stored)):
            bad = bytearray(stored)
            bad[at] ^= 1 << chance.randrange(8)
            dataset.id.write_direct_chunk((0,) * len(chunks), bytes(bad[:chance.choice((len(bad), at))] or b'x'), filter_mask=mask)
            try:
                read(dataset)
            except wharf.DataError as error:
                assert isinstance(error, OSError) and 0 <= error.bit <= 8 * len(stored)
                n_bad += 1
    assert n_bad > 500, n_bad


def test_hdf5_filter_masks_and_missing_chunks_are_honoured():
    import h5py  # pylint: disable=import-outside-toplevel
    from wharf.h5py import read  # pylint: disable=import-outside-toplevel
    file = h5py.File(io.BytesIO(), 'w')
    dataset = file.create_dataset('a', (4000,), '<i4', chunks=(1000,), shuffle=True, compression='gzip', fillvalue=9)
    data = numbers(4000)
    shuffled = data[1000:2000].view('u1').reshape(1000, 4).T.tobytes()
    dataset.id.write_direct_chunk((0,), data[:1000].tobytes(), filter_mask=3)  # no filter
    dataset.id.write_direct_chunk((1000,), shuffled, filter_mask=2)  # no deflate
    dataset.id.write_direct_chunk((2000,), zlib.compress(data[2000:3000].tobytes()), filter_mask=1)  # no shuffle
    expected = dataset[:]
    assert (expected[:3000] == data[:3000]).all() and (expected[3000:] == 9).all()
    assert (read(dataset) == expected).all()


def test_hdf5_bad_chunks_raise_oserror():
    import h5py  # pylint: disable=import-outside-toplevel
    from wharf.h5py import read  # pylint: disable=import-outside-toplevel
    for options in filter(None, hdf5_options()):  # without a filter any bytes are good
        with h5py.File(io.BytesIO(), 'w') as file:
            dataset = file.create_dataset('a', data=numbers(2000), chunks=(1000,), **options)
            mask, stored = dataset.id.read_direct_chunk((1000,))
            for bad in stored[:-6], stored[:2], stored[:20] + b'\xff' * 40 + stored[60:]:
                dataset.id.write_direct_chunk((1000,), bad, filter_mask=mask)
                try:
                    read(dataset)
                except wharf.DataError as error:
                    assert isinstance(error, OSError), (options, error)
                else:
                    assert len(bad) == len(stored), options  # some have no checksum
                assert (read(dataset, numpy.s_[:1000]) == numbers(2000)[:1000]).all()


def main():
    global BUILD, numcodecs, numpy, wharf  # pylint: disable=global-statement
    if not sys.prefix.startswith(ENVIRONMENT):
        try:
            make_environment()
        except subprocess.CalledProcessError as error:
            print(f'1..1\nok 1 - packages # SKIP they cannot be installed: {error}')
            return 0
        os.execv(f'{ENVIRONMENT}/bin/python', [f'{ENVIRONMENT}/bin/python', *sys.argv])
    BUILD, pattern = module_tests.begin()
    os.environ.setdefault('WHARF_SOCKET', '/no/such/socket')
    import numcodecs as codecs_module  # pylint: disable=import-outside-toplevel
    import numpy as numpy_module  # pylint: disable=import-outside-toplevel
    import wharf as module  # pylint: disable=import-outside-toplevel
    numcodecs, numpy, wharf = codecs_module, numpy_module, module
    for name in 'blosc', 'gzip', 'lz4', 'zlib', 'zstd':
        __import__(f'numcodecs.{name}')
    assert wharf.enable() == ('numcodecs', 'zarr', 'fsspec') and wharf.enable('fsspec') == ('fsspec',)
    return module_tests.run(globals(), pattern) > 0


BUILD = None

if __name__ == '__main__':
    sys.exit(main())
