#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python_arrays_test.py [--build FOLDER] [PATTERN]: arrays of other packages as sources and outputs, without copies.

No such package is needed, and no GPU: tensors of DLPack are made here; memfds stand for a GPU's memory, for a daemon
with the device's code on the CPU, and a library of the tests for CUDA's driver.
"""
import ctypes
import errno
import gc
import os
import subprocess
import sys
import threading
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
sys.dont_write_bytecode = True
import module_tests  # noqa: E402  pylint: disable=wrong-import-position
from module_tests import Skipped, in_child, raises  # noqa: E402  pylint: disable=wrong-import-position
from private_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

TEXT = b''.join(b'line %d of a text\n' % i for i in range(1000))
PACKED = zlib.compress(TEXT)
ON_CPU, ON_CUDA, ON_CUDA_HOST, ON_ROCM = 1, 2, 3, 10
BUILD = None
DAEMON = None
wharf = None


# ---- tensors of DLPack ---------------------------------------------------------------------------

class DLTensor(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('device_type', ctypes.c_int32), ('device_id', ctypes.c_int32),
                ('ndim', ctypes.c_int32), ('code', ctypes.c_uint8), ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16),
                ('shape', ctypes.POINTER(ctypes.c_int64)), ('strides', ctypes.POINTER(ctypes.c_int64)),
                ('byte_offset', ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [('tensor', DLTensor), ('context', ctypes.c_void_p), ('deleter', DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [('major', ctypes.c_uint32), ('minor', ctypes.c_uint32), ('context', ctypes.c_void_p), ('deleter', DELETER),
                ('flags', ctypes.c_uint64), ('tensor', DLTensor)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]


class Tensor:
    """What PyTorch or CuPy give: memory, and how its elements lie there."""

    def __init__(self, memory, shape=None, *, bits=8, lanes=1, strides=None, device=ON_CPU, real_device=None, offset=0,
                 version=(1, 0), flags=0, name=None, is_null=False):
        self.memory = memory
        self.shape = (len(memory),) if shape is None else shape
        address = memory if isinstance(memory, int) else ctypes.addressof((ctypes.c_char * len(memory)).from_buffer(memory))
        self.device, self.version, self.n_deleted, self.kwargs, self.name = device, version, 0, None, name
        n = len(self.shape)
        self.arrays = (ctypes.c_int64 * n)(*self.shape), (ctypes.c_int64 * n)(*strides) if strides else None
        tensor = DLTensor(None if is_null else address, real_device or device, 0, n, 1, bits, lanes, self.arrays[0],
                          self.arrays[1], offset)
        self.deleter = DELETER(self.delete)
        self.managed = Versioned(*version, None, self.deleter, flags, tensor) if version else Managed(tensor, None, self.deleter)

    def delete(self, _):
        self.n_deleted += 1

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **kwargs):
        if not self.version and 'max_version' in kwargs:
            raise TypeError('max_version is not known here')
        self.kwargs = kwargs
        name = self.name or (b'dltensor_versioned' if self.version else b'dltensor')
        self.kept = name
        self.capsule = new_capsule(ctypes.addressof(self.managed), name, None)
        return self.capsule


def test_tensors_are_sources_and_outputs():
    for version in (1, 0), (1, 7), None:
        for bits, lanes, shape in (8, 1, (len(TEXT),)), (32, 1, (2, 1, len(TEXT) // 8)), (16, 2, (len(TEXT) // 4, 1)):
            out, source = bytearray(len(TEXT) + 8), bytearray(b'??' + PACKED)
            n = bits * lanes // 8
            for dimension in shape:
                n *= dimension
            target = Tensor(out, shape, bits=bits, lanes=lanes, version=version)
            given = Tensor(source, (len(PACKED),), offset=2, version=version)
            try:
                assert wharf.decompress(given, 'zlib', out=target) == len(TEXT)
            except wharf.OutputTooSmallError:
                assert n < len(TEXT)
            else:
                assert out[:len(TEXT)] == TEXT
            for tensor in given, target:
                assert tensor.n_deleted == 1 and capsule_name(tensor.capsule).startswith(b'used_dltensor')
                assert 'stream' not in tensor.kwargs
        assert wharf.decompress(Tensor(bytearray(PACKED), version=version), 'zlib') == TEXT
    outs = [bytearray(len(TEXT)) for _ in range(3)]
    tensors = [Tensor(out, device=ON_CUDA_HOST) for out in outs]
    assert wharf.decompress_batch([PACKED] * 3, 'zlib', outs=tensors) == [len(TEXT)] * 3 and outs == [TEXT] * 3
    same = bytearray(len(TEXT))
    raises(ValueError, wharf.decompress_batch, [PACKED] * 2, 'zlib', outs=[Tensor(same), Tensor(same)])
    assert all(tensor.n_deleted == 1 for tensor in tensors)
    with wharf.Client('embedded') as client:
        target = Tensor(outs[0])
        job = client.submit(Tensor(bytearray(PACKED)), 'zlib', out=target)
        assert target.n_deleted == 0 and job.result() == len(TEXT) and target.n_deleted == 1


class Rows(Tensor):
    """An array of rows, which counts what is asked of it."""

    def __init__(self, memory, shape, **more):
        super().__init__(memory, shape, **more)
        self.n_items = 0

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, i):
        if not 0 <= i < self.shape[0]:
            raise IndexError(i)
        self.n_items += 1
        return memoryview(self.memory)[i * self.shape[1]:(i + 1) * self.shape[1]]


def test_rows_of_an_array_are_the_chunks_of_a_batch():
    n = len(TEXT)
    wide, sources = bytearray(3 * (n + 5)), bytearray(PACKED * 3)
    expected = b''.join(TEXT + bytes(5) for _ in range(3))
    for client in wharf, wharf.Client('embedded'):
        outs = Rows(wide, (3, n + 5))
        assert client.decompress_batch([PACKED] * 3, 'zlib', outs=outs) == [n] * 3 and wide == expected
        assert outs.n_items == 0 and outs.n_deleted == 1
        wide[:] = bytes(len(wide))
        given = memoryview(sources).cast('B', (3, len(PACKED)))
        assert client.decompress_batch(given, 'zlib', outs=memoryview(wide).cast('B', (3, n + 5))) == [n] * 3
        assert wide == expected
        wide[:] = bytes(len(wide))
        assert client.decompress_batch(given, 'zlib') == [TEXT] * 3
        assert client.decompress_batch(given, 'zlib', outs=Rows(wide, (3, n + 5)), sizes=[n, n + 5, n]) == [n] * 3
        # A row that is too short is that chunk's error, and what is beside it stays as it is.
        short = bytearray(2 * n)
        damaged = [PACKED, PACKED[:-1]]
        results = client.decompress_batch(damaged, 'zlib', outs=Rows(short, (2, n)), errors='return')
        assert results[0] == n and isinstance(results[1], wharf.DataError) and results[1].index == 1
        # What has gaps, another number of rows, or may not be written is asked for its items.
        gaps = Rows(bytearray(4 * n), (2, n), strides=(2 * n, 1))
        assert client.decompress_batch([PACKED] * 2, 'zlib', outs=gaps) == [n] * 2 and gaps.n_items == 2
        raises(ValueError, client.decompress_batch, [PACKED] * 2, 'zlib', outs=Rows(wide, (3, n + 5)))
        raises((BufferError, NotImplementedError, TypeError), client.decompress_batch, [PACKED] * 2, 'zlib',
               outs=memoryview(bytes(2 * n)).cast('B', (2, n)))
    job = client.submit_batch(given, 'zlib', outs=Rows(wide, (3, n + 5)))
    assert job.result() == [n] * 3
    client.close()


def test_strides_are_of_arrays_without_gaps():
    n = len(TEXT)
    for shape, strides in ((n,), (1,)), ((2, n // 2), (n // 2, 1)), ((1, n), (77, 1)), ((n, 1), (1, -5)):
        out = bytearray(n)
        assert wharf.decompress(PACKED, 'zlib', out=Tensor(out, shape, strides=strides)) == n and out == TEXT
    for shape, strides in ((n // 2,), (2,)), ((2, n // 2), (1, 2)), ((n,), (-1,)), ((2, n // 2), (n, 1)), ((n,), (0,)):
        out = Tensor(bytearray(n), shape, strides=strides)
        raises(BufferError, wharf.decompress, PACKED, 'zlib', out=out)
        assert out.n_deleted == 1


def test_tensors_that_cannot_be_used_are_refused():
    huge = 1 << 62
    for refused in ({'flags': 1}, {'flags': 2}, {'bits': 4}, {'bits': 0}, {'lanes': 0}, {'shape': (-5,)}, {'shape': (huge, 3)},
                    {'shape': (huge, 3), 'bits': 32}, {'device': ON_ROCM}, {'real_device': ON_CUDA}, {'version': (2, 0)},
                    {'name': b'other'}, {'name': b'used_dltensor'}, {'is_null': True}, {'shape': (1,) * 65},
                    {'strides': (huge,), 'bits': 64}):
        memory = bytearray(len(TEXT))
        out = Tensor(memory, **refused)
        raises(BufferError, wharf.decompress, PACKED, 'zlib', out=out)
        assert not any(memory) and out.n_deleted <= 1, refused
    # What is read-only is a source all the same.
    assert wharf.decompress(Tensor(bytearray(PACKED), flags=1), 'zlib') == TEXT
    assert wharf.decompress(b'', 'stored', out=Tensor(bytearray(1), (0, huge, huge))) == 0


class Answers:
    """Whose methods give what they like."""

    def __init__(self, device, dlpack=None):
        self.device, self.dlpack = device, dlpack

    def __dlpack_device__(self):
        return self.device()

    def __dlpack__(self, **kwargs):
        return self.dlpack(**kwargs)


def test_odd_tensors_do_no_harm():
    def fail(**_):
        raise RuntimeError('no tensor today')

    for kind, thing in ((RuntimeError, Answers(fail)), (RuntimeError, Answers(lambda: (1, 0), fail)),
                        (BufferError, Answers(lambda: 5)), (BufferError, Answers(lambda: (1, 2, 3))),
                        (TypeError, Answers(lambda: ('cpu', 0))), (OverflowError, Answers(lambda: (1 << 80, 0))),
                        (BufferError, Answers(lambda: (1, 0), lambda **_: None)), (TypeError, Answers(lambda: (1, 0))),
                        (BufferError, Answers(lambda: (1, 0), lambda **_: new_capsule(8, b'dltensorr', None)))):
        raises(kind, wharf.decompress, thing, 'zlib')
        raises(kind, wharf.decompress, PACKED, 'zlib', out=thing)


# ---- arrays of a GPU -----------------------------------------------------------------------------

class Array:
    """What CuPy, Numba or PyTorch give of a GPU's array."""

    def __init__(self, address, nbytes, **more):
        self.__cuda_array_interface__ = {'shape': (nbytes,), 'typestr': '|u1', 'data': (address, False), 'version': 3, **more}


