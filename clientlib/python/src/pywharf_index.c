/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GzipIndex: parts of a gzip or zlib file by its index.  And what else readers of files ask: what a
 * file is, and where a BGZF block ends.
 */
#include "clientlib/python/src/pywharf.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clientlib/index_load.h"
#include "encoders/gzip/bgzf.h"
#include "encoders/gzip_index/gzip_span.h"
#include "encoders/source_kind.h"

/* Longer spans are not held in memory. */
enum { MAX_SPAN_NBYTES = 16 << 20 };

struct gzip_index {
    PyObject_HEAD struct wharf_gzip_index index;
    int fd; /* a duplicate, or -1 */
};

/* ---- opening ------------------------------------------------------------------------------- */

static PyObject *raise_load_error(int r, const char *path)
{
    if (r == -EPROTONOSUPPORT)
        return PyErr_Format(PyExc_ValueError, "%s is no index, or one of a newer version", path);
    if (r == -EBADMSG)
        return PyErr_Format(PyExc_ValueError, "%s is damaged: wharf index -f makes it anew", path);
    if (r == -ESTALE)
        return PyErr_Format(PyExc_ValueError,
                            "%s is the index of another file, or of another version of it: wharf "
                            "index -f makes it anew",
                            path);
    errno = -r;
    return PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
}

/* Without the GIL. */
static int open_index(struct gzip_index *index, int fd, const char *path)
{
    struct wharf_indexed_file file;
    struct stat status, index_status;

    index->fd = dup(fd);
    if (index->fd < 0 || fstat(index->fd, &status) < 0)
        return -errno;
    file = (struct wharf_indexed_file){index->fd, (uint64_t)status.st_size, status.st_mtim};
    if (!S_ISREG(status.st_mode))
        return -EINVAL;
    return wharf_index_load(&file, path, &index_status, &index->index);
}

static PyObject *new_index(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *path = NULL;
    struct gzip_index *index;
    int fd, r;

    if ((kwargs && PyDict_Size(kwargs)) ||
        !PyArg_ParseTuple(args, "iO&", &fd, PyUnicode_FSConverter, &path))
        return NULL;
    index = (struct gzip_index *)PyType_GenericAlloc(type, 0);
    if (!index) {
        Py_DECREF(path);
        return NULL;
    }
    index->fd = -1;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS r = open_index(index, fd, name);
    Py_END_ALLOW_THREADS if (r < 0)
    {
        memset(&index->index, 0, sizeof(index->index));
        raise_load_error(r, name);
        Py_CLEAR(index);
    }
    Py_DECREF(path);
    return (PyObject *)index;
}

