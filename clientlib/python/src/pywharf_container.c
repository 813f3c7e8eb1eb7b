/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Container: a wharf container's chunks, from any place on.  The bytes come from a Python function,
 * and a chunk is given when it was verified.
 */
#include "clientlib/python/src/pywharf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/container_read.h"

struct container {
    PyObject_HEAD PyObject *read_at;
    struct wharf_container_source source;
    struct wharf_container_reader reader;
    int is_busy; /* a thread is in a call */
};

/* ---- the source ---------------------------------------------------------------------------- */

/* With the GIL.  -EIO with an exception. */
static int64_t read_at(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    const struct container *container = context;
    PyObject *data = PyObject_CallFunction(container->read_at, "Kn", (unsigned long long)offset,
                                           (Py_ssize_t)nbytes);
    int64_t n = -EIO;
    Py_buffer view;

    if (!data || PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
        Py_XDECREF(data);
        return -EIO;
    }
    if ((size_t)view.len > nbytes) {
        PyErr_SetString(PyExc_ValueError, "read_at returned more than it was asked for");
    } else {
        if (view.len)
            memcpy(buf, view.buf, (size_t)view.len);
        n = view.len;
    }
    PyBuffer_Release(&view);
    Py_DECREF(data);
    return n;
}

static PyObject *new_container(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct container *container;
    unsigned long long nbytes;
    PyObject *function;

    if (!PyArg_ParseTuple(args, "OK", &function, &nbytes) || (kwargs && PyDict_Size(kwargs)))
        return NULL;
    container = (struct container *)PyType_GenericAlloc(type, 0);
    if (!container)
        return NULL;
    container->read_at = Py_NewRef(function);
    container->source = (struct wharf_container_source){read_at, container, nbytes};
    wharf_container_reader_init(&container->reader, &container->source);
    return (PyObject *)container;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT((PyObject *)Py_TYPE(self));
    Py_VISIT(((struct container *)self)->read_at);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((struct container *)self)->read_at);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* ---- calls --------------------------------------------------------------------------------- */

static int enter(struct container *container)
{
    if (container->is_busy || !container->read_at) {
        PyErr_SetString(PyExc_ValueError, "another call is reading the container");
        return -1;
    }
    container->is_busy = 1;
    return 0;
}

static PyObject *raise_errno(int r)
{
    return PyErr_Occurred() ? NULL : pywharf_raise(pywharf_call_error(r, strerror(-r)));
}

static PyObject *raise_fault(PyObject *self, const struct wharf_container_fault *fault)
{
    const struct wharf_outcome outcome = {
        .result = fault->result,
        .reason = fault->reason,
        .bit_offset = 8 * fault->file_offset + fault->bit_offset,
    };

    return pywharf_raise(pywharf_outcome_error(PyType_GetModuleState(Py_TYPE(self)), &outcome, -1));
}

static PyObject *seek(PyObject *self, PyObject *args)
{
    struct container *container = (struct container *)self;
    unsigned long long offset;
    int r;

    if (!PyArg_ParseTuple(args, "K", &offset) || enter(container) < 0)
        return NULL;
    wharf_container_reader_init(&container->reader, &container->source);
    r = wharf_container_seek(&container->reader, offset, NULL);
    container->is_busy = 0;
    return r < 0 ? raise_errno(r) : Py_NewRef(Py_None);
}

/* The chunk's output as (where it begins, bytes). */
static PyObject *decode(PyObject *self, const struct wharf_container_chunk *chunk,
                        const uint8_t *payload)
{
    PyObject *out = PyBytes_FromStringAndSize(NULL, chunk->raw_nbytes);
    uint8_t *at = out ? (uint8_t *)PyBytes_AsString(out) : NULL;
    struct wharf_container_fault fault;

    if (!out)
        return NULL;
    Py_BEGIN_ALLOW_THREADS wharf_container_decode(chunk, 0, payload, at, &fault);
    Py_END_ALLOW_THREADS if (fault.result == WHARF_OK) return Py_BuildValue(
        "KN", (unsigned long long)chunk->out_offset, out);
    Py_DECREF(out);
    return raise_fault(self, &fault);
}

static PyObject *read_chunk(PyObject *self, const struct wharf_container_chunk *chunk)
{
    struct container *container = (struct container *)self;
    struct wharf_container_fault fault;
    uint8_t *payload = malloc(chunk->payload_avail);
    PyObject *made = NULL;
    int r;

    if (!payload)
        return PyErr_NoMemory();
    r = wharf_container_read_payload(&container->source, chunk, payload, &fault);
    if (r < 0)
        raise_errno(r);
    else
        made = fault.result == WHARF_OK ? decode(self, chunk, payload) : raise_fault(self, &fault);
    free(payload);
    return made;
}

static PyObject *next(PyObject *self, PyObject *unused)
{
    struct container *container = (struct container *)self;
    struct wharf_container_item item;
    PyObject *made;
    int r;

    (void)unused;
    if (enter(container) < 0)
        return NULL;
    r = wharf_container_next(&container->reader, &item);
    if (r < 0)
        made = raise_errno(r);
    else if (item.kind == WHARF_CONTAINER_END)
        made = Py_NewRef(Py_None);
    else if (item.kind == WHARF_CONTAINER_FAULT)
        made = raise_fault(self, &item.fault);
    else
        made = read_chunk(self, &item.chunk);
    container->is_busy = 0;
    return made;
}

static PyObject *total(PyObject *self, PyObject *unused)
{
    struct container *container = (struct container *)self;
    struct wharf_container_totals totals;
    struct wharf_container_fault fault;
    int r;

    (void)unused;
    if (enter(container) < 0)
        return NULL;
    r = wharf_container_read_totals(&container->source, &totals, &fault);
    container->is_busy = 0;
    if (r < 0)
        return raise_errno(r);
    return fault.result == WHARF_OK ? PyLong_FromUnsignedLongLong(totals.raw_nbytes)
                                    : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"seek", seek, METH_VARARGS,
     "seek(offset, /)\n\nMakes `next` give the chunk that holds this byte of the output."},
    {"next", next, METH_NOARGS,
     "next()\n\nA tuple of where the next chunk's output begins, in bytes, and the output, or "
     "None\n"
     "at the end.  Raises DataError, whose bit counts from the file's beginning."},
    {"total", total, METH_NOARGS,
     "total()\n\nBytes of all output, as the file says, unverified; None if its end is damaged."},
    {"__reduce__", pywharf_refuse_pickle, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Container(read_at, nbytes)\n\nA wharf container of so many bytes.  read_at(offset,\n"
     "nbytes) returns bytes, fewer than that only at the file's end."},
    {Py_tp_new, new_container},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "wharf._wharf.Container",
    .basicsize = sizeof(struct container),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int pywharf_container_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int r = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;

    Py_XDECREF(type);
    return r;
}