def memory_of(array):
    return ctypes.addressof((ctypes.c_char * len(array)).from_buffer(array))


def test_gpu_arrays_are_refused_without_a_daemon():
    memory = bytearray(len(TEXT))
    arrays = Array(memory_of(memory), len(memory)), Tensor(memory, device=ON_CUDA)
    with wharf.Client('embedded') as client:
        for array in arrays:
            for call in (lambda array: client.decompress(PACKED, 'zlib', out=array), lambda array: client.submit(PACKED, 'zlib', out=array),
                         lambda array: client.decompress_batch([PACKED], 'zlib', outs=[array]),
                         lambda array: client.submit_batch([array], 'zlib', sizes=5),
                         lambda array: wharf.decompress(array, 'zlib', size=100)):
                error = raises(OSError, call, array)
                assert error.errno == errno.EOPNOTSUPP and 'daemon' in str(error), error
            raises(ValueError, client.decompress, array, 'zlib')
        assert raises(OSError, client.alloc_gpu, 100).errno == errno.EOPNOTSUPP
        assert raises(OSError, client.register_gpu, 0, 1 << 20, 100).errno == errno.EOPNOTSUPP
    assert not any(memory) and arrays[1].kwargs['stream'] == 1
    raises(TypeError, wharf.GpuMemory)


