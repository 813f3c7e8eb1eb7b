/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GpuMemory: memory of a GPU that the daemon reaches, and the check of arrays that lie there.
 *
 * CUDA lets only memory of cuMemCreate be given to another process by a descriptor, so arrays that
 * CuPy or PyTorch made themselves are refused.  GpuMemory is made that way, and they make arrays of
 * it without a copy; its pages stay as long as one of them is there, whatever becomes of the
 * client.
 */
#include "clientlib/python/src/pywharf.h"

#include <errno.h>
#include <unistd.h>

#include "clientlib/python/src/pywharf_driver.h"

enum { ON_CUDA = 2 };

struct pywharf_gpu {
    PyObject_HEAD struct pywharf_client *client; /* a reference */
    struct pywharf_gpu_piece piece;
    Py_ssize_t nbytes; /* as it was asked for */
    int is_own;        /* made here: freed at its end */
    int is_registered;
    Py_ssize_t n_views; /* of calls and jobs that may not lose it */
    pid_t pid;
    struct pywharf_gpu *next, *previous; /* in client->gpus, while it is registered */
};

static PyObject *raise_text(int r, const char *text)
{
    return pywharf_raise(pywharf_call_error(r, text));
}

/* ---- making, registering -------------------------------------------------------------------- */

static void link_gpu(struct pywharf_gpu *gpu)
{
    gpu->next = gpu->client->gpus;
    if (gpu->next)
        gpu->next->previous = gpu;
    gpu->client->gpus = gpu;
    gpu->is_registered = 1;
}

static void unlink_gpu(struct pywharf_gpu *gpu)
{
    if (!gpu->is_registered)
        return;
    if (gpu->previous)
        gpu->previous->next = gpu->next;
    else
        gpu->client->gpus = gpu->next;
    if (gpu->next)
        gpu->next->previous = gpu->previous;
    gpu->next = gpu->previous = NULL;
    gpu->is_registered = 0;
}

void pywharf_gpu_forget(struct pywharf_client *client)
{
    while (client->gpus)
        unlink_gpu(client->gpus);
}

static struct pywharf_gpu *new_gpu(struct pywharf_client *client, Py_ssize_t nbytes, int device)
{
    struct pywharf_gpu *gpu = PyObject_New(struct pywharf_gpu, client->state->gpu_type);

    if (!gpu)
        return NULL;
    gpu->client = (struct pywharf_client *)Py_NewRef((PyObject *)client);
    gpu->piece = (struct pywharf_gpu_piece){0, (size_t)nbytes, device};
    gpu->nbytes = nbytes;
    gpu->is_own = gpu->is_registered = 0;
    gpu->n_views = 0;
    gpu->pid = getpid();
    gpu->next = gpu->previous = NULL;
    return gpu;
}

