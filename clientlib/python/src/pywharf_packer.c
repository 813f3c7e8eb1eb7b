/* SPDX-License-Identifier: Apache-2.0 */
/* Packer: what goes in is gathered, packed on several threads, and comes out as a file's bytes. */
#include "clientlib/python/src/pywharf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/python/src/pywharf_pack.h"

enum {
    WINDOW_NBYTES = WHARF_DEFLATE_WINDOW_NBYTES,
    /* What each thread has to do before all are asked for once more. */
    NBYTES_PER_THREAD = 1 << 20,
    DEFAULT_MAX_THREADS = 16,
    KEPT_NBYTES = 1 << 20,
};

struct packer {
    PyObject_HEAD struct pywharf_pack pack;
    PyThread_type_lock lock; /* of its calls */
    int error;               /* negative errno of a call that failed: no more are taken */
};

int pywharf_pack_put(struct pywharf_pack_bytes *bytes, const void *from, size_t nbytes)
{
    if (nbytes > bytes->avail - bytes->nbytes) {
        size_t avail = bytes->nbytes + nbytes + bytes->avail / 2;
        uint8_t *at = realloc(bytes->at, avail);

        if (!at)
            return -ENOMEM;
        bytes->at = at;
        bytes->avail = avail;
    }
    if (nbytes)
        memcpy(bytes->at + bytes->nbytes, from, nbytes);
    bytes->nbytes += nbytes;
    return 0;
}

/* ---- making one ---------------------------------------------------------------------------- */

static int refuse_level(const struct wharf_encoder_row *row, const char *name)
{
    if (row->level_min == row->level_max)
        PyErr_Format(PyExc_ValueError, "%s has no levels", name);
    else
        PyErr_Format(PyExc_ValueError, "the level of %s is %d to %d", name, row->level_min,
                     row->level_max);
    return -1;
}

/* gzip in parts is made by the encoder of that name alone. */
static int take_level(struct pywharf_pack *pack, PyObject *level)
{
    struct wharf_encoder_options options = {.name = pack->format->has_window ? "zlib" : NULL,
                                            .level = WHARF_LEVEL_DEFAULT};
    const struct wharf_encoder_row *row, *first;
    long number = level == Py_None ? WHARF_LEVEL_DEFAULT : PyLong_AsLong(level);

    if (number == -1 && PyErr_Occurred())
        return -1;
    wharf_encoder_choose(pack->ops, &options, &first, &pack->level);
    if (level == Py_None)
        return 0;
    options.level = (int)number;
    if (number < 0 || number > INT32_MAX ||
        wharf_encoder_choose(pack->ops, &options, &row, &pack->level) < 0)
        return refuse_level(first, pack->format->name);
    return 0;
}

static int take_chunk(struct pywharf_pack *pack, PyObject *chunk)
{
    const struct pywharf_pack_format *format = pack->format;
    uint32_t unit_nbytes = wharf_codec_unit_nbytes(pack->ops, 0);
    Py_ssize_t nbytes;

    pack->piece_nbytes = format->chunk_nbytes;
    if (chunk == Py_None)
        return 0;
    nbytes = PyNumber_AsSsize_t(chunk, PyExc_OverflowError);
    if (nbytes == -1 && PyErr_Occurred())
        return -1;
    if (!format->chunk_max_nbytes) {
        PyErr_Format(PyExc_ValueError, "%s has no chunks", format->name);
        return -1;
    }
    if (nbytes < (Py_ssize_t)format->chunk_min_nbytes ||
        nbytes > (Py_ssize_t)format->chunk_max_nbytes || nbytes % unit_nbytes) {
        PyErr_Format(PyExc_ValueError, "a chunk of %s has %zu to %zu bytes, in values of %u",
                     format->name, format->chunk_min_nbytes, format->chunk_max_nbytes, unit_nbytes);
        return -1;
    }
    pack->piece_nbytes = (size_t)nbytes;
    return 0;
}

static int take_codec(struct pywharf_pack *pack, const char *name)
{
    int number = name ? wharf_codec_from_name(name) : (int)pack->format->codec;

    if (name && strcmp(pack->format->name, "wharf") != 0) {
        PyErr_SetString(PyExc_ValueError, "codec is for the format wharf");
        return -1;
    }
    if (number < 0) {
        PyErr_Format(PyExc_ValueError, "%s", wharf_error_message());
        return -1;
    }
    pack->codec = (uint32_t)number;
    pack->ops = wharf_codec_find(pack->codec)->ops;
    if (wharf_codec_unit_nbytes(pack->ops, 0))
        return 0;
    PyErr_Format(PyExc_ValueError, "codec %s needs a parameter: wharf pack has it", name);
    return -1;
}

