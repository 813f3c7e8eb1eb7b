#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_gpu_bench.py [--build FOLDER] [--engine E] [--chunk N] [--seconds S] CODEC FILE: Python into GPU memory, beside C.

Chunks of N bytes (256 KiB) of FILE, which go from a client's memory into GPU memory by a daemon of its own, in batches of
64, of which 64 are in flight: by the Python package on one thread, each into the rows of one array, and by
wharf_gpu_memory, which is written in C.  CODEC is deflate, lz4 or zstd.  All bytes are compared.  Prints a row
as results/README.md says.
"""
import collections
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

import bench_options

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
BATCH, DEPTH, N_WINDOWS, N_BEFORE = 64, 64, 10, 3
# As wharf_gpu_memory has it.
SECTIONS = '[gpu]\nengine = {engine}\ndevice = 0\npin_after = 0\n[quota]\nmax_memory = 64G\nmax_arena = 8G\n'


@contextlib.contextmanager
def daemon_of(build, engine):
    """The socket of a daemon that runs meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        socket, config = f'{folder}/socket', f'{folder}/config'
        with open(config, 'w', encoding='ascii') as file:
            file.write(SECTIONS.format(engine=engine))
        with subprocess.Popen([f'{build}/wharfd', '--socket', socket, '--config', config]) as process:
            try:
                while not os.path.exists(socket):
                    assert process.poll() is None, 'the daemon did not start'
                    time.sleep(0.01)
                yield socket
            finally:
                process.terminate()


class Array:
    """What CuPy or PyTorch tell of a part of the memory."""

    def __init__(self, address, *shape):
        self.__cuda_array_interface__ = {'shape': shape, 'typestr': '|u1', 'data': (address, False), 'version': 3,
                                         'stream': None}

    def __len__(self):
        return self.__cuda_array_interface__['shape'][0]


def packed_by_c(chunks, codec):
    """By the libraries and at the level that wharf_gpu_memory has."""
    kind, n = ctypes.c_char_p, ctypes.c_size_t
    if codec == 'deflate':
        library = ctypes.CDLL('libdeflate.so.0')
        library.libdeflate_alloc_compressor.restype = ctypes.c_void_p
        compressor = ctypes.c_void_p(library.libdeflate_alloc_compressor(9))
        call = library.libdeflate_deflate_compress
        call.argtypes = ctypes.c_void_p, kind, n, ctypes.c_void_p, n
        pack = lambda chunk, out: call(compressor, chunk, len(chunk), out, len(out))
    elif codec == 'zstd':
        call = ctypes.CDLL('libzstd.so.1').ZSTD_compress
        call.argtypes = ctypes.c_void_p, n, kind, n, ctypes.c_int
        pack = lambda chunk, out: call(out, len(out), chunk, len(chunk), 9)
    else:
        call = ctypes.CDLL('liblz4.so.1').LZ4_compress_HC
        call.argtypes, n = (kind, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int), ctypes.c_int
        pack = lambda chunk, out: call(chunk, out, len(chunk), len(out), 9)
    call.restype = n
    for chunk in chunks:
        out = ctypes.create_string_buffer(2 * len(chunk) + 1024)
        nbytes = pack(chunk, out)
        assert nbytes > 0
        yield out.raw[:nbytes]


def run_windows(client, codec, sources, outs, seconds):
    """Batches a second in each window."""
    flight = collections.deque((i, client.submit_batch(sources[i], codec, outs=outs[i])) for i in range(DEPTH))
    rates = []
    for _ in range(N_BEFORE + N_WINDOWS):
        begin, n = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds / N_WINDOWS:
            i, job = flight.popleft()
            job.result()
            flight.append((i, client.submit_batch(sources[i], codec, outs=outs[i])))
            n += 1
        rates.append(n / (time.perf_counter() - begin))
    for _, job in flight:
        job.result()
    return sorted(rates[N_BEFORE:])


