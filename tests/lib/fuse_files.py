# SPDX-License-Identifier: Apache-2.0
"""fuse_files.py: a file system whose files do what their names say.  Needs root and /dev/fuse.

    read-EIO      every read fails with that errno; likewise write-ENOSPC and so on
    read-hang     no read is ever answered; write-hang, close-hang; stat-hang, once it was opened
    read-half     a read gives half of what is asked for, then the file is over
    slow-N        each read takes N milliseconds, many at a time; its bytes go to the page cache
    anything else its bytes are all zero, and what is written is forgotten

`Mount(folder)` has the server in a process of its own until `end`, which lets go of what hangs;
`release` has all that hangs so far answered, as of a file that does not, and `release_all` also what
would hang later.  `await_hanging(n)` waits until n things hang, or have.
Other files have no pages in the cache: each read and write is asked of the server.  `reads()` are the
offsets and sizes that were read so far of those that are slow.
"""
import ctypes
import errno
import os
import signal
import struct
import threading
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE, FLUSH, INIT = 1, 2, 3, 14, 15, 16, 25, 26
STATFS, RELEASE, BATCH_FORGET, INTERRUPT = 17, 18, 42, 36
OUT, ATTRIBUTES = struct.Struct('<IiQ'), struct.Struct('<QQQQQQIIIIIIIIII')
FOPEN_DIRECT_IO = 1
ASYNC_READ, READAHEAD, BACKGROUND = 1, 128 << 10, 64
SIZE, SLOW_SIZE = 1 << 20, 64 << 20
RANGE = struct.Struct('<QI')
MNT_DETACH = 2

libc = ctypes.CDLL(None, use_errno=True)


def attributes(node, name):
    mode = 0o40777 if node == 1 else 0o100666
    return ATTRIBUTES.pack(node, SLOW_SIZE if name.startswith('slow-') else SIZE, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class Server:
    def __init__(self, device, report, ranges):
        self.device = device
        self.ranges = ranges
        self.names = [None, '/']
        self.opened = set()
        self.hanging = []
        self.is_over = False
        self.report = report

    def hang(self, unique, data=b''):
        self.hanging.append((unique, data))
        os.write(self.report, b'.')
        if self.is_over:
            self.release()

    def release(self, *_):
        for unique, data in self.hanging:
            self.answer(unique, data)
        self.hanging = []

    def release_all(self, *_):
        self.is_over = True
        self.release()

    def answer_late(self, unique, size, milliseconds):
        time.sleep(milliseconds / 1000)
        self.answer(unique, bytes(size))

    def node(self, name):
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def answer(self, unique, data=b'', error=0):
        try:
            os.write(self.device, OUT.pack(16 + len(data), -error, unique) + data)
        except OSError:
            pass  # Whoever asked has gone.

    def transfer(self, unique, what, name, size):
        how = name.removeprefix(f'{what}-') if name.startswith(f'{what}-') else ''
        if how == 'hang':
            self.hang(unique, bytes(size) if what == 'read' else struct.pack('<II', size, 0))
            return
        if how == 'half':
            size //= 2
        error = getattr(errno, how, 0)
        done = bytes(size) if what == 'read' else struct.pack('<II', size, 0)
        self.answer(unique, b'' if error else done, error)

    def serve(self, packet):
        _, opcode, unique, node, _, _, _, _ = struct.unpack_from('<IIQQIIII', packet)
        body = packet[40:]
        name = self.names[node] if 0 < node < len(self.names) else ''
        if opcode == INIT:
            self.answer(unique, struct.pack('<IIIIHHIIHHI7I', 7, 31, READAHEAD, ASYNC_READ, BACKGROUND,
                                            BACKGROUND, 1 << 17, 1, 0, 0, 0, *[0] * 7))
        elif opcode == LOOKUP:
            name = body.rstrip(b'\0').decode()
            node = self.node(name)
            self.answer(unique, struct.pack('<QQQQII', node, 0, 1000, 0, 0, 0) + attributes(node, name))
        elif opcode == GETATTR:
            answer = struct.pack('<QII', 0, 0, 0) + attributes(node, name)
            if name == 'stat-hang' and name in self.opened:
                self.hang(unique, answer)
            else:
                self.answer(unique, answer)
        elif opcode == STATFS:
            self.answer(unique, struct.pack('<5Q10I', *[0] * 5, 4096, 255, 4096, *[0] * 7))
        elif opcode == OPEN:
            self.opened.add(name)
            self.answer(unique, struct.pack('<QII', 1, 0 if name.startswith('slow-') else FOPEN_DIRECT_IO, 0))
        elif opcode == READ:
            _, offset, size = struct.unpack_from('<QQI', body)
            if name.startswith('slow-'):
                os.write(self.ranges, RANGE.pack(offset, size))
                threading.Thread(target=self.answer_late, args=(unique, size, int(name[5:]))).start()
                return
            ends = name == 'read-half' and offset > 0
            self.transfer(unique, 'read', name, 0 if ends else size)
        elif opcode == WRITE:
            self.transfer(unique, 'write', name, struct.unpack_from('<QQI', body)[2])
        elif opcode == FLUSH:
            if name == 'close-hang':
                self.hang(unique)
            else:
                self.answer(unique)
        elif opcode == RELEASE:
            self.answer(unique)
        elif opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
            self.answer(unique, error=errno.ENOSYS)

    def run(self):
        while True:
            try:
                self.serve(os.read(self.device, 1 << 18))
            except InterruptedError:
                continue
            except OSError:
                os._exit(0)


class Mount:
    def __init__(self, folder):
        self.folder = folder
        device = os.open('/dev/fuse', os.O_RDWR | os.O_CLOEXEC)
        options = f'fd={device},rootmode=40000,user_id=0,group_id=0,allow_other'
        if libc.mount(b'wharf-test', folder.encode(), b'fuse', 0, options.encode()) < 0:
            os.close(device)
            raise OSError(ctypes.get_errno(), 'mount')
        self.reports, report = os.pipe()
        self.ranges, ranges = os.pipe2(os.O_NONBLOCK)
        self.read_so_far = []
        self.server = os.fork()
        if self.server == 0:
            try:
                server = Server(device, report, ranges)
                signal.signal(signal.SIGUSR1, server.release)
                signal.signal(signal.SIGUSR2, server.release_all)
                server.run()
            finally:
                os._exit(1)
        os.close(device)
        os.close(report)
        os.close(ranges)

    def reads(self):
        try:
            while True:
                self.read_so_far.append(RANGE.unpack(os.read(self.ranges, RANGE.size)))
        except BlockingIOError:
            return self.read_so_far

    def release(self):
        os.kill(self.server, signal.SIGUSR1)

    def release_all(self):
        os.kill(self.server, signal.SIGUSR2)

    def await_hanging(self, n):
        for _ in range(n):
            assert os.read(self.reports, 1) == b'.', 'the server has ended'

    def open(self, name, how=os.O_RDWR):
        return os.open(os.path.join(self.folder, name), how)

    def end(self):
        if not self.server:
            return
        os.kill(self.server, signal.SIGKILL)
        os.waitpid(self.server, 0)
        self.server = None
        os.close(self.reports)
        libc.umount2(self.folder.encode(), MNT_DETACH)
