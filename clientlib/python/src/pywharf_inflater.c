/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inflater: zlib's decompressobj by wharf's inflater, which takes and gives in each call what zlib
 * would (encoders/zlib/zlib_steps.h).
 *
 * It is used in one of two ways: `decompress` and `flush` are zlib's, where what is left of the
 * input becomes an attribute; `feed` and `readinto` keep the input and write to the caller's
 * memory, which readers of files need.
 */
#include "clientlib/python/src/pywharf.h"

#include <stdlib.h>
#include <string.h>

#include "encoders/zlib/zlib_steps.h"

enum { FIRST_NBYTES = 16384, MAX_FIRST_NBYTES = 1 << 20, MAX_WBITS = 15 };

struct inflater {
    PyObject_HEAD struct wharf_zlib_steps *steps;
    struct wharf_zlib_io io;
    struct pywharf_feed feed;
    PyObject *unused, *tail; /* bytes */
    int wrap;
    unsigned wbits;
    int is_end;
    int is_flushed; /* at its end: zlib has forgotten it */
};

/* ---- its life ------------------------------------------------------------------------------ */

/* zlib's windowBits: below 0 a raw stream, from 16 on gzip's header, from 32 on either header.
 * Returns 0, or -1 where zlib has none of that. */
static int parse_wbits(int wbits, int *ret_wrap, unsigned *ret_wbits)
{
    int wrap = 0;

    if (wbits < -MAX_WBITS || wbits >= 48)
        return -1;
    if (wbits < 0) {
        wbits = -wbits;
    } else {
        wrap = (wbits >> 4) + 5;
        wbits &= 15;
    }
    *ret_wrap = wrap;
    *ret_wbits = (unsigned)wbits;
    return wbits == 0 || wbits >= 8 ? 0 : -1;
}

static void begin(struct inflater *inflater)
{
    wharf_zlib_steps_init(inflater->steps, inflater->wrap, inflater->wbits);
    memset(&inflater->io, 0, sizeof(inflater->io));
    inflater->io.adler = inflater->wrap & 1;
    inflater->is_end = 0;
}

static struct inflater *make(PyTypeObject *type)
{
    struct inflater *inflater = (struct inflater *)PyType_GenericAlloc(type, 0);

    if (!inflater)
        return NULL;
    inflater->steps = malloc(sizeof(*inflater->steps));
    inflater->unused = PyBytes_FromStringAndSize(NULL, 0);
    inflater->tail = PyBytes_FromStringAndSize(NULL, 0);
    if (!inflater->steps)
        PyErr_NoMemory();
    if (!inflater->steps || !inflater->unused || !inflater->tail ||
        pywharf_feed_init(&inflater->feed) < 0) {
        Py_DECREF((PyObject *)inflater);
        return NULL;
    }
    return inflater;
}

PyObject *pywharf_inflater_new(struct pywharf_state *state, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"wbits", NULL};
    int number = MAX_WBITS, wrap;
    struct inflater *inflater;
    unsigned wbits;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i", (char **)names, &number))
        return NULL;
    if (parse_wbits(number, &wrap, &wbits) < 0)
        return PyErr_Format(PyExc_ValueError, "Invalid initialization option: wbits is %d", number);
    inflater = make(state->inflater_type);
    if (!inflater)
        return NULL;
    inflater->wrap = wrap;
    inflater->wbits = wbits;
    begin(inflater);
    return (PyObject *)inflater;
}

static void dealloc(PyObject *self)
{
    struct inflater *inflater = (struct inflater *)self;
    PyTypeObject *type = Py_TYPE(self);

    free(inflater->steps);
    pywharf_feed_deinit(&inflater->feed);
    Py_XDECREF(inflater->unused);
    Py_XDECREF(inflater->tail);
    PyObject_Free(self);
    Py_DECREF(type);
}

static void replace(PyObject **member, PyObject *value)
{
    PyObject *before = *member;

    *member = value;
    Py_XDECREF(before);
}