/* Takes the reference over: the memory, or NULL with an exception. */
static PyObject *register_gpu(struct pywharf_gpu *gpu, int fd, int flags)
{
    struct wharf_memory memory = WHARF_MEMORY_INIT;
    struct pywharf_client *client = gpu->client;
    int r;

    memory.kind = WHARF_MEMORY_GPU;
    memory.fd = fd;
    memory.flags = (uint32_t)flags;
    memory.address = (void *)(uintptr_t)gpu->piece.address;
    memory.nbytes = gpu->piece.nbytes;
    if (pywharf_client_enter(client) < 0) {
        Py_DECREF((PyObject *)gpu);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS r = wharf_register(client->handle, &memory);
    Py_END_ALLOW_THREADS pywharf_client_leave(client);
    if (r == 0) {
        link_gpu(gpu);
        return (PyObject *)gpu;
    }
    pywharf_raise_call(r);
    Py_DECREF((PyObject *)gpu);
    return NULL;
}

static int needs_daemon(const struct pywharf_client *client)
{
    if (client->is_daemon)
        return 0;
    raise_text(-EOPNOTSUPP, "GPU memory is reached by a daemon with a GPU alone, and this client "
                            "decodes in this process");
    return -1;
}

PyObject *pywharf_gpu_alloc(struct pywharf_client *client, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"", "device", NULL};
    char text[PYWHARF_DRIVER_TEXT_NBYTES];
    struct pywharf_gpu *gpu;
    Py_ssize_t nbytes;
    int device = 0, fd = -1, r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|$i", (char **)names, &nbytes, &device))
        return NULL;
    if (nbytes < 1)
        return PyErr_Format(PyExc_ValueError, "the size is not positive");
    if (needs_daemon(client) < 0)
        return NULL;
    gpu = new_gpu(client, nbytes, device);
    if (!gpu)
        return NULL;
    Py_BEGIN_ALLOW_THREADS r = pywharf_driver_make(&gpu->piece, &fd, text);
    Py_END_ALLOW_THREADS gpu->is_own = r == 0;
    PyObject *made = NULL;
    if (r == 0)
        made = register_gpu(gpu, fd, 0);
    else
        Py_DECREF((PyObject *)gpu);
    if (fd >= 0)
        close(fd);
    return r == 0 ? made : raise_text(r, text);
}

PyObject *pywharf_gpu_register(struct pywharf_client *client, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"fd", "address", "nbytes", "device", "readonly", NULL};
    unsigned long long address;
    struct pywharf_gpu *gpu;
    Py_ssize_t nbytes;
    int fd, device = 0, is_read_only = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iKn|$ip", (char **)names, &fd, &address,
                                     &nbytes, &device, &is_read_only))
        return NULL;
    if (nbytes < 1 || !address)
        return PyErr_Format(PyExc_ValueError, "the memory has no address or no size");
    if (needs_daemon(client) < 0)
        return NULL;
    gpu = new_gpu(client, nbytes, device);
    if (!gpu)
        return NULL;
    gpu->piece.address = address;
    return register_gpu(gpu, fd, is_read_only ? WHARF_MEMORY_READ_ONLY : 0);
}

/* ---- the end -------------------------------------------------------------------------------- */

/* 0, or -errno: -EBUSY while a job in flight is there. */
static int unregister(struct pywharf_gpu *gpu)
{
    struct pywharf_client *client = gpu->client;
    int r;

    if (!client->handle || client->is_closing)
        return 0;
    client->n_calls++;
    Py_BEGIN_ALLOW_THREADS r =
        wharf_unregister(client->handle, (void *)(uintptr_t)gpu->piece.address);
    Py_END_ALLOW_THREADS client->n_calls--;
    return r;
}

static PyObject *unregister_method(PyObject *self, PyObject *unused)
{
    struct pywharf_gpu *gpu = (struct pywharf_gpu *)self;

    (void)unused;
    if (gpu->n_views)
        return raise_text(-EBUSY, "a call or a job in flight uses the memory");
    if (!gpu->is_registered)
        return Py_NewRef(Py_None);
    /* No new ones meanwhile. */
    unlink_gpu(gpu);
    int r = unregister(gpu);
    if (r == -EBUSY)
        link_gpu(gpu);
    if (r < 0)
        return pywharf_raise_call(r);
    return Py_NewRef(Py_None);
}

