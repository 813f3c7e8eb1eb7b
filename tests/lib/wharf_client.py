# SPDX-License-Identifier: Apache-2.0
"""A client of wharfd in Python, written from proto/PROTOCOL.md and proto/control.proto alone.

It shows that the page is enough, and tests the daemon through a second reading of it.  Numbers of
results, reasons, codecs and so on are read from the headers that the page names for them.

Memory order.  Python has no atomic operations and no fences.  On x86-64, the only machine that
this is for, it is right all the same:
- Words are ctypes objects on mapped memory.  An aligned word is loaded or stored by one
  instruction, at the moment when Python runs the statement: the interpreter is compiled code that
  calls through pointers, and no compiler moves an access across that.
- The processor keeps loads in order among themselves, and stores among themselves, and no store
  goes before an earlier load.  So each load is an acquire and each store a release.
- What it does not keep is a store before a later load of another word: the two places of section 4
  where the page asks for a full fence.  There `full_fence` takes and releases a lock, which is an
  instruction with a lock prefix, and those order everything.
"""
import ctypes
import errno
import fcntl
import importlib.util
import mmap
import os
import platform
import re
import select
import socket
import struct
import subprocess
import tempfile
import threading
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
assert platform.machine() == 'x86_64', 'see Memory order above'

# Of tests: far above what takes long on a machine that does much else.
PATIENCE_S = 100

MAX_MESSAGE = 4096
MAX_DESCRIPTORS = 8
PAGE = 4096
ENTRY = 64
MARK = 4  # for each entry, behind all of them
WORDS = 32  # likewise, in C
FIRST_ENTRY = 1024

# Section 2's diagrams, in order of their bytes.
SUBMISSION = struct.Struct('<BBHHHQQQQQHHIIHH')
COMPLETION = struct.Struct('<QHHBBHQQQQQII')
CHUNK = struct.Struct('<QQIIIHH')
SUBMISSION_WORDS = struct.Struct('<QIHHQII')
DONE = struct.Struct('<QQQQIHBB24x')
CHUNK_RESULT = struct.Struct('<QIIHHBBH')
CHAIN = struct.Struct('<QQQIIHHH26x')
CHAIN_AFTER = struct.Struct('<I')  # a submission's checksum,
CHAIN_AFTER_AT = 52                # at this place
NO_RESULTS = b'\xff' * CHUNK_RESULT.size
SUBMISSION_MEMBERS = ('opcode job_class flags codec parameter user_data src_offset src_nbytes '
                      'dst_offset dst_nbytes src_region dst_region checksum timeout_us '
                      'encoder level').split()
COMPLETION_MEMBERS = ('user_data result reason engine attempt flags bit_offset in_nbytes '
                      'out_nbytes queue_ns run_ns first_bad_chunk reserved').split()
CHUNK_MEMBERS = 'src_offset dst_offset src_nbytes dst_nbytes checksum src_region dst_region'.split()
CHUNK_RESULT_MEMBERS = 'bit_offset in_nbytes out_nbytes result reason engine attempt reserved'.split()

OP_NOOP, OP_DECODE, OP_BATCH, OP_CANCEL = 1, 2, 3, 4
CLASS_DEFAULT, CLASS_INTERACTIVE, CLASS_NORMAL, CLASS_BACKGROUND = range(4)
JOB_EXACT_INPUT, JOB_EXACT_OUTPUT, JOB_CHECKSUM, JOB_DISCARD, JOB_COMPRESS = 1, 2, 4, 8, 16
SUBMISSION_DONE_WORD, SUBMISSION_START_WORD, SUBMISSION_CHAIN = 32, 64, 128
WAIT_PACKET, WAIT_FUTEX = 1 << 32, 1 << 33
FLAG_DRAINING, FLAG_FORFEITED = 1, 4
COMPLETION_RESULTS = 1

