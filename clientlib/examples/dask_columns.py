#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dask_columns.py ARRAY [--workers N] [--batch N] [--without-wharf]: sums the columns of a zarr array, with Dask.

wharf.enable('zarr') before the array is opened is all that it takes: the array goes to the workers with its way of
decoding.  There each task hands its chunks to wharf as one request.  What dies may die, and how this is on several hosts,
is as in dask_words.py.  Prints one line of JSON: the number of chunks, and the sum of each column.
"""
import argparse
import json
import os

import dask.array
import dask.config
import zarr
from distributed import Client, LocalCluster


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('array')
    parser.add_argument('--workers', type=int, default=os.cpu_count())
    parser.add_argument('--batch', type=int, default=100, help='chunks of a task; default 100')
    parser.add_argument('--without-wharf', action='store_true')
    options = parser.parse_args()
    if not options.without_wharf:
        import wharf  # pylint: disable=import-outside-toplevel
        wharf.enable('zarr')
    stored = zarr.open_array(options.array, mode='r')
    rows, columns = stored.chunks
    # A worker that dies is no fault of its tasks.
    dask.config.set({'distributed.scheduler.allowed-failures': 10})
    with LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None) as cluster, \
            Client(cluster) as client:
        array = dask.array.from_zarr(stored, chunks=(options.batch * rows, columns))
        sums = client.compute(array.sum(axis=0), retries=2).result()
    print(json.dumps({'objects': stored.nchunks, 'sums': sums.tolist()}))


if __name__ == '__main__':
    main()
