#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dask_words.py FOLDER [--workers N] [--batch N] [--without-wharf]: counts words of all .gz objects in a folder, with Dask.

Tasks are batches of objects.  A worker hands each batch to wharf as one request.  The daemon of its host decodes it, on
its cores and GPUs, or the worker does, where that is sooner or no daemon is there.  Dask runs a task
again that was lost with its worker, and libwharf submits again what was lost with a daemon, so both may die.

With a cluster over hosts (Client(ADDRESS) in place of LocalCluster) each host has a daemon of its own, and workers find
it by the usual socket.  Prints one line of JSON: words in all, different ones, and the most frequent.
"""
import argparse
import collections
import glob
import gzip
import json
import os
import struct

import dask.config
from distributed import Client, LocalCluster, as_completed

_client = None


def count_by_gzip(paths):
    """The same without wharf: one object at a time, by zlib."""
    words = collections.Counter()
    for path in paths:
        with gzip.open(path) as file:
            words.update(file.read().split())
    return words


def count_by_wharf(paths):
    import wharf  # pylint: disable=import-outside-toplevel
    global _client  # pylint: disable=global-statement
    if _client is None:
        # One for each process: a connection, rings and an arena.
        _client = wharf.Client()
    objects, sizes = [], []
    for path in paths:
        with open(path, 'rb') as file:
            objects.append(file.read())
        # gzip ends with the size of what it holds, of a single member.  It is the room that the output gets; wharf
        # refuses what does not fit.
        sizes.append(struct.unpack('<I', objects[-1][-4:])[0])
    words = collections.Counter()
    for text in _client.decompress_batch(objects, 'gzip', sizes=sizes):
        words.update(bytes(text).split())
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--workers', type=int, default=os.cpu_count())
    parser.add_argument('--batch', type=int, default=100, help='objects of a task; default 100')
    parser.add_argument('--without-wharf', action='store_true')
    options = parser.parse_args()
    count = count_by_gzip if options.without_wharf else count_by_wharf
    paths = sorted(glob.glob(os.path.join(glob.escape(options.folder), '*.gz')))
    batches = [paths[at:at + options.batch] for at in range(0, len(paths), options.batch)]
    # A worker that dies is no fault of its tasks.
    dask.config.set({'distributed.scheduler.allowed-failures': 10})
    words = collections.Counter()
    with LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None) as cluster, \
            Client(cluster) as client:
        for done in as_completed(client.map(count, batches, retries=2)):
            words.update(done.result())
            done.release()
    print(json.dumps({'objects': len(paths), 'words': sum(words.values()), 'different': len(words),
                      'most': [[word.decode('utf-8', 'replace'), n] for word, n in
                               sorted(words.items(), key=lambda item: (-item[1], item[0]))[:5]]}))


if __name__ == '__main__':
    main()
