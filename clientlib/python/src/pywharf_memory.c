/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: a piece of a client's arena with the buffer protocol.  The daemon reads and writes it
 * itself, so jobs from and to it copy nothing.
 *
 * Its bytes are there as long as a buffer of it is held: the client does not close before.  After a
 * fork the child does not have what was the daemon's arena; there, zeros take its place, so that an
 * array that the child inherited can be looked at without a fault.
 */
#include "clientlib/python/src/pywharf.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

struct pywharf_memory {
    PyObject_HEAD struct pywharf_client *client; /* a reference */
    void *address;                               /* NULL: the client is closed */
    Py_ssize_t nbytes;
    Py_ssize_t n_exports;
    struct pywharf_memory *next, *previous; /* in client->memories */
};

PyObject *pywharf_memory_alloc(struct pywharf_client *client, Py_ssize_t nbytes)
{
    struct pywharf_memory *memory;
    void *address;
    int r;

    if (nbytes < 0) {
        PyErr_SetString(PyExc_ValueError, "the size is negative");
        return NULL;
    }
    if (pywharf_client_enter(client) < 0)
        return NULL;
    r = wharf_alloc(client->handle, (size_t)nbytes, &address);
    pywharf_client_leave(client);
    if (r < 0)
        return pywharf_raise_call(r);
    memory = PyObject_New(struct pywharf_memory, client->state->memory_type);
    if (!memory) {
        wharf_free(client->handle, address);
        return NULL;
    }
    memory->client = (struct pywharf_client *)Py_NewRef((PyObject *)client);
    memory->address = address;
    memory->nbytes = nbytes;
    memory->n_exports = 0;
    memory->previous = NULL;
    memory->next = client->memories;
    if (memory->next)
        memory->next->previous = memory;
    client->memories = memory;
    return (PyObject *)memory;
}

static void unlink_memory(struct pywharf_memory *memory)
{
    if (memory->previous)
        memory->previous->next = memory->next;
    else if (memory->client->memories == memory)
        memory->client->memories = memory->next;
    if (memory->next)
        memory->next->previous = memory->previous;
    memory->next = memory->previous = NULL;
}

static void dealloc(PyObject *self)
{
    struct pywharf_memory *memory = (struct pywharf_memory *)self;
    PyTypeObject *type = Py_TYPE(self);

    unlink_memory(memory);
    if (memory->address && memory->client->handle)
        wharf_free(memory->client->handle, memory->address);
    Py_DECREF((PyObject *)memory->client);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    struct pywharf_memory *memory = (struct pywharf_memory *)self;

    if (!memory->address) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError, "the memory's client is closed");
        return -1;
    }
    if (PyBuffer_FillInfo(view, self, memory->address, memory->nbytes, 0, flags) < 0)
        return -1;
    memory->n_exports++;
    return 0;
}

static void release_buffer(PyObject *self, Py_buffer *view)
{
    (void)view;
    ((struct pywharf_memory *)self)->n_exports--;
}

static Py_ssize_t length(PyObject *self)
{
    return ((struct pywharf_memory *)self)->nbytes;
}

int pywharf_memory_reaches(const struct pywharf_client *client, const struct pywharf_view *view,
                           size_t nbytes)
{
    const void *address = view->buffer.buf;

    if (view->is_gpu)
        return 1;
    for (const struct pywharf_memory *m = client->memories; m; m = m->next) {
        uintptr_t offset = (uintptr_t)address - (uintptr_t)m->address;

        if (m->address && offset <= (uintptr_t)m->nbytes && nbytes <= (size_t)m->nbytes - offset)
            return 1;
    }
    return 0;
}

Py_ssize_t pywharf_memory_n_exports(const struct pywharf_client *client)
{
    Py_ssize_t n = 0;

    for (const struct pywharf_memory *m = client->memories; m; m = m->next)
        n += m->n_exports;
    return n;
}

void pywharf_memory_forget(struct pywharf_client *client)
{
    for (struct pywharf_memory *m = client->memories; m; m = m->next)
        m->address = NULL;
}

/* Pages that pieces share are filled once; where something else is by now, it stays. */
static void fill_with_zeros(const struct pywharf_memory *memory)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)memory->address;
    uintptr_t end = (begin + (uintptr_t)memory->nbytes + page - 1) & ~(page - 1);

    for (begin &= ~(page - 1); begin < end; begin += page)
        if (mmap((void *)begin, page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED &&
            errno != EEXIST)
            return;
}

void pywharf_memory_forked(struct pywharf_client *client)
{
    for (struct pywharf_memory *m = client->memories; m; m = m->next)
        if (m->address && m->n_exports && client->is_daemon)
            fill_with_zeros(m);
}

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Memory of a client's arena, with the buffer protocol: Client.alloc makes it.\n\n"
     "Jobs from and to it copy nothing.  numpy.frombuffer(memory, dtype) is an array of it.\n"
     "It cannot be pickled.  In a forked child it holds zeros."},
    {Py_tp_dealloc, dealloc},
    {Py_bf_getbuffer, get_buffer},
    {Py_bf_releasebuffer, release_buffer},
    {Py_sq_length, length},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "wharf.Memory",
    .basicsize = sizeof(struct pywharf_memory),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int pywharf_memory_init(PyObject *module, struct pywharf_state *state)
{
    state->memory_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->memory_type ? PyModule_AddType(module, state->memory_type) : -1;
}
