#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""zarr_bench.py [--build FOLDER] [--repetitions N] [--nbytes N] FILE...: zarr with wharf beside zarr alone.

Of each FILE N bytes (256 MiB), repeated where it is shorter, become arrays of zarr in memory, in chunks of 1 MiB: of
format 2 with zlib, LZ4 and zstd, of format 3 with gzip, zstd and Blosc with LZ4.  A chunk is a row of the array, so that
its bytes lie together, or a square.  An array that was opened before wharf.enable() and one that was opened afterwards
are read whole in turn, into one array of NumPy.  Both use all cores.  Seconds are by the clock.  Prints rows as
results/README.md says.
"""
import importlib.metadata
import json
import os
import platform
import sys
import time

import bench_options

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
CHUNK_NBYTES = 1 << 20
# The array's width, and a chunk's shape.
LAYOUTS = {'rows': (CHUNK_NBYTES, (1, CHUNK_NBYTES)), 'squares': (8192, (1024, 1024))}


def word_of(path, name):
    with open(path, encoding='utf-8') as file:
        return next((line.split(':')[1].strip() for line in file if line.startswith(name)), 'unknown')


def of_all_rows(revision):
    return {'date': time.strftime('%Y-%m-%d'), 'bench': 'python', 'revision': revision,
            'cpu': word_of('/proc/cpuinfo', 'model name'), 'cores': len(os.sched_getaffinity(0)),
            'kernel': platform.release(), 'threads': len(os.sched_getaffinity(0))}


def codecs():
    """Their names, and what zarr.create_array wants to hear."""
    import numcodecs  # pylint: disable=import-outside-toplevel
    import zarr  # pylint: disable=import-outside-toplevel
    return (('zlib', 2, 6, numcodecs.Zlib(6)), ('lz4', 2, 1, numcodecs.LZ4()), ('zstd', 2, 3, numcodecs.Zstd(3)),
            ('gzip', 3, 6, zarr.codecs.GzipCodec(level=6)), ('zstd', 3, 3, zarr.codecs.ZstdCodec(level=3)),
            ('blosc', 3, 5, zarr.codecs.BloscCodec(cname='lz4', clevel=5, shuffle='noshuffle')))


def make_stores(data):
    """Each with the array of one codec and layout."""
    import numpy  # pylint: disable=import-outside-toplevel
    import zarr  # pylint: disable=import-outside-toplevel
    for name, form, level, compressor in codecs():
        for layout, (width, chunks) in LAYOUTS.items():
            store = zarr.storage.MemoryStore()
            array = numpy.frombuffer(data, 'u1').reshape(-1, width)
            zarr.create_array(store, data=array, chunks=chunks, compressors=compressor, zarr_format=form)
            nbytes = sum(len(value) for key, value in store._store_dict.items() if '.z' not in key and 'json' not in key)
            yield name, form, level, layout, nbytes, store


def seconds_of(array, out):
    import zarr  # pylint: disable=import-outside-toplevel
    begin = time.perf_counter()
    array.get_basic_selection(..., out=zarr.core.buffer.default_buffer_prototype().nd_buffer.from_numpy_array(out))
    return time.perf_counter() - begin


def say(common, codec, form, level, layout, data, in_nbytes, out_nbytes, own, others):
    peer = f'numcodecs {importlib.metadata.version("numcodecs")}, zarr {importlib.metadata.version("zarr")}'
    ratios = sorted(other / one for one, other in zip(own, others))
    own, others = sorted(own), sorted(others)
    print(json.dumps({
        **common, 'what': f'zarr {form}, {layout}', 'codec': codec, 'data': data, 'level': level,
        'chunk_nbytes': CHUNK_NBYTES, 'in_nbytes': in_nbytes, 'out_nbytes': out_nbytes, 'repetitions': len(own),
        'min_s': round(own[0], 6), 'median_s': round(own[len(own) // 2], 6), 'max_s': round(own[-1], 6), 'peer': peer,
        'peer_min_s': round(others[0], 6), 'peer_median_s': round(others[len(others) // 2], 6),
        'peer_max_s': round(others[-1], 6), 'gbps': round(out_nbytes / own[0] / 1e9, 4),
        'peer_gbps': round(out_nbytes / others[0] / 1e9, 4), 'times_peer': round(others[0] / own[0], 3),
        'pairs_median': round(ratios[len(ratios) // 2], 3)}), flush=True)


def main():
    parser = bench_options.Parser(__doc__)
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--repetitions', type=int, default=9)
    parser.add_argument('--nbytes', type=int, default=256 << 20)
    parser.add_argument('--revision', default='unknown')
    parser.add_argument('files', nargs='+')
    options = parser.parse_args()
    sys.path.insert(0, os.path.join(TOP, options.build, 'python'))
    os.environ['WHARF_SOCKET'] = '/no/such/socket'
    import numpy  # pylint: disable=import-outside-toplevel
    import zarr  # pylint: disable=import-outside-toplevel
    import wharf  # pylint: disable=import-outside-toplevel
    common = of_all_rows(options.revision)
    for path in options.files:
        with open(path, 'rb') as file:
            data = file.read(options.nbytes)
        data = (data * (options.nbytes // len(data) + 1))[:options.nbytes]
        zarr.config.set({'codec_pipeline.path': 'zarr.core.codec_pipeline.BatchedCodecPipeline'})
        stores = list(make_stores(data))
        others = [zarr.open_array(store) for *_, store in stores]
        wharf.enable('zarr')
        for (codec, form, level, layout, in_nbytes, store), other in zip(stores, others):
            arrays, seconds = (zarr.open_array(store), other), ([], [])
            assert [type(array.async_array.codec_pipeline).__module__ for array in arrays] == ['wharf.zarr', 'zarr.core.codec_pipeline']
            out = numpy.zeros(other.shape, 'u1')
            for _ in range(options.repetitions + 1):
                for array, its in zip(arrays, seconds):
                    out[:] = 0
                    its.append(seconds_of(array, out))
                    assert memoryview(out).cast('B') == data
            # Without the first, which starts threads.
            say(common, codec, form, level, layout, os.path.basename(path), in_nbytes, len(data), seconds[0][1:],
                seconds[1][1:])


if __name__ == '__main__':
    main()
