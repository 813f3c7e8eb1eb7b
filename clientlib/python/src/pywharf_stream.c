/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream: decodes a file's bytes in order and in bounded memory, by the stream decoders of
 * encoders/stream.h.  It says of bad data what and where, counted from the file's first bit.
 */
#include "clientlib/python/src/pywharf.h"

#include <string.h>

#include "encoders/deflate/inflate_stream.h"
#include "encoders/frame_stream.h"
#include "encoders/lz4/lz4_frame.h"
#include "encoders/snappy/snappy_frame.h"
#include "encoders/zstd/zstd_stream.h"

struct stream {
    PyObject_HEAD struct wharf_stream *stream;
    struct pywharf_feed feed;
    const uint8_t *span; /* output that was not taken yet */
    size_t span_nbytes;
    struct wharf_outcome outcome;
    int at_last; /* no input follows */
    int is_end;
};

static struct wharf_stream *make_gzip(void)
{
    return wharf_inflate_stream_new(WHARF_INFLATE_GZIP);
}

static struct wharf_stream *make_zlib(void)
{
    return wharf_inflate_stream_new(WHARF_INFLATE_ZLIB);
}

static struct wharf_stream *make_zstd(void)
{
    return wharf_zstd_stream_new(WHARF_ZSTD_ALL_FRAMES);
}

static struct wharf_stream *make_lz4(void)
{
    return wharf_frame_stream_new(wharf_lz4_frame_next);
}

static struct wharf_stream *make_snappy(void)
{
    return wharf_frame_stream_new(wharf_snappy_frame_next);
}

static const struct format {
    const char *name;
    struct wharf_stream *(*make)(void);
} formats[] = {
    {"gzip", make_gzip}, {"zlib", make_zlib},     {"zstd", make_zstd},
    {"lz4", make_lz4},   {"snappy", make_snappy},
};

static PyObject *new_stream(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const struct format *format = NULL;
    struct stream *stream;
    const char *name;

    if (!PyArg_ParseTuple(args, "s", &name) || (kwargs && PyDict_Size(kwargs)))
        return NULL;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strcmp(formats[i].name, name) == 0)
            format = &formats[i];
    if (!format)
        return PyErr_Format(PyExc_ValueError, "there is no stream of the format %s", name);
    stream = (struct stream *)PyType_GenericAlloc(type, 0);
    if (!stream)
        return NULL;
    stream->stream = format->make();
    if (!stream->stream)
        PyErr_NoMemory();
    if (!stream->stream || pywharf_feed_init(&stream->feed) < 0) {
        Py_DECREF((PyObject *)stream);
        return NULL;
    }
    return (PyObject *)stream;
}

static void dealloc(PyObject *self)
{
    struct stream *stream = (struct stream *)self;
    PyTypeObject *type = Py_TYPE(self);

    wharf_stream_free(stream->stream);
    pywharf_feed_deinit(&stream->feed);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *feed(PyObject *self, PyObject *data)
{
    struct stream *stream = (struct stream *)self;
    int r;

    if (pywharf_feed_enter(&stream->feed) < 0)
        return NULL;
    r = pywharf_feed_give(&stream->feed, data);
    if (r == 0 && !stream->feed.nbytes)
        stream->at_last = 1;
    pywharf_feed_leave(&stream->feed);
    return r < 0 ? NULL : Py_NewRef(Py_None);
}

/* Puts input where the decoder wants it.  False: there is none. */
static int fill(struct stream *stream)
{
    size_t room, nbytes = stream->feed.nbytes;
    uint8_t *space = wharf_stream_space(stream->stream, &room);

    if (!nbytes && !stream->at_last)
        return 0;
    nbytes = nbytes < room ? nbytes : room;
    if (nbytes)
        memcpy(space, stream->feed.at, nbytes);
    pywharf_feed_take(&stream->feed, nbytes);
    wharf_stream_fill(stream->stream, nbytes, nbytes == 0);
    return 1;
}

static size_t take_span(struct stream *stream, uint8_t *out, size_t avail)
{
    size_t n = stream->span_nbytes < avail ? stream->span_nbytes : avail;

    if (n)
        memcpy(out, stream->span, n);
    stream->span += n;
    stream->span_nbytes -= n;
    return n;
}

/* Fills `out` as far as the input goes.  Without the GIL. */
static size_t run(struct stream *stream, uint8_t *out, size_t avail)
{
    size_t n = take_span(stream, out, avail);

    while (n < avail && !stream->is_end) {
        switch (wharf_stream_next(stream->stream, &stream->span, &stream->span_nbytes)) {
        case WHARF_STREAM_OUTPUT:
            n += take_span(stream, out + n, avail - n);
            break;
        case WHARF_STREAM_INPUT:
            if (!fill(stream))
                return n;
            break;
        case WHARF_STREAM_END:
            stream->is_end = 1;
            wharf_stream_outcome(stream->stream, &stream->outcome);
        }
    }
    return n;
}

static PyObject *readinto(PyObject *self, PyObject *target)
{
    struct pywharf_state *state = PyType_GetModuleState(Py_TYPE(self));
    struct stream *stream = (struct stream *)self;
    struct wharf_outcome outcome;
    Py_buffer out;
    size_t n;
    int is_end;

    if (PyObject_GetBuffer(target, &out, PyBUF_WRITABLE) < 0)
        return NULL;
    if (pywharf_feed_enter(&stream->feed) < 0) {
        PyBuffer_Release(&out);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS n = run(stream, out.buf, (size_t)out.len);
    Py_END_ALLOW_THREADS outcome = stream->outcome;
    is_end = stream->is_end;
    pywharf_feed_leave(&stream->feed);
    PyBuffer_Release(&out);
    if (n == 0 && is_end && outcome.result != WHARF_OK)
        return pywharf_raise(pywharf_outcome_error(state, &outcome, -1));
    return PyLong_FromSize_t(n);
}

static PyObject *get_eof(PyObject *self, void *unused)
{
    const struct stream *stream = (const struct stream *)self;

    (void)unused;
    return PyBool_FromLong(stream->is_end && !stream->span_nbytes);
}

static PyGetSetDef attributes[] = {
    {"eof", get_eof, NULL, "bool: whether all output was given.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"feed", feed, METH_O, "feed(data, /)\n\nThe next input; empty says that there is no more."},
    {"readinto", readinto, METH_O,
     "readinto(buffer, /)\n\nFills the buffer.  Returns how many bytes; 0 says that more input is\n"
     "needed, or `eof` is true.  Raises DataError, after the output before it was given."},
    {"__reduce__", pywharf_refuse_pickle, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Stream(format)\n\nA decoder of a file: 'gzip', 'zlib', 'zstd',\n"
                "'lz4' or 'snappy'."},
    {Py_tp_new, new_stream},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "wharf._wharf.Stream",
    .basicsize = sizeof(struct stream),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int pywharf_stream_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int r = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;

    Py_XDECREF(type);
    return r;
}