/* In a forked child CUDA does not work, and the memory is the parent's. */
static void dealloc(PyObject *self)
{
    struct pywharf_gpu *gpu = (struct pywharf_gpu *)self;
    PyTypeObject *type = Py_TYPE(self);

    int was_registered = gpu->is_registered;

    unlink_gpu(gpu);
    if (gpu->pid == getpid()) {
        if (was_registered)
            unregister(gpu);
        if (gpu->is_own) {
            Py_BEGIN_ALLOW_THREADS pywharf_driver_free(&gpu->piece);
            Py_END_ALLOW_THREADS
        }
    }
    Py_DECREF((PyObject *)gpu->client);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- what others make arrays of -------------------------------------------------------------- */

static PyObject *get_interface(PyObject *self, void *unused)
{
    const struct pywharf_gpu *gpu = (const struct pywharf_gpu *)self;

    (void)unused;
    return Py_BuildValue("{s:(n),s:s,s:(KO),s:O,s:O,s:i}", "shape", gpu->nbytes, "typestr", "|u1",
                         "data", (unsigned long long)gpu->piece.address, Py_False, "strides",
                         Py_None, "stream", Py_None, "version", 3);
}

struct tensor {
    struct {
        void *data;
        int32_t device_type, device_id;
        int32_t n_dimensions;
        uint8_t code, bits;
        uint16_t lanes;
        int64_t *shape, *strides;
        uint64_t byte_offset;
    } tensor;
    void *context;
    void (*deleter)(struct tensor *);
    int64_t shape[1];
};

/* By any thread, with the GIL or without. */
static void delete_tensor(struct tensor *tensor)
{
    PyGILState_STATE state = PyGILState_Ensure();

    Py_DECREF((PyObject *)tensor->context);
    PyMem_Free(tensor);
    PyGILState_Release(state);
}

static void delete_capsule(PyObject *capsule)
{
    struct tensor *tensor =
        PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;

    if (tensor)
        delete_tensor(tensor);
}

/* Its stream need wait for nothing: what jobs wrote is there when they are done. */
static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    struct pywharf_gpu *gpu = (struct pywharf_gpu *)self;
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None, *capsule;
    struct tensor *tensor;
    int type = ON_CUDA, number = gpu->piece.device;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", (char **)names, &stream, &version,
                                     &device, &copy))
        return NULL;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii", &type, &number))
        return NULL;
    if (copy == Py_True || type != ON_CUDA || number != gpu->piece.device)
        return PyErr_Format(PyExc_BufferError, "the memory is not copied: it stays where it is");
    tensor = PyMem_Calloc(1, sizeof(*tensor));
    if (!tensor)
        return PyErr_NoMemory();
    tensor->tensor.data = (void *)(uintptr_t)gpu->piece.address;
    tensor->tensor.device_type = ON_CUDA;
    tensor->tensor.device_id = gpu->piece.device;
    tensor->tensor.n_dimensions = 1;
    tensor->tensor.code = 1; /* unsigned */
    tensor->tensor.bits = 8;
    tensor->tensor.lanes = 1;
    tensor->tensor.shape = tensor->shape;
    tensor->shape[0] = gpu->nbytes;
    tensor->context = Py_NewRef(self);
    tensor->deleter = delete_tensor;
    capsule = PyCapsule_New(tensor, "dltensor", delete_capsule);
    if (!capsule)
        delete_tensor(tensor);
    return capsule;
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("ii", ON_CUDA, ((struct pywharf_gpu *)self)->piece.device);
}

static Py_ssize_t length(PyObject *self)
{
    return ((struct pywharf_gpu *)self)->nbytes;
}

static PyObject *get_address(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct pywharf_gpu *)self)->piece.address);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static struct pywharf_gpu *find(const struct pywharf_client *client, const Py_buffer *buffer)
{
    for (struct pywharf_gpu *gpu = client->gpus; gpu; gpu = gpu->next) {
        uint64_t offset = (uint64_t)(uintptr_t)buffer->buf - gpu->piece.address;

        if (offset <= gpu->piece.nbytes && (size_t)buffer->len <= gpu->piece.nbytes - offset)
            return gpu;
    }
    return NULL;
}

/* The memory itself is given, not an array that knows of streams: there may be some of it. */
static int is_gpu_memory(const struct pywharf_client *client, const struct pywharf_view *view)
{
    PyObject *holder = view->buffer.obj;

    return PyTuple_Check(holder) && Py_TYPE(PyTuple_GetItem(holder, 0)) == client->state->gpu_type;
}