static PyObject *copy(PyObject *self, PyObject *unused)
{
    struct inflater *from = (struct inflater *)self, *to;

    (void)unused;
    if (from->is_flushed)
        return PyErr_Format(PyExc_ValueError, "Inconsistent stream state");
    to = make(Py_TYPE(self));
    if (!to)
        return NULL;
    if (pywharf_feed_enter(&from->feed) < 0) {
        Py_DECREF((PyObject *)to);
        return NULL;
    }
    *to->steps = *from->steps;
    if (from->steps->inflate.tables == &from->steps->inflate.own_tables)
        to->steps->inflate.tables = &to->steps->inflate.own_tables;
    to->io = from->io;
    to->wrap = from->wrap;
    to->wbits = from->wbits;
    to->is_end = from->is_end;
    replace(&to->unused, Py_NewRef(from->unused));
    replace(&to->tail, Py_NewRef(from->tail));
    pywharf_feed_leave(&from->feed);
    return (PyObject *)to;
}

/* ---- decoding ------------------------------------------------------------------------------ */

static uint32_t clip(size_t nbytes)
{
    return nbytes < UINT32_MAX ? (uint32_t)nbytes : UINT32_MAX;
}

/* Until the input or the room ends.  Without the GIL.  Returns zlib's result. */
static int run(struct inflater *inflater, uint8_t *out, size_t avail, int flush, size_t *n_out)
{
    struct wharf_zlib_io *io = &inflater->io;
    int result;

    do {
        uint32_t in_nbytes = clip(inflater->feed.nbytes), out_nbytes = clip(avail - *n_out);

        io->next_in = inflater->feed.at;
        io->avail_in = in_nbytes;
        io->next_out = out + *n_out;
        io->avail_out = out_nbytes;
        result = wharf_zlib_steps_run(inflater->steps, io, flush);
        pywharf_feed_take(&inflater->feed, in_nbytes - io->avail_in);
        *n_out += out_nbytes - io->avail_out;
    } while (result == WHARF_Z_OK && inflater->feed.nbytes && *n_out < avail);
    return result;
}

static int is_bad(int result)
{
    return result != WHARF_Z_OK && result != WHARF_Z_STREAM_END && result != WHARF_Z_BUF_ERROR;
}

/* zlib.error, with zlib's words. */
static PyObject *raise_error(const struct inflater *inflater, int result)
{
    const char *message = result == WHARF_Z_DATA_ERROR ? inflater->io.msg : NULL;
    unsigned long long bit = 8 * inflater->io.total_in - inflater->steps->bits;
    PyObject *module = PyImport_ImportModule("zlib");
    PyObject *class = module ? PyObject_GetAttrString(module, "error") : NULL;

    if (class && message)
        PyErr_Format(class, "Error %d while decompressing data: %s (wharf: before bit %llu)",
                     result, message, bit);
    else if (class)
        PyErr_Format(class, "Error %d while decompressing data", result);
    Py_XDECREF(class);
    Py_XDECREF(module);
    return NULL;
}

static size_t first_room(size_t in_nbytes, size_t most)
{
    size_t room = in_nbytes < MAX_FIRST_NBYTES / 4 ? 4 * in_nbytes : MAX_FIRST_NBYTES;

    room = room < FIRST_NBYTES ? FIRST_NBYTES : room;
    return room < most ? room : most;
}

/* All that the input gives, up to `most` bytes.  Takes the lock.  NULL with an exception. */
static PyObject *run_to_bytes(struct inflater *inflater, size_t most, int flush, int *ret_result)
{
    size_t room = first_room(inflater->feed.nbytes, most), n = 0;
    uint8_t *out = malloc(room);
    PyObject *answer = NULL;

    Py_BEGIN_ALLOW_THREADS while (out)
    {
        uint8_t *grown;

        *ret_result = run(inflater, out, room, flush, &n);
        if ((*ret_result != WHARF_Z_OK && *ret_result != WHARF_Z_BUF_ERROR) || n < room ||
            room == most)
            break;
        room = room < most / 2 ? 2 * room : most;
        grown = realloc(out, room);
        if (!grown)
            free(out);
        out = grown;
    }
    Py_END_ALLOW_THREADS if (out) answer =
        PyBytes_FromStringAndSize((const char *)out, (Py_ssize_t)n);
    else PyErr_NoMemory();
    free(out);
    return answer;
}