static void dealloc(PyObject *self)
{
    struct gzip_index *index = (struct gzip_index *)self;
    PyTypeObject *type = Py_TYPE(self);

    wharf_gzip_index_deinit(&index->index);
    if (index->fd >= 0)
        close(index->fd);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- a span -------------------------------------------------------------------------------- */

struct span {
    int fd;
    uint8_t *out;
    size_t nbytes;
};

static int64_t read_file(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    ssize_t n;

    do
        n = pread(((struct span *)context)->fd, buf, nbytes, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static int put(void *context, const uint8_t *bytes, size_t nbytes)
{
    struct span *span = context;

    memcpy(span->out + span->nbytes, bytes, nbytes);
    span->nbytes += nbytes;
    return 0;
}

static PyObject *decode_span(PyObject *self, uint32_t number, size_t nbytes)
{
    const struct gzip_index *index = (const struct gzip_index *)self;
    PyObject *out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)nbytes);
    struct span span = {.fd = index->fd, .nbytes = 0};
    const struct wharf_gzip_span_io io = {read_file, put, &span};
    struct wharf_outcome outcome;
    int r;

    if (!out)
        return NULL;
    span.out = (uint8_t *)PyBytes_AsString(out);
    Py_BEGIN_ALLOW_THREADS r = wharf_gzip_span_decode(&index->index, number, &io, &outcome);
    Py_END_ALLOW_THREADS if (r == 0 && outcome.result == WHARF_OK) return Py_BuildValue(
        "KN", (unsigned long long)index->index.points[number].out_offset, out);
    Py_DECREF(out);
    if (r == 0)
        return pywharf_raise(
            pywharf_outcome_error(PyType_GetModuleState(Py_TYPE(self)), &outcome, -1));
    errno = -r;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *read_part(PyObject *self, PyObject *args)
{
    const struct gzip_index *index = (const struct gzip_index *)self;
    unsigned long long offset;

    if (!PyArg_ParseTuple(args, "K", &offset))
        return NULL;
    uint32_t number = wharf_gzip_index_find(&index->index, offset);
    uint64_t nbytes = wharf_gzip_index_span_nbytes(&index->index, number);
    if (nbytes > MAX_SPAN_NBYTES)
        return PyErr_Format(PyExc_OverflowError, "the index has no point for so many bytes");
    return decode_span(self, number, (size_t)nbytes);
}

static PyObject *get_nbytes(PyObject *self, void *unused)
{
    uint64_t nbytes = ((struct gzip_index *)self)->index.out_nbytes;

    (void)unused;
    return nbytes == WHARF_GZIP_INDEX_UNKNOWN ? Py_NewRef(Py_None)
                                              : PyLong_FromUnsignedLongLong(nbytes);
}

static PyGetSetDef attributes[] = {
    {"nbytes", get_nbytes, NULL, "int: bytes of all output; None if the index does not say.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"read", read_part, METH_VARARGS,
     "read(offset, /)\n\nThe output from the last point at this byte of the output, or before it, "
     "to\n"
     "the next point: a tuple of where it begins, in bytes, and the output.  Raises DataError, or\n"
     "OverflowError where that is more than 16 MiB, or of unknown size."},
    {"__reduce__", pywharf_refuse_pickle, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "GzipIndex(fd, path)\n\nThe index at `path` of the open file, whose descriptor is\n"
                "duplicated.  Raises OSError, or ValueError if it is none or of another file."},
    {Py_tp_new, new_index},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "wharf._wharf.GzipIndex",
    .basicsize = sizeof(struct gzip_index),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int pywharf_index_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int r = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;

    Py_XDECREF(type);
    return r;
}

/* ---- what a file is ------------------------------------------------------------------------ */

PyObject *pywharf_detect(PyObject *module, PyObject *args)
{
    static const char *const names[] = {
        [WHARF_SOURCE_EMPTY] = "empty", [WHARF_SOURCE_CONTAINER] = "wharf",
        [WHARF_SOURCE_BGZF] = "bgzf",   [WHARF_SOURCE_GZIP] = "gzip",
        [WHARF_SOURCE_ZLIB] = "zlib",   [WHARF_SOURCE_ZSTD] = "zstd",
        [WHARF_SOURCE_LZ4] = "lz4",     [WHARF_SOURCE_SNAPPY] = "snappy",
    };
    const struct wharf_foreign_kind *foreign;
    enum wharf_source_kind kind;
    const char *name = NULL;
    Py_buffer head;

    (void)module;
    if (!PyArg_ParseTuple(args, "y*", &head))
        return NULL;
    kind = wharf_source_detect(head.buf, (size_t)head.len, 1);
    if ((size_t)kind < sizeof(names) / sizeof(names[0]))
        name = names[kind];
    foreign = name ? NULL : wharf_foreign_detect(head.buf, (size_t)head.len);
    PyBuffer_Release(&head);
    return Py_BuildValue("sz", name ? name : "other", foreign ? foreign->name : NULL);
}

PyObject *pywharf_bgzf_block(PyObject *module, PyObject *data)
{
    uint32_t nbytes = 0;
    Py_buffer head;
    int r;

    (void)module;
    if (PyObject_GetBuffer(data, &head, PyBUF_SIMPLE) < 0)
        return NULL;
    r = wharf_bgzf_look(head.buf, (size_t)head.len, &nbytes);
    PyBuffer_Release(&head);
    return PyLong_FromLong(r > 0 ? (long)nbytes : r);
}