/* What was waited for in this call: arrays of one producer name the same stream. */
struct wait {
    int is_done, device, has_stream;
    uintptr_t stream;
};

static int wait_once(struct wait *done, const struct wait *wait)
{
    char text[PYWHARF_DRIVER_TEXT_NBYTES];
    int r;

    if (done->is_done && done->device == wait->device && done->has_stream == wait->has_stream &&
        done->stream == wait->stream)
        return 0;
    Py_BEGIN_ALLOW_THREADS r =
        pywharf_driver_wait(wait->device, wait->has_stream, wait->stream, text);
    Py_END_ALLOW_THREADS if (r < 0) raise_text(r, text);
    *done = *wait;
    return r < 0 ? -1 : 0;
}

/* Waits until the memory is the daemon's to use.  Returns 0, or -1 with an exception. */
static int make_ready(struct pywharf_client *client, struct pywharf_view *view, struct wait *done)
{
    struct pywharf_gpu *gpu;

    if (!view->is_gpu || !view->buffer.len || view->gpu)
        return 0;
    if (pywharf_client_enter(client) < 0)
        return -1;
    pywharf_client_leave(client);
    if (!client->is_daemon)
        return needs_daemon(client);
    gpu = find(client, &view->buffer);
    if (!gpu) {
        PyErr_Format(PyExc_BufferError,
                     "the daemon does not reach the GPU memory at %p: arrays have to lie in memory "
                     "of this client's alloc_gpu or register_gpu, since CUDA lets no other memory "
                     "be given to a process",
                     view->buffer.buf);
        return -1;
    }
    view->gpu = (struct pywharf_gpu *)Py_NewRef((PyObject *)gpu);
    gpu->n_views++;
    if (view->is_ready && !is_gpu_memory(client, view))
        return 0;
    const struct wait wait = {1, gpu->piece.device, view->has_stream, view->stream};
    if (wait_once(done, &wait) < 0)
        return -1;
    view->is_ready = 1;
    return 0;
}

void pywharf_gpu_let_go(struct pywharf_view *view)
{
    struct pywharf_gpu *gpu = view->gpu;

    view->gpu = NULL;
    if (gpu)
        gpu->n_views--;
    Py_XDECREF((PyObject *)gpu);
}

int pywharf_gpu_make_ready(struct pywharf_client *client, struct pywharf_chunks *chunks)
{
    struct wait done = {0, 0, 0, 0};

    for (Py_ssize_t i = 0; i < chunks->n; i++)
        if (make_ready(client, &chunks->chunks[i].in, &done) < 0 ||
            make_ready(client, &chunks->chunks[i].out, &done) < 0)
            return -1;
    return 0;
}

static PyMethodDef methods[] = {
    {"unregister", unregister_method, METH_NOARGS,
     "unregister(): the daemon does not reach it any more.  Raises OSError (EBUSY) while a job in\n"
     "flight does.  Memory of alloc_gpu is freed when nothing refers to it."},
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS,
     "A capsule of DLPack: bytes, one dimension."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "(2, the GPU's number)."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"__cuda_array_interface__", get_interface, NULL, "A dict, version 3: bytes, one dimension.",
     NULL},
    {"address", get_address, NULL, "int: the device address of the first byte.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Memory of a GPU that the daemon reaches: Client.alloc_gpu and register_gpu make it.\n\n"
     "cupy.asarray(memory) and torch.from_dlpack(memory) are arrays of it, of bytes, without a\n"
     "copy.  They, their parts and the memory itself are sources and outputs of jobs."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_sq_length, length},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "wharf.GpuMemory",
    .basicsize = sizeof(struct pywharf_gpu),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int pywharf_gpu_init(PyObject *module, struct pywharf_state *state)
{
    state->gpu_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->gpu_type ? PyModule_AddType(module, state->gpu_type) : -1;
}
