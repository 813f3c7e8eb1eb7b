# SPDX-License-Identifier: Apache-2.0
"""private_daemon.py: a wharfd of a test's own, with a folder of its own."""
import os
import shutil
import subprocess
import tempfile
import time

import wharf_client as wc


class Daemon:
    """Runs `program`, with `more` in its environment, until `remove`.  `stream_of` gives the
    JOURNAL_STREAM of a descriptor that is to lead to the journal; `sections` are more of the
    configuration."""

    def __init__(self, program, stream_of=None, sections='', **more):
        self.program, self.stream_of = program, stream_of
        self.environment = {**os.environ, **more}
        self.folder = tempfile.mkdtemp(prefix='wharf-python.')
        self.socket = f'{self.folder}/socket'
        self.config = f'{self.folder}/config'
        # Far above what is late on a machine that does much else.
        with open(self.config, 'w', encoding='ascii') as config:
            config.write('[daemon]\n')
            for name in ('hello', 'gate', 'drain'):
                config.write(f'{name}_timeout = {wc.PATIENCE_S}s\n')
            config.write(sections)
        self.start()

    def start(self):
        # The socket of one that was killed accepts a moment longer.
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        with open(f'{self.folder}/log', 'a', encoding='utf-8') as log:
            if self.stream_of:
                self.environment['JOURNAL_STREAM'] = self.stream_of(log.fileno())
            self.process = subprocess.Popen(
                [self.program, '--socket', self.socket, '--config', self.config], stderr=log,
                env=self.environment)
        end = time.monotonic() + wc.PATIENCE_S
        while True:
            try:
                wc.Connection(self.socket).close()
                return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < end, self.says()
                time.sleep(0.005)

    def says(self):
        with open(f'{self.folder}/log', encoding='utf-8') as log:
            return log.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(wc.PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder)
