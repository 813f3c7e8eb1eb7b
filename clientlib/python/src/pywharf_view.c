/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a caller gives: by the buffer protocol, by DLPack (a tensor of PyTorch's, CuPy's,
 * JAX's), or by __cuda_array_interface__.  All of it is taken as a Py_buffer of bytes, whose obj
 * keeps it.  Of GPU memory only the address is looked at, never the memory.
 *
 * DLPack's structures are those of dlpack.h, version 1; the names of its capsules say which of the
 * two a producer made.  A capsule that was taken gets another name, and its deleter is called when
 * the memory is let go.
 */
#include "clientlib/python/src/pywharf.h"

#include <stdlib.h>
#include <string.h>

enum dlpack_device { ON_CPU = 1, ON_CUDA = 2, ON_CUDA_HOST = 3 };
enum { READ_ONLY = 1, IS_COPIED = 2, MAX_DIMENSIONS = 64, LEGACY_STREAM = 1 };

struct dlpack_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t n_dimensions;
    uint8_t code, bits;
    uint16_t lanes;
    const int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct dlpack_managed {
    struct dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *);
};

struct dlpack_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dlpack_versioned *);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

static int refuse(const char *text)
{
    PyErr_SetString(PyExc_BufferError, text);
    return -1;
}

/* The attribute, or NULL, without an exception if it is not there. */
static PyObject *attribute(PyObject *object, const char *name)
{
    PyObject *found = PyObject_GetAttrString(object, name);

    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    return found;
}

/* ---- shapes -------------------------------------------------------------------------------- */

/* Whether elements follow each other without gaps, the last dimension first.  Strides count
 * bytes. */
static int measure(const int64_t *shape, const int64_t *strides, int n, int64_t item_nbytes,
                   Py_ssize_t *ret_nbytes)
{
    int64_t nbytes = item_nbytes;
    int is_empty = 0;

    for (int i = 0; i < n; i++) {
        if (shape[i] < 0)
            return refuse("the array has a negative size");
        is_empty |= shape[i] == 0;
    }
    for (int i = n; i-- > 0 && !is_empty;) {
        if (strides && shape[i] > 1 && strides[i] != nbytes)
            return refuse("the array is not contiguous");
        if (__builtin_mul_overflow(nbytes, shape[i], &nbytes))
            return refuse("the array is too large");
    }
    *ret_nbytes = is_empty ? 0 : (Py_ssize_t)nbytes;
    return 0;
}

/* ---- DLPack -------------------------------------------------------------------------------- */

static const char held[] = "wharf.held_dltensor",
                  held_versioned[] = "wharf.held_dltensor_versioned";

/* Deleters may run code of the caller's, which is not to find an exception raised. */
static void let_go(PyObject *holder)
{
    struct dlpack_managed *managed = PyCapsule_GetPointer(holder, held);
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    if (managed && managed->deleter)
        managed->deleter(managed);
    PyErr_Restore(type, value, trace);
}

static void let_go_versioned(PyObject *holder)
{
    struct dlpack_versioned *managed = PyCapsule_GetPointer(holder, held_versioned);
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    if (managed && managed->deleter)
        managed->deleter(managed);
    PyErr_Restore(type, value, trace);
}

/* Takes the capsule's tensor over.  Returns what keeps it. */
static PyObject *take_capsule(PyObject *capsule, const struct dlpack_tensor **ret_tensor,
                              uint64_t *ret_flags)
{
    PyObject *holder;

    *ret_flags = 0;
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");

        holder = PyCapsule_New(managed, held, let_go);
        if (holder)
            PyCapsule_SetName(capsule, "used_dltensor");
        *ret_tensor = &managed->tensor;
        return holder;
    }
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned"))
        return PyErr_Format(PyExc_BufferError, "__dlpack__ gave no tensor");
    struct dlpack_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (managed->major != 1)
        return PyErr_Format(PyExc_BufferError, "__dlpack__ gave a tensor of version %u, not 1",
                            managed->major);
    holder = PyCapsule_New(managed, held_versioned, let_go_versioned);
    if (holder)
        PyCapsule_SetName(capsule, "used_dltensor_versioned");
    *ret_flags = managed->flags;
    *ret_tensor = &managed->tensor;
    return holder;
}

static int read_tensor(const struct dlpack_tensor *tensor, int device_type,
                       struct pywharf_view *view)
{
    int64_t item_nbytes = (int64_t)tensor->bits * tensor->lanes / 8, strides[MAX_DIMENSIONS];
    int n = tensor->n_dimensions;