def test_odd_gpu_arrays_do_no_harm():
    good = {'address': 1 << 40, 'nbytes': 100}
    for kind, more in ((BufferError, {'mask': 5}), (BufferError, {'typestr': ''}), (BufferError, {'typestr': '<f'}),
                       (BufferError, {'typestr': 5}), (BufferError, {'shape': 5}), (BufferError, {'shape': (1,) * 65}),
                       (BufferError, {'shape': (-1,)}), (BufferError, {'shape': (1 << 62, 9)}), (TypeError, {'shape': ('a',)}),
                       (BufferError, {'strides': (2,)}), (BufferError, {'strides': (1, 1)}), (BufferError, {'strides': 'text'}),
                       (OverflowError, {'shape': (1 << 80,)}), (BufferError, {'data': None}), (TypeError, {'data': ('a', False)}),
                       (OverflowError, {'data': (-1, False)}), (BufferError, {'data': (5, True)}), (ValueError, {'stream': 0}),
                       (TypeError, {'stream': 'text'}), (OverflowError, {'stream': 1 << 70})):
        raises(kind, wharf.decompress, PACKED, 'zlib', out=Array(**good, **more))
    for interface in None, 5, {}, []:
        odd = Array(**good)
        odd.__cuda_array_interface__ = interface
        raises(BufferError, wharf.decompress, PACKED, 'zlib', out=odd)