def count_wrong(client, outs, plain):
    """The GPU's bytes, which come back as a chunk that is stored."""
    host = client.alloc(len(plain[0]))
    n = 0
    for i, out in enumerate(outs):
        client.decompress(out, 'stored', out=host)
        n += bytes(memoryview(host)) != plain[i % len(plain)]
    return n


def measure(wharf, socket, codec, plain, packed, seconds):
    nbytes = len(plain[0])
    stride = max(map(len, packed)) + 255 & ~255
    with wharf.Client('daemon', socket=socket, patience=60, max_jobs=2 * DEPTH,
                      arena=DEPTH * BATCH * stride + (64 << 20)) as client:
        memory, source = client.alloc_gpu(DEPTH * BATCH * nbytes), client.alloc(DEPTH * BATCH * stride)
        view, sources, outs = memoryview(source), [], []
        for i in range(DEPTH * BATCH):
            part = packed[i % len(packed)]
            view[i * stride:i * stride + len(part)] = part
            sources.append(view[i * stride:i * stride + len(part)])
            outs.append(Array(memory.address + i * nbytes, nbytes))
        begins = range(0, DEPTH * BATCH, BATCH)
        rows = [Array(memory.address + i * nbytes, BATCH, nbytes) for i in begins]
        try:
            rates = run_windows(client, codec, [sources[i:i + BATCH] for i in begins], rows, seconds)
            return [rate * BATCH * nbytes / 1e9 for rate in rates], count_wrong(client, outs, plain)
        finally:
            del sources[:]
            view.release()


def in_c(build, codec, path, nbytes, seconds):
    command = [f'{build}/tests/wharf_gpu_memory', 'measure', str(seconds), str(nbytes), codec, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            row = json.loads(line) if line.startswith('{') else {}
            if (row.get('source'), row.get('output')) == ('host', 'gpu'):
                process.terminate()
                return row
    sys.exit('wharf_gpu_memory has measured nothing')


def main():
    parser = bench_options.Parser(__doc__)
    parser.add_argument('--build', default='build/release')
    parser.add_argument('--engine', default='cuda')
    parser.add_argument('--chunk', type=int, default=256 << 10)
    parser.add_argument('--seconds', type=float, default=1)
    parser.add_argument('--revision', default='unknown')
    parser.add_argument('codec')
    parser.add_argument('file')
    options = parser.parse_args()
    build = os.path.join(TOP, options.build)
    sys.path.insert(0, f'{build}/python')
    import wharf  # pylint: disable=import-outside-toplevel
    peer = in_c(build, options.codec, options.file, options.chunk, options.seconds) if options.engine == 'cuda' else {}
    with open(options.file, 'rb') as file:
        data = file.read()
    plain = [data[i:i + options.chunk] for i in range(0, len(data) - options.chunk + 1, options.chunk)]
    packed = list(packed_by_c(plain, options.codec))
    with daemon_of(build, options.engine) as socket:
        rates, n_wrong = measure(wharf, socket, options.codec, plain, packed, options.seconds)
    print(json.dumps({
        'date': time.strftime('%Y-%m-%d'), 'bench': 'python', 'revision': options.revision, 'what': 'into GPU memory',
        'codec': options.codec, 'data': os.path.basename(options.file), 'chunk_nbytes': options.chunk, 'batch': BATCH,
        'windows': N_WINDOWS, 'seconds': options.seconds, 'ratio': round(sum(map(len, plain)) / sum(map(len, packed)), 3),
        'GBps_median': round(rates[N_WINDOWS // 2], 2), 'GBps_min': round(rates[0], 2), 'GBps_max': round(rates[-1], 2),
        'wrong': n_wrong, 'peer': 'wharf in C', 'peer_GBps_median': peer.get('GBps_median'), 'peer_wrong': peer.get('wrong'),
        'peer_GBps_min': peer.get('GBps_min'), 'peer_GBps_max': peer.get('GBps_max'),
        'times_peer': round(rates[N_WINDOWS // 2] / peer['GBps_median'], 3) if peer else None}), flush=True)


if __name__ == '__main__':
    main()