    if (tensor->device_type != device_type)
        return refuse("__dlpack__ gave a tensor of another device than __dlpack_device__ said");
    if (tensor->bits % 8 || item_nbytes == 0 || n < 0 || n > MAX_DIMENSIONS ||
        (n && !tensor->shape))
        return refuse("the tensor's elements are no whole bytes, or it has too many dimensions");
    for (int i = 0; i < n && tensor->strides; i++)
        if (__builtin_mul_overflow(tensor->strides[i], item_nbytes, &strides[i]))
            return refuse("the array is too large");
    if (measure(tensor->shape, tensor->strides ? strides : NULL, n, item_nbytes,
                &view->buffer.len) < 0)
        return -1;
    view->n_rows = n > 1 ? (Py_ssize_t)tensor->shape[0] : -1;
    view->buffer.buf = (void *)((uintptr_t)tensor->data + tensor->byte_offset);
    if (view->buffer.len && !tensor->data)
        return refuse("the tensor has no address");
    return 0;
}

/* Producers from before version 1 know no max_version. */
static PyObject *ask_for_capsule(PyObject *object, int on_gpu)
{
    PyObject *function = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = PyTuple_New(0), *named = NULL, *capsule = NULL;

    if (function && none)
        named = on_gpu ? Py_BuildValue("{s:(ii),s:i}", "max_version", 1, 0, "stream", LEGACY_STREAM)
                       : Py_BuildValue("{s:(ii)}", "max_version", 1, 0);
    if (named)
        capsule = PyObject_Call(function, none, named);
    if (named && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        if (PyDict_DelItemString(named, "max_version") == 0)
            capsule = PyObject_Call(function, none, named);
    }
    Py_XDECREF(named);
    Py_XDECREF(none);
    Py_XDECREF(function);
    return capsule;
}

static int view_dlpack(PyObject *object, int device_type, int writable, struct pywharf_view *view)
{
    PyObject *capsule = ask_for_capsule(object, device_type == ON_CUDA);
    const struct dlpack_tensor *tensor = NULL;
    uint64_t flags;

    if (!capsule)
        return -1;
    view->buffer.obj = take_capsule(capsule, &tensor, &flags);
    Py_DECREF(capsule);
    if (!view->buffer.obj)
        return -1;
    view->is_gpu = device_type == ON_CUDA;
    view->has_stream = view->is_gpu;
    view->stream = LEGACY_STREAM; /* which the producer made wait for its own */
    if (writable && flags & (READ_ONLY | IS_COPIED))
        return refuse(flags & READ_ONLY ? "the tensor is read-only" : "the tensor is a copy");
    return read_tensor(tensor, device_type, view);
}

/* ---- __cuda_array_interface__ -------------------------------------------------------------- */

static int read_numbers(PyObject *tuple, int64_t *numbers, int *ret_n)
{
    Py_ssize_t n = tuple && PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;

    if (n < 0 || n > MAX_DIMENSIONS)
        return refuse("__cuda_array_interface__ has no shape, or strides that are no tuple");
    for (Py_ssize_t i = 0; i < n; i++) {
        numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (numbers[i] == -1 && PyErr_Occurred())
            return -1;
    }
    *ret_n = (int)n;
    return 0;
}

/* "<f4": byte order, kind, size. */
static int64_t item_nbytes_of(PyObject *typestr)
{
    const char *text =
        typestr && PyUnicode_Check(typestr) ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;
    long nbytes = text && strlen(text) > 2 && strlen(text) < 12 ? strtol(text + 2, NULL, 10) : 0;

    return nbytes > 0 ? nbytes : 0;
}

static int read_data(PyObject *data, int writable, struct pywharf_view *view)
{
    unsigned long long address;
    int is_read_only;

    if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2)
        return refuse("__cuda_array_interface__ has no data");
    address = PyLong_AsUnsignedLongLong(PyTuple_GetItem(data, 0));
    is_read_only = PyErr_Occurred() ? -1 : PyObject_IsTrue(PyTuple_GetItem(data, 1));
    if (is_read_only < 0)
        return -1;
    if (is_read_only && writable)
        return refuse("the array is read-only");
    view->buffer.buf = (void *)(uintptr_t)address;
    return 0;
}

/* None: there is nothing to wait for.  Not said at all: in any stream there may be. */
static int read_stream(PyObject *stream, struct pywharf_view *view)
{
    view->is_ready = stream == Py_None;
    if (!stream || stream == Py_None)
        return 0;
    view->stream = (uintptr_t)PyLong_AsUnsignedLongLong(stream);
    if (PyErr_Occurred())
        return -1;
    if (view->stream == 0) {
        PyErr_SetString(PyExc_ValueError,
                        "stream 0 is ambiguous: it is 1, 2 or a stream's address");
        return -1;
    }
    view->has_stream = 1;
    return 0;
}