# ---- with a daemon that has a GPU ----------------------------------------------------------------

class Driver:
    """What stands for CUDA's driver, and what it counts."""

    def __init__(self):
        path = f'{BUILD}/tests/cuda-simt/libcuda.so.1'
        if not os.path.exists(path):
            raise Skipped("the library in the place of CUDA's driver was not built")
        self.library = ctypes.CDLL(path)

    def n_mapped(self):
        return ctypes.c_int.in_dll(self.library, 'driver_simt_n_mapped').value

    def waits(self):
        """How many, and for which stream the last one was."""
        return (ctypes.c_int.in_dll(self.library, 'driver_simt_n_waits').value,
                ctypes.c_void_p.in_dll(self.library, 'driver_simt_stream').value)


def with_gpu():
    global DAEMON  # pylint: disable=global-statement
    if not DAEMON:
        DAEMON = Daemon(f'{BUILD}/wharfd', sections='[gpu]\nengine = simt\ndevice = 0\n')
    return wharf.Client('daemon', socket=DAEMON.socket, patience=300)


def test_memory_needs_a_driver():
    # Elsewhere, since what a process has loaded stays.
    probe = subprocess.run([sys.executable, '-Sc', 'import ctypes; ctypes.CDLL("libcuda.so.1")'], check=False,
                           stderr=subprocess.DEVNULL)
    if probe.returncode == 0:
        raise Skipped('this machine has a driver')
    with with_gpu() as client:
        error = raises(OSError, client.alloc_gpu, 100)
        assert error.errno == errno.ENODEV and 'libcuda' in str(error), error


def read_at(address, nbytes):
    return ctypes.string_at(address, nbytes)


def test_memory_of_a_gpu_is_decoded_into_and_from():
    driver = Driver()
    with with_gpu() as client:
        memory = client.alloc_gpu(100000)
        assert len(memory) == 100000 and driver.n_mapped() == 1
        at, taken = memory.address, client.info()['arena_taken_nbytes']
        assert memory.__cuda_array_interface__['data'] == (at, False) and memory.__dlpack_device__() == (2, 0)
        assert client.decompress(PACKED, 'zlib', out=memory) == len(TEXT) and read_at(at, len(TEXT)) == TEXT
        # From one part of it to another, in one batch.
        ctypes.memmove(at, PACKED, len(PACKED))
        source = Array(at, len(PACKED))
        outs = [Array(at + 20000 * i + 4096, len(TEXT)) for i in range(4)]
        assert client.decompress_batch([source] * 4, 'zlib', outs=outs) == [len(TEXT)] * 4
        assert all(read_at(at + 20000 * i + 4096, len(TEXT)) == TEXT for i in range(4))
        job = client.submit(source, 'zlib', out=outs[0])
        assert raises(OSError, memory.unregister).errno == errno.EBUSY if not job.done() else True
        assert job.result() == len(TEXT)
        del job
        assert client.decompress(source, 'zlib', size=len(TEXT)) == TEXT
        assert client.submit(source, 'zlib', size=len(TEXT)).result() == TEXT
        ctypes.memset(at, 0, 10)
        assert raises(wharf.DataError, client.decompress, source, 'zlib', out=outs[1]).bit == 0
        raises(ValueError, client.decompress, source, 'zlib')
        assert client.info()['arena_taken_nbytes'] == taken
        memory.unregister()
        memory.unregister()
        raises(BufferError, client.decompress, PACKED, 'zlib', out=memory)
        del memory, source, outs
        gc.collect()
        assert driver.n_mapped() == 0