SEALS = 0x2 | 0x4  # F_SEAL_SHRINK, F_SEAL_GROW
SEAL_WRITE, SEAL_FUTURE_WRITE = 0x8, 0x10
FEATURE_GPU_MEMORY, FEATURE_MODELS, FEATURE_MARKS, FEATURE_GPU_SOURCES = 1, 1 << 2, 1 << 3, 1 << 4
FEATURE_FILES, FEATURE_COMPRESS, FEATURE_DONE_WORDS = 1 << 1, 1 << 6, 1 << 7
FEATURE_START_WORDS, FEATURE_CHAINS = 1 << 8, 1 << 9
MEMORY_KIND_GPU, MEMORY_KIND_FILE = 2, 3
F_ADD_SEALS, F_GET_SEALS = 1033, 1034
SYS_FUTEX, FUTEX_WAIT = 202, 0
MADV_DONTFORK = 10


def numbers_of(header, pattern):
    """{name in lower case: number} of the lines in a header that match."""
    with open(os.path.join(TOP, header), encoding='utf-8') as file:
        return {name.lower(): int(number) for name, number in re.findall(pattern, file.read())}


RESULTS = numbers_of('proto/wharf_result.h', r'\bWHARF_(?!REASON_)(\w+) = (\d+)')
REASONS = numbers_of('proto/wharf_result.h', r'\bWHARF_REASON_(\w+) = (\d+)')
ENGINES = numbers_of('proto/wharf_job.h', r'\bWHARF_ENGINE_(\w+) = (\d+)')
CODECS = numbers_of('encoders/wharf_codec.h', r'\bX\((\w+), \w+, (\d+),')


def load_messages():
    """The module that protoc makes of control.proto."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(['protoc', f'--proto_path={TOP}/proto', f'--python_out={folder}',
                        'control.proto'], check=True)
        spec = importlib.util.spec_from_file_location('control_pb2', f'{folder}/control_pb2.py')
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


messages = load_messages()
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
fence_lock = threading.Lock()


def full_fence():
    with fence_lock:
        pass


class Refused(Exception):
    """An Error that the daemon answered, or sent before it closed."""

    def __init__(self, error):
        super().__init__(f'{errno.errorcode.get(error.code, error.code)}: {error.text}')
        self.code = error.code


class Lost(Exception):
    """The connection has ended."""


class ProtocolBroken(Exception):
    """The daemon did what the page forbids."""


def check(condition, text):
    if not condition:
        raise ProtocolBroken(text)


# ---- memory --------------------------------------------------------------------------------------

class Mapping:
    """Shared memory.  Python's own mmap gives no words of memory that is only for reading."""

    def __init__(self, fd, nbytes, writable):
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        address = libc.mmap(None, nbytes, protection, mmap.MAP_SHARED, fd, 0)
        if address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), 'mmap')
        self.address, self.nbytes = address, nbytes
        libc.madvise(address, nbytes, MADV_DONTFORK)

    def close(self):
        libc.munmap(self.address, self.nbytes)

    def word32(self, offset):
        return ctypes.c_uint32.from_address(self.address + offset)

    def word64(self, offset):
        return ctypes.c_uint64.from_address(self.address + offset)

    def read(self, offset, nbytes):
        assert 0 <= offset and 0 <= nbytes and offset + nbytes <= self.nbytes
        return ctypes.string_at(self.address + offset, nbytes)

    def write(self, offset, data):
        assert 0 <= offset and offset + len(data) <= self.nbytes
        ctypes.memmove(self.address + offset, bytes(data), len(data))


def ring_nbytes(n_entries, entry=ENTRY):
    return (FIRST_ENTRY + entry * n_entries + PAGE - 1) // PAGE * PAGE


def sealed_memfd(nbytes, seals=SEALS, contents=b''):
    fd = os.memfd_create('wharf_client', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, nbytes)
    if contents:
        os.pwrite(fd, contents, 0)
    fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