/* What is left of the input: behind a stream's end, or for the next call.  zlib has what is behind
 * the end as the tail too, if there was a tail before. */
static int keep_rest(struct inflater *inflater, int result)
{
    PyObject *rest = pywharf_feed_rest(&inflater->feed);

    if (!rest)
        return -1;
    if (result == WHARF_Z_STREAM_END) {
        PyBytes_Concat(&inflater->unused, rest);
        inflater->is_end = 1;
        if (!inflater->unused)
            inflater->unused = PyBytes_FromStringAndSize(NULL, 0);
    }
    if (result == WHARF_Z_STREAM_END && PyBytes_Size(inflater->tail) == 0)
        Py_DECREF(rest);
    else
        replace(&inflater->tail, rest);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *decode(struct inflater *inflater, PyObject *data, Py_ssize_t max_length, int flush)
{
    int result = WHARF_Z_OK;
    PyObject *out = NULL;

    if (pywharf_feed_enter(&inflater->feed) < 0)
        return NULL;
    if (pywharf_feed_give(&inflater->feed, data) == 0)
        out = run_to_bytes(inflater, max_length ? (size_t)max_length : PY_SSIZE_T_MAX, flush,
                           &result);
    if (out && keep_rest(inflater, result) < 0)
        Py_CLEAR(out);
    /* As in zlib, flush leaves what is bad for whoever looks at `eof`. */
    if (out && is_bad(result) && flush != WHARF_Z_FINISH) {
        Py_CLEAR(out);
        raise_error(inflater, result);
    }
    pywharf_feed_end(&inflater->feed);
    pywharf_feed_leave(&inflater->feed);
    return out;
}

static PyObject *decompress(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"", "max_length", NULL};
    Py_ssize_t max_length = 0;
    PyObject *data;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|n", (char **)names, &data, &max_length))
        return NULL;
    if (max_length < 0)
        return PyErr_Format(PyExc_ValueError, "max_length must be non-negative");
    return decode((struct inflater *)self, data, max_length, 2 /* Z_SYNC_FLUSH */);
}

static PyObject *flush(PyObject *self, PyObject *args)
{
    struct inflater *inflater = (struct inflater *)self;
    Py_ssize_t length = 1;
    PyObject *tail, *out;

    if (!PyArg_ParseTuple(args, "|n", &length))
        return NULL;
    if (length <= 0)
        return PyErr_Format(PyExc_ValueError, "length must be greater than zero");
    tail = Py_NewRef(inflater->tail);
    out = decode(inflater, tail, 0, WHARF_Z_FINISH);
    Py_DECREF(tail);
    inflater->is_flushed |= inflater->is_end;
    return out;
}

/* ---- for readers of files ------------------------------------------------------------------ */