def test_the_callers_work_is_waited_for():
    driver = Driver()
    with with_gpu() as client:
        memory = client.alloc_gpu(100000)

        def waits(array):
            before = driver.waits()[0]
            assert client.decompress(PACKED, 'zlib', out=array) == len(TEXT)
            return driver.waits()[0] - before, driver.waits()[1]

        at = memory.address
        assert waits(Array(at, 50000, stream=1)) == (1, 1) and waits(Array(at, 50000, stream=2)) == (1, 2)
        assert waits(Array(at, 50000, stream=0x1230)) == (1, 0x1230)
        assert waits(Array(at, 50000, stream=None))[0] == 0
        # Nothing is said of streams: all are waited for.
        assert waits(Array(at, 50000)) == (1, None) and waits(memory) == (1, None)
        assert waits(Tensor(at, (50000,), device=ON_CUDA)) == (1, 1)
        os.environ['DRIVER_SIMT_FAILS'] = 'cuCtxSynchronize'
        try:
            assert raises(OSError, client.decompress, PACKED, 'zlib', out=memory).errno == errno.EIO
        finally:
            del os.environ['DRIVER_SIMT_FAILS']


def test_rows_in_a_gpus_memory_are_held_and_waited_for_once():
    driver, n_asked = Driver(), 0

    class Matrix(Array):
        def __init__(self, address, shape, **more):
            super().__init__(address, shape[0] * shape[1], **more)
            self.given = {**self.__cuda_array_interface__, 'shape': shape}
            self.shape = shape

        def __len__(self):
            return self.shape[0]

        def __getattribute__(self, name):
            nonlocal n_asked
            if name == '__cuda_array_interface__' and 'given' in self.__dict__:
                n_asked += 1
                return self.given
            return super().__getattribute__(name)

    with with_gpu() as client:
        memory = client.alloc_gpu(200000)
        before = driver.waits()[0]
        outs = Matrix(memory.address + 64, (5, 30000), stream=0x1230)
        assert client.decompress_batch([PACKED] * 5, 'zlib', outs=outs) == [len(TEXT)] * 5 and n_asked == 1
        assert driver.waits() == (before + 1, 0x1230)
        assert all(read_at(memory.address + 64 + 30000 * i, len(TEXT)) == TEXT for i in range(5))
        # The last row lies outside.
        raises(BufferError, client.decompress_batch, [PACKED] * 5, 'zlib',
               outs=Matrix(memory.address + 64, (5, 1 << 20), stream=0x1230))


def test_other_memory_of_a_gpu_is_refused():
    Driver()
    with with_gpu() as client, with_gpu() as other:
        memory, fourth = client.alloc_gpu(1 << 16), other.alloc_gpu(1 << 16)
        host = bytearray(len(TEXT))
        end = memory.address + (1 << 16)
        for array in (Array(memory_of(host), len(host)), Array(end - 100, 101), Array(end, 1), Array(memory.address - 1, 5),
                      Array(0, 5), Array((1 << 64) - 5, 5), fourth, Tensor(host, device=ON_CUDA)):
            for call in (lambda: client.decompress(PACKED, 'zlib', out=array), lambda: client.submit(PACKED, 'zlib', out=array),  # pylint: disable=cell-var-from-loop
                         lambda: client.decompress_batch([array], 'zlib', sizes=100)):  # pylint: disable=cell-var-from-loop
                assert 'alloc_gpu' in str(raises(BufferError, call))
        assert not any(host)
        raises(wharf.BadRequestError, client.decompress, Array(memory.address, 100), 'stored', out=Array(memory.address, 100))