def check_memfd(fd, nbytes):
    """What a client checks of descriptors from the daemon."""
    check(os.fstat(fd).st_size == nbytes, 'a descriptor of another length')
    check(fcntl.fcntl(fd, F_GET_SEALS) & 0x2, 'a descriptor that can shrink')
    check(not os.get_inheritable(fd), 'a descriptor that is not close-on-exec')


# ---- control socket ------------------------------------------------------------------------------

class Connection:
    """Section 1: requests and replies, with wake-up packets between them."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self.last_id = 0

    def close(self):
        self.socket.close()

    def send(self, packet, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f'{len(fds)}i', *fds))]
        try:
            self.socket.sendmsg([packet], rights if fds else [], socket.MSG_NOSIGNAL)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Lost from error

    def ring(self):
        """A wake-up packet.  One that does not fit is not needed."""
        try:
            self.socket.send(b'\0', socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass

    def _read(self):
        room = socket.CMSG_SPACE(4 * (MAX_DESCRIPTORS + 1))
        how = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
        try:
            return self.socket.recvmsg(MAX_MESSAGE + 1, room, how)
        except ConnectionResetError:
            # Said once, before what was sent earlier.
            return self.socket.recvmsg(MAX_MESSAGE + 1, room, how)

    def receive(self, timeout):
        """(Reply, descriptors), (None, []) for a wake-up, None when nothing came in time."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        if not poll.poll(1000 * timeout):
            return None
        packet, control, flags, _ = self._read()
        fds = [fd for level, kind, data in control
               if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
               for fd in struct.unpack(f'{len(data) // 4}i', data)]
        if not packet:
            raise Lost
        check(not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) and len(packet) <= MAX_MESSAGE,
              'a truncated packet')
        if len(packet) == 1:
            return None, fds
        reply = messages.Reply.FromString(packet)
        if reply.id == 0:
            raise Refused(reply.error)
        return reply, fds

    def call(self, body, message, fds=(), timeout=PATIENCE_S):
        """Sends a request and waits for its reply; returns that reply's body and descriptors."""
        self.last_id += 1
        request = messages.Request(id=self.last_id)
        getattr(request, body).CopyFrom(message)
        packet = request.SerializeToString()
        check(2 <= len(packet) <= MAX_MESSAGE, 'a request of that length')
        self.send(packet, fds)
        end = time.monotonic() + timeout
        while True:
            got = self.receive(max(0, end - time.monotonic()))
            check(got is not None, f'no reply to {body} in time')
            reply, fds = got
            if reply is None:
                continue
            check(reply.id == request.id, 'a reply with another id')
            kind = reply.WhichOneof('body')
            if kind == 'error':
                raise Refused(reply.error)
            return kind, getattr(reply, kind), fds

    def ask(self, body, message, expected, fds=()):
        """call, for one kind of reply."""
        kind, reply, came = self.call(body, message, fds)
        check(kind == expected and (not came or kind == 'open_queue'), f'{kind} as reply to {body}')
        return (reply, came) if kind == 'open_queue' else reply

    def hello(self, version=1, min_version=1, required=0, optional=0):
        return self.ask('hello', messages.HelloRequest(
            version=version, min_version=min_version, required_features=required,
            optional_features=optional, client_name='wharf_client.py'), 'hello')


# ---- rings ---------------------------------------------------------------------------------------

def crossed(first, to, index):
    """Whether a tail's move from first to `to` published the entry of that index."""
    return (index - first) & 0xffffffff < (to - first) & 0xffffffff


