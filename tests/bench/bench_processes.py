# SPDX-License-Identifier: Apache-2.0
"""Processes that benchmarks run beside each other: their processor time, and how they begin at once."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

START_S = 60


def tree_of(pids):
    """These processes and all that they have started."""
    children = {}
    for path in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            parent = int(path.read_text(encoding='latin-1').rpartition(')')[2].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found, todo = set(), list(pids)
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += children.get(pid, [])
    return found


def cpu_seconds(pids):
    """What the threads of these processes have used of processors."""
    total = 0
    for pid in pids:
        for path in pathlib.Path(f'/proc/{pid}/task').glob('*/schedstat'):
            try:
                total += int(path.read_text(encoding='ascii').split()[0])
            except (OSError, IndexError):
                continue
    return total / 1e9


class Crew:
    """Copies of a command that get ready, make FILE.pid and wait for FILE, all of them."""

    def __init__(self, command, count, environment=None):
        self.folder = tempfile.mkdtemp(prefix='wharf-share-')
        self.go = os.path.join(self.folder, 'go')
        command = [self.go if word == 'GO' else str(word) for word in command]
        self.processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                           env={**os.environ, **(environment or {})})
                          for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
        shutil.rmtree(self.folder)

    def pids(self):
        return [process.pid for process in self.processes]

    def begin(self):
        """Lets them go when all are ready; False if one has ended before."""
        end = time.monotonic() + START_S
        while sum(name.startswith('go.') for name in os.listdir(self.folder)) < len(self.processes):
            if time.monotonic() > end or any(process.poll() is not None
                                             for process in self.processes):
                return False
            time.sleep(0.005)
        pathlib.Path(self.go).touch()
        return True

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)

    def lines(self):
        """What each printed; None for one that failed."""
        said = [process.communicate(timeout=START_S)[0] for process in self.processes]
        return [text if process.returncode == 0 and text else None
                for process, text in zip(self.processes, said)]


class Daemon:
    """A private wharfd with this text as its configuration."""

    def __init__(self, program, config, environment=None):
        self.folder = tempfile.mkdtemp(prefix='wharf-share-')
        self.socket = os.path.join(self.folder, 'socket')
        self.log = os.path.join(self.folder, 'log')
        path = pathlib.Path(self.folder, 'config')
        path.write_text(config, encoding='ascii')
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen([program, '--socket', self.socket, '--config', path],
                                            stderr=log, env={**os.environ, **(environment or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder)

    def said(self):
        return pathlib.Path(self.log).read_text(encoding='utf-8', errors='replace')

    def device(self):
        """The GPU's name, when the daemon has said that it has one."""
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            found = re.search(r'is ready after \d+ ms: (.*), \d+ warps', self.said())
            if found:
                return found[1]
            time.sleep(0.02)
        return None


class Mps:
    """NVIDIA's daemon that lets processes share one context; None of it where it cannot be had."""

    def __init__(self):
        self.program = shutil.which('nvidia-cuda-mps-control')
        self.process = None
        self.environment = {}

    def __enter__(self):
        if not self.program:
            return self
        self.folder = tempfile.mkdtemp(prefix='wharf-mps-')
        self.environment = {'CUDA_MPS_PIPE_DIRECTORY': self.folder,
                            'CUDA_MPS_LOG_DIRECTORY': self.folder}
        self.process = subprocess.Popen([self.program, '-f'], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, **self.environment})
        time.sleep(0.5)
        if self.process.poll() is not None:
            self.process = None
        return self

    def __exit__(self, *_):
        if not self.program:
            return
        if self.process:
            subprocess.run([self.program], input='quit\n', text=True, check=False, timeout=30,
                           stdout=subprocess.DEVNULL, env={**os.environ, **self.environment})
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