def test_memory_of_the_programs_own_is_registered():
    Driver()
    fd = os.memfd_create('gpu memory', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 1 << 16)
    import fcntl  # pylint: disable=import-outside-toplevel
    import mmap  # pylint: disable=import-outside-toplevel
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    with mmap.mmap(fd, 1 << 16) as mapped, with_gpu() as client:
        at = memory_of(mapped)
        memory = client.register_gpu(fd, at, 1 << 16)
        assert client.decompress(PACKED, 'zlib', out=memory) == len(TEXT) and mapped[:len(TEXT)] == TEXT
        assert raises(OSError, client.register_gpu, fd, at, 1 << 16).errno == errno.EEXIST
        del memory
        memory = client.register_gpu(fd, at, 1 << 16, readonly=True)
        mapped[:len(PACKED)] = PACKED
        assert client.decompress(Array(at, len(PACKED)), 'zlib', size=1 << 20) == TEXT
        assert raises(OSError, client.submit, PACKED, 'zlib', out=memory).errno == errno.EFAULT
        raises(ValueError, client.register_gpu, fd, 0, 5)
        assert raises(OSError, client.register_gpu, -1, 1 << 40, 5).errno == errno.EBADF
        gc.collect()
    os.close(fd)


def test_memory_outlives_its_client_while_arrays_are_there():
    driver = Driver()
    before = driver.n_mapped()
    client = with_gpu()
    memory = client.alloc_gpu(1 << 16)
    client.decompress(PACKED, 'zlib', out=memory)
    capsule = memory.__dlpack__(stream=1, max_version=(1, 0), dl_device=(2, 0), copy=False)
    raises(BufferError, memory.__dlpack__, copy=True)
    raises(BufferError, memory.__dlpack__, dl_device=(1, 0))
    at = memory.address
    client.close()
    raises(ValueError, client.decompress, PACKED, 'zlib', out=memory)
    raises(ValueError, client.alloc_gpu, 5)
    del memory, client
    gc.collect()
    assert driver.n_mapped() == before + 1 and read_at(at, len(TEXT)) == TEXT
    in_child(gc.collect)
    del capsule
    assert driver.n_mapped() == before


def test_memory_that_cannot_be_made_is_said():
    driver = Driver()
    with with_gpu() as client:
        before = driver.n_mapped()
        for name, kind in ('cuMemCreate', MemoryError), ('cuMemSetAccess', OSError):
            os.environ['DRIVER_SIMT_FAILS'] = name
            try:
                raises(kind, client.alloc_gpu, 1 << 16)
            finally:
                del os.environ['DRIVER_SIMT_FAILS']
        raises(OSError, client.alloc_gpu, 1 << 16, device=100)
        raises(ValueError, client.alloc_gpu, 0)
        assert driver.n_mapped() == before


def test_memory_is_unregistered_beside_jobs():
    """Calls either reach the memory or say that they do not."""
    Driver()
    with with_gpu() as client:
        ends, failed = threading.Event(), []

        def work(array):
            while not ends.is_set():
                try:
                    assert client.decompress(PACKED, 'zlib', out=array) == len(TEXT)
                except (BufferError, OSError):
                    pass
                except BaseException as error:  # pylint: disable=broad-exception-caught
                    failed.append(error)

        memory = client.alloc_gpu(1 << 16)
        thread = threading.Thread(target=work, args=(Array(memory.address, 50000, stream=None),))
        thread.start()
        try:
            for _ in range(20):
                memory = client.alloc_gpu(1 << 16)
                try:
                    memory.unregister()
                except OSError as error:
                    assert error.errno == errno.EBUSY
        finally:
            ends.set()
            thread.join()
        assert not failed, failed


def main():
    global BUILD, wharf  # pylint: disable=global-statement
    BUILD, pattern = module_tests.begin()
    os.environ['WHARF_SOCKET'] = '/no/such/socket'
    import wharf as module  # pylint: disable=import-outside-toplevel
    wharf = module
    try:
        return module_tests.run(globals(), pattern) > 0
    finally:
        if DAEMON:
            DAEMON.remove()


if __name__ == '__main__':
    sys.exit(main())