class Rings:
    """Sections 2, 3 and 4.  Every index is a private copy; no word is read back or read twice."""

    def __init__(self, connection, c_fd, d_fd, n_entries, has_marks, has_words=False):
        self.connection, self.n_entries, self.has_marks = connection, n_entries, has_marks
        c_nbytes = ring_nbytes(n_entries, ENTRY + WORDS if has_words else ENTRY)
        d_nbytes = ring_nbytes(n_entries, ENTRY + MARK if has_marks else ENTRY)
        check_memfd(c_fd, c_nbytes)
        check_memfd(d_fd, d_nbytes)
        self.c = Mapping(c_fd, c_nbytes, True)
        fcntl.fcntl(c_fd, F_ADD_SEALS, SEAL_FUTURE_WRITE)
        self.d = Mapping(d_fd, d_nbytes, False)
        self.sq_tail, self.cq_head = self.c.word32(0), self.c.word32(128)
        self.cq_wait = self.c.word64(256)
        self.cq_tail, self.sq_wait = self.d.word32(256), self.d.word64(384)
        self.flags = self.d.word32(512)
        self.submitted = self.published = 0  # sq_tail with and without what is not yet published
        self.reaped = self.seen = 0          # cq_head, and cq_tail as last loaded

    def close(self):
        self.c.close()
        self.d.close()

    def n_outstanding(self):
        return (self.submitted - self.reaped) & 0xffffffff

    def submit(self, entry, words=None):
        assert self.n_outstanding() < self.n_entries
        slot = self.submitted % self.n_entries
        if words is not None:
            self.c.write(FIRST_ENTRY + ENTRY * self.n_entries + WORDS * slot, words)
        self.c.write(FIRST_ENTRY + ENTRY * slot, entry)
        self.submitted = (self.submitted + 1) & 0xffffffff

    def publish(self, look=True):
        """Publishes what was submitted, and wakes the daemon if it wants that; without `look`,
        always."""
        first = self.published
        self.cq_head.value = self.reaped
        self.sq_tail.value = self.published = self.submitted
        if not look:
            self.connection.ring()
            return
        full_fence()
        wait = self.sq_wait.value
        if wait & WAIT_PACKET and crossed(first, self.published, wait & 0xffffffff):
            self.connection.ring()

    def look(self):
        """How many completions can be reaped."""
        tail = self.cq_tail.value
        check((tail - self.seen) & 0xffffffff <= (self.published - self.seen) & 0xffffffff,
              f'cq_tail goes from {self.seen} to {tail}, past {self.published}')
        self.seen = tail
        return (tail - self.reaped) & 0xffffffff

    def reap(self):
        """The next completion as bytes, or None."""
        if self.reaped == self.seen and self.look() == 0:
            return None
        entry = self.d.read(FIRST_ENTRY + ENTRY * (self.reaped % self.n_entries), ENTRY)
        self.reaped = (self.reaped + 1) & 0xffffffff
        return entry

    def marked(self):
        """The indices of submissions that the daemon, which is dead, had in its hands; None: it does
        not tell."""
        if not self.has_marks:
            return None
        table = self.d.read(FIRST_ENTRY + ENTRY * self.n_entries, MARK * self.n_entries)
        marks = {self.d.word32(132).value, *struct.unpack(f'<{self.n_entries}I', table)}
        # Two indices that are never outstanding together have that one.
        last = {0xffffffff} if 1 << 31 in marks else set()
        return {mark - 1 for mark in marks if mark} | last

    def arm(self, ways, n):
        """Asks to be woken when n can be reaped, and looks again: how many can."""
        assert 1 <= n <= self.n_outstanding()
        self.cq_wait.value = ways | (self.reaped + n - 1) & 0xffffffff
        full_fence()
        return self.look()

    def sleep_on_futex(self, limit_ns):
        """Until cq_tail is no longer what it was when last seen, or that time is over."""
        limit = struct.pack('qq', 0, limit_ns)
        libc.syscall(ctypes.c_long(SYS_FUTEX), ctypes.c_void_p(self.d.address + 256),
                     ctypes.c_int(FUTEX_WAIT), ctypes.c_uint32(self.seen),
                     ctypes.c_char_p(limit), None, ctypes.c_int(0))


# ---- a client ------------------------------------------------------------------------------------

