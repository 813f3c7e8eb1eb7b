# SPDX-License-Identifier: Apache-2.0
"""AsyncClient: a client for asyncio.

Jobs go to the daemon at once, and the loop watches the client's descriptor.  What cannot go that
way - there is no daemon, or it does not fit into the arena - is decoded by a thread of the loop's
executor.
"""
import asyncio
import errno

from ._wharf import Client

# No room among the jobs, or in the arena.
_FULL = (errno.EAGAIN, errno.ENOBUFS)


class AsyncClient:
    """async with AsyncClient() as client: text = await client.decompress(data, 'zstd')

    Takes the arguments of Client, and belongs to the loop that runs when it is made.
    """

    def __init__(self, *args, **kwargs):
        self._loop = asyncio.get_running_loop()
        self._client = Client(*args, **kwargs)
        self._waiting = []  # futures of those who wait for room, the first one first
        self._n_jobs = 0
        if self._client.is_daemon:
            self._loop.add_reader(self._client.fileno(), self._client.poll)

    @property
    def is_daemon(self):
        """Whether jobs go through a daemon."""
        return self._client.is_daemon

    async def decompress(self, data, codec='gzip', **kwargs):
        """As wharf.decompress.  When the task is cancelled, so is the job."""
        return await self._run('submit', 'decompress', data, codec, kwargs)

    async def decompress_batch(self, chunks, codec='gzip', **kwargs):
        """As wharf.decompress_batch, with outs or sizes for formats that state no size."""
        return await self._run('submit_batch', 'decompress_batch', chunks, codec, kwargs)

    async def close(self):
        """Ends the client.  Jobs in flight end with CancelledError."""
        if self._client.closed:
            return
        if self._client.is_daemon:
            self._loop.remove_reader(self._client.fileno())
        self._client.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    # ---- jobs ----

    def _finish(self, job, future):
        """By whichever thread notices, which is the loop's but for strangers."""
        try:
            self._loop.call_soon_threadsafe(self._tell, job, future)
        except RuntimeError:
            # The loop has ended, and nobody waits.
            if not self._loop.is_closed():
                raise

    def _tell(self, job, future):
        self._n_jobs -= 1
        if not future.done():
            future.set_result(job)
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    async def _submit(self, method, data, codec, kwargs):
        """A job and the future of its end, when there is room; None if there never will be."""
        while True:
            future = self._loop.create_future()
            try:
                job = getattr(self._client, method)(
                    data, codec, callback=lambda job: self._finish(job, future), **kwargs)  # pylint: disable=cell-var-from-loop
                self._n_jobs += 1
                return job, future
            except OSError as error:
                if error.errno not in _FULL:
                    raise
            if not self._n_jobs:
                return None
            room = self._loop.create_future()
            self._waiting.append(room)
            await room

    async def _run(self, submit, decompress, data, codec, kwargs):
        begun = await self._submit(submit, data, codec, kwargs) if self._client.is_daemon else None
        if begun:
            try:
                return await self._wait(*begun)
            except OSError as error:
                # It became larger than its room, and there was no more.
                if error.errno not in _FULL:
                    raise
        return await self._loop.run_in_executor(
            None, lambda: getattr(self._client, decompress)(data, codec, **kwargs))

    async def _wait(self, job, future):
        # What ended before the loop sleeps, and jobs that were taken by strangers' threads.
        self._client.poll()
        try:
            await future
        except asyncio.CancelledError:
            if not self._client.closed:
                job.cancel()
            raise
        return job.result()
