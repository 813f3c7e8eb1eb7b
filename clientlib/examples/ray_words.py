#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ray_words.py FOLDER [--workers N] [--batch N] [--without-wharf]: counts words of all .gz objects in a folder, with Ray.

Ray Data reads objects as they are stored.  A worker hands each batch to wharf as one request.  The daemon of its host
decodes it, on its cores and GPUs, or the worker does, where that is sooner or no daemon is there.  Ray runs a task again
that was lost with its worker, and libwharf submits again what was lost with a daemon, so both may die.

With a cluster over hosts (ray.init('auto')) each host has a daemon of its own, and workers find it by the usual socket.
For another store than a folder of files give fsspec.filesystem its name.  Prints one line of JSON: words in all,
different ones, and the most frequent; Ray tells of workers that died there, too.
"""
import argparse
import collections
import json
import os
import struct

import fsspec
import pyarrow.fs
import ray

_client = None


class AsStored(pyarrow.fs.FSSpecHandler):
    """Shows Ray files under names that end in .stored: it takes a name that ends in .gz as an order to decompress with
    zlib while it reads, and has no option against that."""

    END = '.stored'

    def get_file_info_selector(self, selector):
        return [pyarrow.fs.FileInfo(info.path + self.END, type=info.type, size=info.size)
                for info in super().get_file_info_selector(selector) if info.path.endswith('.gz')]

    def get_file_info(self, paths):
        return [pyarrow.fs.FileInfo(path, type=info.type, size=info.size)
                for path, info in zip(paths, super().get_file_info([path.removesuffix(self.END) for path in paths]))]

    def open_input_stream(self, path):
        return super().open_input_stream(path.removesuffix(self.END))


def as_row(batch, words):
    return {'objects': [len(batch['bytes'])], 'words': [json.dumps({word.decode('latin-1'): n for word, n in words.items()})]}


def count_by_gzip(batch):
    """The same without wharf: one object at a time, by zlib."""
    import gzip  # pylint: disable=import-outside-toplevel
    words = collections.Counter()
    for stored in batch['bytes']:
        words.update(gzip.decompress(stored).split())
    return as_row(batch, words)


def count_by_wharf(batch):
    import wharf  # pylint: disable=import-outside-toplevel
    global _client  # pylint: disable=global-statement
    if _client is None:
        # One for each process: a connection, rings and an arena.
        _client = wharf.Client()
    objects = list(batch['bytes'])
    # gzip ends with the size of what it holds, of a single member.  It is the room that the output gets; wharf refuses
    # what does not fit.
    sizes = [struct.unpack('<I', stored[-4:])[0] for stored in objects]
    words = collections.Counter()
    for text in _client.decompress_batch(objects, 'gzip', sizes=sizes):
        words.update(bytes(text).split())
    return as_row(batch, words)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--workers', type=int, default=os.cpu_count())
    parser.add_argument('--batch', type=int, default=100, help='objects of a batch; default 100')
    parser.add_argument('--without-wharf', action='store_true')
    options = parser.parse_args()
    count = count_by_gzip if options.without_wharf else count_by_wharf
    ray.init(num_cpus=options.workers, include_dashboard=False, log_to_driver=False, configure_logging=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    stored = ray.data.read_binary_files(os.path.abspath(options.folder),
                                        filesystem=pyarrow.fs.PyFileSystem(AsStored(fsspec.filesystem('file'))))
    n_objects, words = 0, collections.Counter()
    for row in stored.map_batches(count, batch_size=options.batch).iter_rows():
        n_objects += row['objects']
        words.update(json.loads(row['words']))
    words = {word.encode('latin-1'): n for word, n in words.items()}
    print(json.dumps({'objects': n_objects, 'words': sum(words.values()), 'different': len(words),
                      'most': [[word.decode('utf-8', 'replace'), n] for word, n in
                               sorted(words.items(), key=lambda item: (-item[1], item[0]))[:5]]}))


if __name__ == '__main__':
    main()