static int read_interface(PyObject *named, int writable, struct pywharf_view *view)
{
    int64_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
    PyObject *given = PyDict_GetItemString(named, "strides");
    PyObject *mask = PyDict_GetItemString(named, "mask");
    int64_t item_nbytes = item_nbytes_of(PyDict_GetItemString(named, "typestr"));
    int n, n_strides;

    if (PyErr_Occurred())
        return -1;
    if (item_nbytes == 0 || (mask && mask != Py_None))
        return refuse("__cuda_array_interface__ has a mask, or no typestr");
    if (read_numbers(PyDict_GetItemString(named, "shape"), shape, &n) < 0)
        return -1;
    given = given == Py_None ? NULL : given;
    if (given && (read_numbers(given, strides, &n_strides) < 0 || n_strides != n))
        return PyErr_Occurred() ? -1 : refuse("shape and strides differ in dimensions");
    if (measure(shape, given ? strides : NULL, n, item_nbytes, &view->buffer.len) < 0)
        return -1;
    view->n_rows = n > 1 ? (Py_ssize_t)shape[0] : -1;
    return read_data(PyDict_GetItemString(named, "data"), writable, view) < 0
               ? -1
               : read_stream(PyDict_GetItemString(named, "stream"), view);
}

static int view_interface(PyObject *object, PyObject *interface, int writable,
                          struct pywharf_view *view)
{
    view->is_gpu = 1;
    view->buffer.obj = PyTuple_Pack(1, object);
    if (!view->buffer.obj)
        return -1;
    if (!PyDict_Check(interface))
        return refuse("__cuda_array_interface__ is no dict");
    /* A copy: what reads it may run code of the caller's. */
    PyObject *named = PyDict_Copy(interface);
    int r = named ? read_interface(named, writable, view) : -1;
    Py_XDECREF(named);
    return r;
}

/* ---- all ----------------------------------------------------------------------------------- */

static int device_of(PyObject *function, int *ret_type)
{
    PyObject *device = PyObject_CallNoArgs(function);
    long type = -1;

    if (!device)
        return -1;
    if (PyTuple_Check(device) && PyTuple_Size(device) == 2)
        type = PyLong_AsLong(PyTuple_GetItem(device, 0));
    else
        refuse("__dlpack_device__ gave no device");
    Py_DECREF(device);
    if (PyErr_Occurred())
        return -1;
    if (type != ON_CPU && type != ON_CUDA && type != ON_CUDA_HOST) {
        PyErr_Format(PyExc_BufferError,
                     "memory of DLPack's device type %ld is not reached: 1 (CPU), 2 (CUDA) and 3 "
                     "(CUDA's host memory) are",
                     type);
        return -1;
    }
    *ret_type = (int)type;
    return 0;
}

/* What is no buffer; -2: nor anything else that is known here. */
static int view_array(PyObject *object, int writable, struct pywharf_view *view)
{
    PyObject *function = attribute(object, "__dlpack_device__"), *interface = NULL;
    int type = ON_CUDA, r = -2;

    if (function && device_of(function, &type) < 0)
        r = -1;
    if (r != -1 && !PyErr_Occurred() && type == ON_CUDA)
        interface = attribute(object, "__cuda_array_interface__");
    if (PyErr_Occurred())
        r = -1;
    else if (interface)
        r = view_interface(object, interface, writable, view);
    else if (function)
        r = view_dlpack(object, type, writable, view);
    Py_XDECREF(function);
    Py_XDECREF(interface);
    return r;
}

static int view_get(struct pywharf_view *view, PyObject *object, int flags)
{
    int r = -2;

    memset(view, 0, sizeof(*view));
    view->n_rows = -1;
    if (!PyObject_CheckBuffer(object))
        r = view_array(object, flags & PyBUF_WRITABLE, view);
    if (r == -2) {
        r = PyObject_GetBuffer(object, &view->buffer, flags);
        if (r == 0 && view->buffer.ndim > 1 && view->buffer.shape)
            view->n_rows = view->buffer.shape[0];
    }
    if (r < 0)
        pywharf_view_release(view);
    return r;
}

int pywharf_view_get(struct pywharf_view *view, PyObject *object, int writable)
{
    return view_get(view, object, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* What is no array, or has gaps, is a sequence of items all the same. */
static int is_no_array(void)
{
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_TypeError))
        return -1;
    PyErr_Clear();
    return 0;
}

int pywharf_view_rows(struct pywharf_view *view, PyObject *object, Py_ssize_t n, int writable)
{
    memset(view, 0, sizeof(*view));
    if (object == Py_None || PyLong_Check(object) || PyList_Check(object) || PyTuple_Check(object))
        return 0;
    if (view_get(view, object, PyBUF_ND | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return is_no_array();
    if (view->n_rows == n && n > 0)
        return 1;
    pywharf_view_release(view);
    return 0;
}

void pywharf_view_row(struct pywharf_view *view, const struct pywharf_view *rows, Py_ssize_t i)
{
    Py_ssize_t nbytes = rows->buffer.len / rows->n_rows;

    *view = *rows;
    view->buffer.buf = (char *)rows->buffer.buf + i * nbytes;
    view->buffer.len = nbytes;
    view->buffer.obj = Py_NewRef(Py_None);
}

void pywharf_view_release(struct pywharf_view *view)
{
    pywharf_gpu_let_go(view);
    /* Of what is no buffer's this lets obj go, and no more. */
    if (view->buffer.obj)
        PyBuffer_Release(&view->buffer);
    view->buffer.obj = NULL;
}