static PyObject *feed(PyObject *self, PyObject *data)
{
    struct inflater *inflater = (struct inflater *)self;
    int r;

    if (pywharf_feed_enter(&inflater->feed) < 0)
        return NULL;
    r = pywharf_feed_give(&inflater->feed, data);
    pywharf_feed_leave(&inflater->feed);
    return r < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *readinto(PyObject *self, PyObject *target)
{
    struct inflater *inflater = (struct inflater *)self;
    int result = WHARF_Z_OK;
    size_t n = 0;
    Py_buffer out;

    if (PyObject_GetBuffer(target, &out, PyBUF_WRITABLE) < 0)
        return NULL;
    if (pywharf_feed_enter(&inflater->feed) < 0) {
        PyBuffer_Release(&out);
        return NULL;
    }
    if (out.len && !inflater->is_end) {
        Py_BEGIN_ALLOW_THREADS result =
            run(inflater, out.buf, (size_t)out.len, 2 /* Z_SYNC_FLUSH */, &n);
        Py_END_ALLOW_THREADS
    }
    if (result == WHARF_Z_STREAM_END)
        inflater->is_end = 1;
    /* What came out before an error is given first: the next call meets it again. */
    PyObject *answer =
        is_bad(result) && n == 0 ? raise_error(inflater, result) : PyLong_FromSize_t(n);
    pywharf_feed_leave(&inflater->feed);
    PyBuffer_Release(&out);
    return answer;
}

static PyObject *restart(PyObject *self, PyObject *unused)
{
    struct inflater *inflater = (struct inflater *)self;

    (void)unused;
    if (pywharf_feed_enter(&inflater->feed) < 0)
        return NULL;
    begin(inflater);
    pywharf_feed_leave(&inflater->feed);
    return Py_NewRef(Py_None);
}

static PyObject *take_rest(PyObject *self, PyObject *unused)
{
    struct inflater *inflater = (struct inflater *)self;
    PyObject *rest;

    (void)unused;
    if (pywharf_feed_enter(&inflater->feed) < 0)
        return NULL;
    rest = pywharf_feed_rest(&inflater->feed);
    pywharf_feed_leave(&inflater->feed);
    return rest;
}

/* ---- attributes ---------------------------------------------------------------------------- */

static PyObject *get_eof(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct inflater *)self)->is_end);
}

static PyObject *get_unused(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(((struct inflater *)self)->unused);
}

static PyObject *get_tail(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(((struct inflater *)self)->tail);
}

static PyGetSetDef attributes[] = {
    {"eof", get_eof, NULL, "bool: whether the stream's end was reached.", NULL},
    {"unused_data", get_unused, NULL, "bytes: what followed the stream's end.", NULL},
    {"unconsumed_tail", get_tail, NULL, "bytes: input that max_length left for the next call.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"decompress", (PyCFunction)(void (*)(void))decompress, METH_VARARGS | METH_KEYWORDS,
     "decompress(data, /, max_length=0)\n\nWhat `data` gives, as bytes: at most max_length of "
     "them,\n"
     "or all of it if that is 0.  Raises zlib.error where the data is bad."},
    {"flush", flush, METH_VARARGS,
     "flush(length=16384, /)\n\nWhat unconsumed_tail gives, as bytes."},
    {"copy", copy, METH_NOARGS, "copy()\n\nAnother one that stands where this one does."},
    {"__copy__", copy, METH_NOARGS, NULL},
    {"__deepcopy__", copy, METH_O, NULL},
    {"feed", feed, METH_O,
     "feed(data, /)\n\nThe next input, for readinto, which has used up what it had."},
    {"readinto", readinto, METH_O,
     "readinto(buffer, /)\n\nFills the buffer.  Returns how many bytes; 0 says that more input is\n"
     "needed, or `eof` is true.  Raises zlib.error."},
    {"take_rest", take_rest, METH_NOARGS,
     "take_rest()\n\nTakes back what was fed and not used, as bytes."},
    {"restart", restart, METH_NOARGS,
     "restart()\n\nIs ready for another stream, with the same input."},
    {"__reduce__", pywharf_refuse_pickle, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "zlib.decompressobj by wharf: wharf._wharf.inflater(wbits=15) makes it.  wbits is "
                "zlib's: -8 to -15 raw\n"
                "Deflate, 8 to 15 or 0 zlib, 24 to 31 gzip, 40 to 47 zlib or gzip."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "wharf._wharf.Inflater",
    .basicsize = sizeof(struct inflater),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int pywharf_inflater_init(PyObject *module, struct pywharf_state *state)
{
    state->inflater_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->inflater_type ? PyModule_AddType(module, state->inflater_type) : -1;
}