static int take_memory(struct pywharf_pack *pack, unsigned n_threads)
{
    size_t per_thread = NBYTES_PER_THREAD / pack->piece_nbytes;
    unsigned n_cores = pywharf_n_cores();
    int r;

    if (!n_threads)
        n_threads = n_cores < DEFAULT_MAX_THREADS ? n_cores : DEFAULT_MAX_THREADS;
    pack->n_threads = n_threads < PYWHARF_MAX_THREADS ? n_threads : PYWHARF_MAX_THREADS;
    /* Tiny chunks are packed in smaller turns: each takes memory of its own. */
    per_thread = per_thread < 1 ? 1 : per_thread > 1024 ? 1024 : per_thread;
    pack->n_pieces = pack->n_threads * per_thread;
    r = pack->format->make_tool(pack, &pack->tools[0]);
    if (r < 0)
        return r;
    pack->out_avail = pack->format->bound(pack, &pack->tools[0]);
    /* Pages that nobody touches cost nothing. */
    pack->memory = malloc(WINDOW_NBYTES + pack->n_pieces * pack->piece_nbytes);
    pack->outs = malloc(pack->n_pieces * pack->out_avail);
    pack->pieces = calloc(pack->n_pieces, sizeof(*pack->pieces));
    return pack->memory && pack->outs && pack->pieces ? 0 : -ENOMEM;
}

static PyObject *new_packer(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"", "level", "chunk", "codec", "threads", NULL};
    PyObject *level = Py_None, *chunk = Py_None;
    const char *name, *codec = NULL;
    struct packer *packer;
    unsigned n_threads = 0;
    int r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|$OOzI", (char **)names, &name, &level, &chunk,
                                     &codec, &n_threads))
        return NULL;
    if (!pywharf_pack_format(name))
        return PyErr_Format(PyExc_ValueError, "wharf makes no files of the format %s", name);
    packer = (struct packer *)PyType_GenericAlloc(type, 0);
    if (!packer)
        return NULL;
    packer->pack.format = pywharf_pack_format(name);
    packer->lock = PyThread_allocate_lock();
    if (!packer->lock)
        PyErr_NoMemory();
    if (!packer->lock || take_codec(&packer->pack, codec) < 0 ||
        take_level(&packer->pack, level) < 0 || take_chunk(&packer->pack, chunk) < 0) {
        Py_DECREF((PyObject *)packer);
        return NULL;
    }
    r = take_memory(&packer->pack, n_threads);
    if (r == 0)
        return (PyObject *)packer;
    Py_DECREF((PyObject *)packer);
    return pywharf_raise(pywharf_call_error(r, strerror(-r)));
}