class Outstanding:
    """A submission that was not reaped."""

    def __init__(self, entry, index, done=None, start=None, after=None, results=None):
        self.entry, self.index, self.n_deaths = entry, index, 0
        self.done, self.start, self.after, self.results = done, start, after, results
        self.has_ended = False

    def entry_at(self, index):
        """The submission when it is the one of this index: a chain names the one that it waits for,
        or itself."""
        self.index = index
        if self.after is None:
            return self.entry
        before = index if self.after.has_ended else self.after.index
        return self.entry[:CHAIN_AFTER_AT] + CHAIN_AFTER.pack(before) + self.entry[
            CHAIN_AFTER_AT + CHAIN_AFTER.size:]

    def words(self):
        """What C has of its words."""
        if self.done is None and self.start is None:
            return None
        region, offset, serial = self.done or (0, 0, 0)
        start_region, start_offset, start_serial, timeout_us = self.start or (0, 0, 0, 0)
        return SUBMISSION_WORDS.pack(offset, serial, region, start_region, start_offset,
                                     start_serial, timeout_us)


class Client:
    """A session, and with it what section 5 says a client keeps: a copy of each submission that it
    has not reaped, the arena's descriptor, the regions, the models."""

    def __init__(self, path, n_entries=64, arena_nbytes=1 << 20, way='futex', engine='auto'):
        self.path, self.n_entries, self.way, self.engine = path, n_entries, way, ENGINES[engine]
        self.regions = {}      # number: RegisterMemoryRequest, descriptor
        self.models = {}       # number: RegisterModelRequest, descriptor
        self.outstanding = {}  # user_data: [Outstanding, ...], in the order of submission
        self.arena_fd = None
        self.n_replayed = 0
        self._connect()
        self._open(arena_nbytes)

    def _connect(self):
        self.connection = Connection(self.path)
        try:
            self.hello = self.connection.hello(optional=FEATURE_MODELS | FEATURE_MARKS |
                                               FEATURE_GPU_MEMORY | FEATURE_GPU_SOURCES |
                                               FEATURE_COMPRESS | FEATURE_FILES |
                                               FEATURE_DONE_WORDS | FEATURE_START_WORDS |
                                               FEATURE_CHAINS)
        except (Refused, Lost, ProtocolBroken):
            self.connection.close()
            raise

    def _open(self, arena_nbytes):
        bring = self.arena_fd is not None
        reply, fds = self.connection.ask(
            'open_queue', messages.OpenQueueRequest(
                n_entries=self.n_entries, arena_nbytes=arena_nbytes, bring_arena=bring,
                engine=self.engine),
            'open_queue', [self.arena_fd] if bring else [])
        check(len(fds) == (3 if arena_nbytes and not bring else 2), 'another number of descriptors')
        check(reply.n_entries == self.n_entries, 'another number of entries')
        if len(fds) == 3:
            self.arena_fd = fds[2]
            check_memfd(self.arena_fd, reply.arena_nbytes)
            self.arena = Mapping(self.arena_fd, reply.arena_nbytes, True)
        self.rings = Rings(self.connection, fds[0], fds[1], self.n_entries,
                           bool(self.hello.features & FEATURE_MARKS),
                           bool(self.hello.features & FEATURE_DONE_WORDS))
        self.ring_fds = fds[:2]

    def _close_rings(self):
        self.rings.close()
        self.connection.close()
        for fd in self.ring_fds:
            os.close(fd)

    def close(self):
        self._close_rings()
        if self.arena_fd is not None:
            self.arena.close()
            os.close(self.arena_fd)

    def register(self, region, fd, nbytes, read_only=False, kind=1):
        request = messages.RegisterMemoryRequest(region=region, kind=kind, nbytes=nbytes,
                                                 read_only=read_only)
        self.connection.ask('register_memory', request, 'done', [fd])
        self.regions[region] = (request, fd)

    def unregister(self, region):
        self.connection.ask('unregister_memory', messages.UnregisterMemoryRequest(region=region),
                            'done')
        del self.regions[region]

    def register_model(self, number, codec, contents):
        fd = sealed_memfd(len(contents), SEALS | SEAL_WRITE, contents)
        request = messages.RegisterModelRequest(model=number, codec=codec, nbytes=len(contents))
        try:
            self.connection.ask('register_model', request, 'done', [fd])
        except Refused:
            os.close(fd)
            raise
        self.models[number] = (request, fd)

    def unregister_model(self, number):
        self.connection.ask('unregister_model', messages.UnregisterModelRequest(model=number),
                            'done')
        os.close(self.models.pop(number)[1])

    def stats(self):
        """All metric families, from all pages."""
        families, first = [], 0
        while True:
            page = self.connection.ask('stats', messages.StatsRequest(first=first), 'stats')
            families += page.families
            check(page.next == 0 or page.next > first, 'pages go back')
            if page.next == 0:
                return families
            first = page.next

    def _forget_results(self, job):
        """What a chain reads is not good before the batch has written it."""
        if job.results is not None:
            self.arena.write(job.results[0], NO_RESULTS * job.results[1])

    def submit(self, publish=True, done=None, start=None, after=None, results=None, **members):
        """Submits; members that are not named are 0.  user_data is to be another for each.  done:
        region (the arena's), offset and serial number of a done word; start: the same of a start
        word, and its timeout; after: of a chain, what the submission gave for which it waits;
        results: of a batch that is waited for, their place in the arena and their number."""
        if done is not None:
            members['flags'] = members.get('flags', 0) | SUBMISSION_DONE_WORD
        if start is not None:
            members['flags'] = members.get('flags', 0) | SUBMISSION_START_WORD
        entry = SUBMISSION.pack(*(members.get(name, 0) for name in SUBMISSION_MEMBERS))
        assert set(members) <= set(SUBMISSION_MEMBERS)
        job = Outstanding(entry, self.rings.submitted, done, start, after, results)
        self._forget_results(job)
        self.outstanding.setdefault(members.get('user_data', 0), []).append(job)
        self.rings.submit(job.entry_at(self.rings.submitted), job.words())
        if publish:
            self.publish()
        return job

    def publish(self):
        self.rings.publish(look=self.way != 'poll')

    def _take(self):
        """All completions that are there."""
        done = []
        while (entry := self.rings.reap()) is not None:
            completion = dict(zip(COMPLETION_MEMBERS, COMPLETION.unpack(entry)))
            jobs = self.outstanding.get(completion['user_data'])
            check(jobs, 'a completion of nothing')
            jobs.pop(0).has_ended = True
            if not jobs:
                del self.outstanding[completion['user_data']]
            done.append(completion)
        return done

    def _sleep(self, n):
        """Until n completions may be there, or something else has happened."""
        ways = {'futex': WAIT_FUTEX, 'packet': WAIT_PACKET, 'poll': None}[self.way]
        if ways is not None and self.rings.arm(ways, n) >= n:
            return
        if self.way == 'futex':
            self.rings.sleep_on_futex(50_000_000)
        else:
            self.connection.receive(20 if self.way == 'packet' else 0.001)
        # Until the socket is empty; and the end of the connection is seen nowhere else.
        while self.connection.receive(0) is not None:
            pass

    def wait(self, n, timeout=PATIENCE_S):
        """n completions, or more."""
        done, end = self._take(), time.monotonic() + timeout
        while len(done) < n:
            check(time.monotonic() < end, f'{len(done)} of {n} completions in {timeout} s')
            self._sleep(n - len(done))
            done += self._take()
        return done

    def run(self, **members):
        """Submits one and returns its completion."""
        self.submit(**members)
        done = self.wait(1)
        check(len(done) == 1, 'more completions than one')
        return done[0]

    def _jobs(self):
        return [job for jobs in self.outstanding.values() for job in jobs]

    def _count_death(self):
        """Against what the daemon had in its hands, or all that it may have had."""
        marked = self.rings.marked()
        for job in self._jobs():
            job.n_deaths += marked is None or job.index in marked

    def _writes_file(self, entry):
        """Whether a destination of the job is in a file; a batch's table is in the arena."""
        members = dict(zip(SUBMISSION_MEMBERS, SUBMISSION.unpack(entry)))
        numbers = [members['dst_region']]
        if members['opcode'] == OP_BATCH:
            table = self.arena.read(members['src_offset'], members['src_nbytes'])
            numbers = [chunk[-1] for chunk in CHUNK.iter_unpack(table)]
        return any(self.regions[number][0].kind == MEMORY_KIND_FILE
                   for number in numbers if number in self.regions)

    def _abandon(self):
        """Jobs that may have written to a file are not submitted again: they have ended so."""
        marked = self.rings.marked()
        ended = []
        for user_data, jobs in list(self.outstanding.items()):
            left = [job for job in jobs if not self._writes_file(job.entry) or
                    (marked is not None and job.index not in marked)]
            ended += [{**dict.fromkeys(COMPLETION_MEMBERS, 0), 'user_data': user_data,
                       'result': RESULTS['file_error'],
                       'reason': REASONS['file_abandoned']}] * (len(jobs) - len(left))
            self.outstanding[user_data] = left
            if not left:
                del self.outstanding[user_data]
        return ended

    def done_word(self, done):
        """What a done word of the arena says, as a completion; None if it is not set."""
        _, offset, serial = done
        word = self.arena.word64(offset).value
        if word >> 32 != serial:
            return None
        _, bit_offset, in_nbytes, out_nbytes, bad, flags, engine, attempt = DONE.unpack(
            self.arena.read(offset, DONE.size))
        return {**dict.fromkeys(COMPLETION_MEMBERS, 0), 'result': word & 0xffff,
                'reason': word >> 16 & 0xffff, 'engine': engine, 'attempt': attempt,
                'flags': flags, 'bit_offset': bit_offset, 'in_nbytes': in_nbytes,
                'out_nbytes': out_nbytes, 'first_bad_chunk': bad}

    def _end_told(self):
        """Jobs whose done words are set have ended so."""
        ended = []
        for user_data, jobs in list(self.outstanding.items()):
            for job in list(jobs):
                said = job.done and self.done_word(job.done)
                if said:
                    jobs.remove(job)
                    job.has_ended = True
                    ended.append({**said, 'user_data': user_data})
            if not jobs:
                del self.outstanding[user_data]
        return ended

    def come_back(self, timeout=PATIENCE_S):
        """Section 5, after the connection was lost: returns what the dead daemon had completed."""
        done = self._take()
        check(not self.rings.flags.value & FLAG_FORFEITED, 'the session is over for good')
        self._count_death()
        done += self._abandon()
        self._close_rings()
        end = time.monotonic() + timeout
        while True:
            try:
                self._connect()
                break
            except (OSError, Lost):
                check(time.monotonic() < end, 'no daemon comes back')
                time.sleep(0.005)
        self._open(self.arena.nbytes if self.arena_fd is not None else 0)
        for request, fd in self.regions.values():
            self.connection.ask('register_memory', request, 'done', [fd])
        for request, fd in self.models.values():
            self.connection.ask('register_model', request, 'done', [fd])
        done += self._end_told()
        for job in self._jobs():
            self._forget_results(job)
            self.rings.submit(job.entry_at(self.rings.submitted), job.words())
            self.n_replayed += 1
        self.rings.publish(look=self.way != 'poll')
        return done

    def wait_through(self, n):
        """wait, whatever becomes of the daemon."""
        done = []
        while len(done) < n:
            try:
                done += self.wait(1)
            except Lost:
                done += self.come_back()
        return done