static void dealloc(PyObject *self)
{
    struct packer *packer = (struct packer *)self;
    struct pywharf_pack *pack = &packer->pack;
    PyTypeObject *type = Py_TYPE(self);

    for (unsigned i = 0; i < PYWHARF_MAX_THREADS; i++) {
        if (pack->tools[i].encoder)
            pack->ops->encoder->free(pack->tools[i].encoder);
        wharf_gzip_parts_free(pack->tools[i].parts);
    }
    free(pack->memory);
    free(pack->outs);
    free(pack->pieces);
    free(pack->out.at);
    free(pack->entries);
    if (packer->lock)
        PyThread_free_lock(packer->lock);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- packing, without the GIL -------------------------------------------------------------- */

static void pack_piece(void *context, size_t i, unsigned member)
{
    struct pywharf_pack *pack = context;
    struct pywharf_pack_tool *tool = &pack->tools[member];
    struct pywharf_pack_piece *piece = &pack->pieces[i];

    piece->error = tool->encoder || tool->parts ? 0 : pack->format->make_tool(pack, tool);
    if (piece->error == 0)
        piece->error = pack->format->pack(pack, tool, piece);
}

/* Cuts what is there into pieces. */
static size_t cut(struct pywharf_pack *pack, bool is_last)
{
    const uint8_t *raw = pack->memory + WINDOW_NBYTES;
    bool needs_one = is_last && pack->format->may_be_empty && pack->n_packed == 0;
    bool needs_last = is_last && pack->format->has_window;
    size_t n = 0, at = 0;

    for (; at < pack->n_there || (n == 0 && (needs_one || needs_last)); n++) {
        struct pywharf_pack_piece *piece = &pack->pieces[n];
        size_t left = pack->n_there - at;

        piece->raw = raw + at;
        piece->raw_nbytes = left < pack->piece_nbytes ? left : pack->piece_nbytes;
        piece->window_nbytes = at ? WINDOW_NBYTES : pack->n_window;
        piece->out = pack->outs + n * pack->out_avail;
        at += piece->raw_nbytes;
        piece->is_last = is_last && at == pack->n_there;
    }
    return n;
}

static void keep_window(struct pywharf_pack *pack)
{
    uint8_t *end = pack->memory + WINDOW_NBYTES + pack->n_there;
    size_t n = pack->n_window + pack->n_there;

    if (pack->format->has_window) {
        pack->n_window = n < WINDOW_NBYTES ? n : WINDOW_NBYTES;
        memmove(pack->memory + WINDOW_NBYTES - pack->n_window, end - pack->n_window,
                pack->n_window);
    }
    pack->n_packed += pack->n_there;
    pack->n_there = 0;
}

static int pack_all(struct pywharf_pack *pack, bool is_last)
{
    size_t n = cut(pack, is_last);
    int r = pack->is_begun ? 0 : pack->format->begin(pack);

    pack->is_begun = true;
    pywharf_crew_run(&(struct pywharf_work){pack_piece, pack, n}, pack->n_threads);
    for (size_t i = 0; i < n && r == 0; i++) {
        r = pack->pieces[i].error;
        if (r == 0)
            r = pack->format->put(pack, &pack->pieces[i]);
    }
    keep_window(pack);
    return r;
}

static int take(struct pywharf_pack *pack, const uint8_t *in, size_t nbytes)
{
    size_t avail = pack->n_pieces * pack->piece_nbytes;
    int r = 0;

    while (nbytes && r == 0) {
        size_t n = avail - pack->n_there < nbytes ? avail - pack->n_there : nbytes;

        memcpy(pack->memory + WINDOW_NBYTES + pack->n_there, in, n);
        pack->n_there += n;
        in += n;
        nbytes -= n;
        if (pack->n_there == avail)
            r = pack_all(pack, false);
    }
    return r;
}

static int end(struct pywharf_pack *pack)
{
    int r = pack_all(pack, true);

    return r < 0 ? r : pack->format->end(pack);
}

/* ---- calls --------------------------------------------------------------------------------- */

static int run(struct packer *packer, const Py_buffer *in)
{
    if (packer->error == 0 && packer->pack.is_ended)
        return -EBADFD;
    if (packer->error == 0)
        packer->error = in ? take(&packer->pack, in->buf, (size_t)in->len) : end(&packer->pack);
    packer->pack.is_ended |= !in;
    return packer->error;
}

static PyObject *take_made(struct pywharf_pack *pack)
{
    PyObject *made =
        PyBytes_FromStringAndSize((const char *)pack->out.at, (Py_ssize_t)pack->out.nbytes);

    if (!made)
        return NULL;
    pack->out.nbytes = 0;
    if (pack->out.avail > KEPT_NBYTES) {
        free(pack->out.at);
        pack->out = (struct pywharf_pack_bytes){NULL, 0, 0};
    }
    return made;
}

/* Takes `in`, or with NULL ends the file. */
static PyObject *call(struct packer *packer, const Py_buffer *in)
{
    PyObject *made = NULL;
    int r;

    Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(packer->lock, WAIT_LOCK);
    r = run(packer, in);
    Py_END_ALLOW_THREADS if (r == 0) made = take_made(&packer->pack);
    else if (r == -EBADFD) PyErr_SetString(PyExc_ValueError, "the file was ended before");
    else pywharf_raise(pywharf_call_error(r, strerror(-r)));
    PyThread_release_lock(packer->lock);
    return made;
}

static PyObject *pack(PyObject *self, PyObject *data)
{
    PyObject *made;
    Py_buffer in;

    if (PyObject_GetBuffer(data, &in, PyBUF_SIMPLE) < 0)
        return NULL;
    made = call((struct packer *)self, &in);
    PyBuffer_Release(&in);
    return made;
}

static PyObject *finish(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call((struct packer *)self, NULL);
}

static PyMethodDef methods[] = {
    {"pack", pack, METH_O,
     "pack(data, /)\n\nTakes the bytes in, and returns those of the file that are ready: often "
     "none."},
    {"finish", finish, METH_NOARGS,
     "finish()\n\nThe file's last bytes.  Nothing is taken any more."},
    {"__reduce__", pywharf_refuse_pickle, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Packer(format, /, *, level=None, chunk=None, codec=None, threads=0)\n\nMakes a file of the "
     "format 'gzip', 'bgzf', 'zstd' or 'wharf'; wharf.open describes the arguments."},
    {Py_tp_new, new_packer},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "wharf._wharf.Packer",
    .basicsize = sizeof(struct packer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int pywharf_packer_init(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int r = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;

    Py_XDECREF(type);
    return r;
}
