/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks of one call. */
#include "clientlib/python/src/pywharf.h"

#include <stdlib.h>
#include <string.h>

/* Making a thread takes as long as decoding some such number of bytes. */
#define NBYTES_PER_THREAD ((size_t)128 << 10)

/* ---- arguments ----------------------------------------------------------------------------- */

/* What one chunk's and a batch's arguments have in common, as they were given. */
struct common {
    PyObject *codec, *checksum, *timeout, *priority;
    int exact_input, exact_output;
    unsigned parameter;
};

static int parse_codec(PyObject *codec, uint32_t *ret_codec)
{
    if (PyUnicode_Check(codec)) {
        const char *name = PyUnicode_AsUTF8AndSize(codec, NULL);
        int number = name ? wharf_codec_from_name(name) : -1;

        if (number < 0 && name)
            PyErr_Format(PyExc_ValueError, "%s", wharf_error_message());
        *ret_codec = (uint32_t)number;
        return number < 0 ? -1 : 0;
    }
    unsigned long number = PyLong_AsUnsignedLong(codec);
    if (PyErr_Occurred())
        return -1;
    if (number > UINT32_MAX || !wharf_codec_name((uint32_t)number)) {
        PyErr_Format(PyExc_ValueError, "there is no codec %lu", number);
        return -1;
    }
    *ret_codec = (uint32_t)number;
    return 0;
}

static int parse_timeout(PyObject *timeout, uint32_t *ret_us)
{
    double seconds;

    if (timeout == Py_None)
        return 0;
    seconds = PyFloat_AsDouble(timeout);
    if (seconds == -1.0 && PyErr_Occurred())
        return -1;
    if (!(seconds > 0 && seconds * 1e6 < UINT32_MAX)) {
        PyErr_SetString(PyExc_ValueError, "timeout is in seconds, over 0 and under 4294");
        return -1;
    }
    /* 0 is no limit. */
    *ret_us = seconds * 1e6 < 1 ? 1 : (uint32_t)(seconds * 1e6);
    return 0;
}

static int parse_priority(PyObject *priority, uint32_t *ret_class)
{
    static const char *const names[] = {"default", "interactive", "normal", "background"};

    if (priority == Py_None)
        return 0;
    for (uint32_t i = 0; PyUnicode_Check(priority) && i < sizeof(names) / sizeof(names[0]); i++)
        if (PyUnicode_CompareWithASCIIString(priority, names[i]) == 0) {
            *ret_class = i;
            return 0;
        }
    PyErr_SetString(PyExc_ValueError, "priority is 'interactive', 'normal' or 'background'");
    return -1;
}

static int parse_checksum(PyObject *checksum, struct wharf_job *like)
{
    unsigned long value;

    if (checksum == Py_None)
        return 0;
    value = PyLong_AsUnsignedLong(checksum);
    if (PyErr_Occurred())
        return -1;
    if (value > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "checksum is a CRC-32");
        return -1;
    }
    like->checksum = (uint32_t)value;
    like->flags |= WHARF_JOB_CHECKSUM;
    return 0;
}

static int parse_common(const struct common *common, struct wharf_job *like)
{
    *like = (struct wharf_job)WHARF_JOB_INIT;
    like->codec = WHARF_CODEC_GZIP;
    like->parameter = common->parameter;
    if (common->exact_input)
        like->flags |= WHARF_JOB_EXACT_INPUT;
    if (common->exact_output)
        like->flags |= WHARF_JOB_EXACT_OUTPUT;
    if (common->codec && parse_codec(common->codec, &like->codec) < 0)
        return -1;
    if (parse_checksum(common->checksum, like) < 0 ||
        parse_timeout(common->timeout, &like->timeout_us) < 0)
        return -1;
    return parse_priority(common->priority, &like->job_class);
}

static int make_chunks(struct pywharf_chunks *chunks, Py_ssize_t n)
{
    chunks->chunks = calloc(n ? (size_t)n : 1, sizeof(chunks->chunks[0]));
    if (!chunks->chunks)
        PyErr_NoMemory();
    return chunks->chunks ? 0 : -1;
}

/* Holds nothing of what failed. */
static int init_chunk(struct pywharf_chunk *chunk, const struct wharf_job *like, PyObject *data,
                      PyObject *out, PyObject *size)
{
    if (pywharf_view_get(&chunk->in, data, 0) < 0)
        return -1;
    if (out != Py_None && pywharf_view_get(&chunk->out, out, 1) < 0) {
        pywharf_view_release(&chunk->in);
        return -1;
    }
    return pywharf_chunk_init(chunk, like, size);
}

int pywharf_chunks_parse_one(struct pywharf_chunks *chunks, PyObject *args, PyObject *kwargs,
                             PyObject **ret_callback)
{
    static const char *const names[] = {"data",        "codec",        "out",      "size",
                                        "exact_input", "exact_output", "checksum", "parameter",
                                        "timeout",     "priority",     "callback", NULL};
    struct common common = {NULL, Py_None, Py_None, Py_None, 0, 0, 0};
    PyObject *data, *out = Py_None, *size = Py_None;

    memset(chunks, 0, sizeof(*chunks));
    *ret_callback = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$OOppOIOOO", (char **)names, &data,
                                     &common.codec, &out, &size, &common.exact_input,
                                     &common.exact_output, &common.checksum, &common.parameter,
                                     &common.timeout, &common.priority, ret_callback))
        return -1;
    if (parse_common(&common, &chunks->like) < 0 || make_chunks(chunks, 1) < 0)
        return -1;
    if (init_chunk(chunks->chunks, &chunks->like, data, out, size) == 0) {
        chunks->n = 1;
        return 0;
    }
    pywharf_chunks_deinit(chunks);
    return -1;
}

/* A batch's `outs` or `sizes` are None, or a sequence of as many as there are chunks; a size may be
 * a number for all.  Returns the chunk's own as a new reference. */
static PyObject *item_of(PyObject *items, Py_ssize_t i)
{
    if (items == Py_None || PyLong_Check(items))
        return Py_NewRef(items);
    return PySequence_GetItem(items, i);
}

static int has_as_many(PyObject *items, Py_ssize_t n, const char *name)
{
    Py_ssize_t n_items;

    if (items == Py_None || PyLong_Check(items))
        return 1;
    n_items = PySequence_Size(items);
    if (n_items >= 0 && n_items != n)
        PyErr_Format(PyExc_ValueError, "%s has %zd items for %zd chunks", name, n_items, n);
    return n_items == n;
}

/* The chunk's own memory of `items`, which are None, a sequence, or an array whose rows are held.
 */
static int view_item(struct pywharf_view *view, PyObject *items, const struct pywharf_view *rows,
                     Py_ssize_t i, int writable)
{
    PyObject *item;
    int r;

    if (rows->buffer.obj) {
        pywharf_view_row(view, rows, i);
        return 0;
    }
    item = item_of(items, i);
    r = item ? 0 : -1;
    if (item && item != Py_None)
        r = pywharf_view_get(view, item, writable);
    Py_XDECREF(item);
    return r;
}

static int fill_chunk(struct pywharf_chunks *chunks, Py_ssize_t i, PyObject *datas, PyObject *outs,
                      PyObject *sizes)
{
    struct pywharf_chunk *chunk = &chunks->chunks[i];
    PyObject *size = NULL;
    int r = view_item(&chunk->in, datas, &chunks->in_rows, i, 0);

    if (r == 0)
        r = view_item(&chunk->out, outs, &chunks->out_rows, i, 1);
    if (r == 0)
        size = item_of(sizes, i);
    if (size)
        r = pywharf_chunk_init(chunk, &chunks->like, size);
    else
        pywharf_chunk_deinit(chunk);
    Py_XDECREF(size);
    return size ? r : -1;
}

/* Sequences may change under us, since buffers are asked of strangers: each item is fetched
 * once.  Asking an array for its rows takes longer than many chunks' decoding: it is held as one.
 */
static int fill_chunks(struct pywharf_chunks *chunks, PyObject *datas, PyObject *outs,
                       PyObject *sizes, Py_ssize_t n)
{
    if (pywharf_view_rows(&chunks->in_rows, datas, n, 0) < 0 ||
        pywharf_view_rows(&chunks->out_rows, outs, n, 1) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++, chunks->n++)
        if (fill_chunk(chunks, i, datas, outs, sizes) < 0)
            return -1;
    return 0;
}

static int compare_addresses(const void *a, const void *b)
{
    const Py_buffer *one = *(const Py_buffer *const *)a, *two = *(const Py_buffer *const *)b;

    return one->buf < two->buf ? -1 : one->buf > two->buf;
}

/* Two chunks that write to the same bytes would both be called good. */
static int outs_are_apart(const struct pywharf_chunks *chunks)
{
    const Py_buffer **sorted = calloc((size_t)chunks->n + 1, sizeof(sorted[0]));
    Py_ssize_t n = 0;
    int is_apart = 1;

    if (!sorted) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < chunks->n; i++)
        if (chunks->chunks[i].out.buffer.obj && chunks->chunks[i].out.buffer.len)
            sorted[n++] = &chunks->chunks[i].out.buffer;
    qsort(sorted, (size_t)n, sizeof(sorted[0]), compare_addresses);
    for (Py_ssize_t i = 0; i + 1 < n; i++)
        if ((char *)sorted[i]->buf + sorted[i]->len > (char *)sorted[i + 1]->buf)
            is_apart = 0;
    free(sorted);
    if (!is_apart)
        PyErr_SetString(PyExc_ValueError, "outs overlap");
    return is_apart;
}

static int parse_errors(const char *errors, int *ret_returns)
{
    *ret_returns = strcmp(errors, "return") == 0;
    if (*ret_returns || strcmp(errors, "raise") == 0)
        return 0;
    PyErr_SetString(PyExc_ValueError, "errors is 'raise' or 'return'");
    return -1;
}

int pywharf_chunks_parse_batch(struct pywharf_chunks *chunks, PyObject *args, PyObject *kwargs,
                               unsigned *ret_n_threads, PyObject **ret_callback)
{
    static const char *const names[] = {"chunks",      "codec",        "outs",      "sizes",
                                        "exact_input", "exact_output", "parameter", "timeout",
                                        "priority",    "errors",       "threads",   "callback",
                                        NULL};
    struct common common = {NULL, Py_None, Py_None, Py_None, 0, 0, 0};
    PyObject *datas, *outs = Py_None, *sizes = Py_None, *callback = Py_None;
    const char *errors = "raise";
    unsigned n_threads = 0;
    Py_ssize_t n;

    memset(chunks, 0, sizeof(*chunks));
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$OOppIOOsIO", (char **)names, &datas,
                                     &common.codec, &outs, &sizes, &common.exact_input,
                                     &common.exact_output, &common.parameter, &common.timeout,
                                     &common.priority, &errors, &n_threads, &callback))
        return -1;
    chunks->is_batch = 1;
    if (parse_errors(errors, &chunks->returns_errors) < 0 ||
        parse_common(&common, &chunks->like) < 0)
        return -1;
    n = PySequence_Size(datas);
    if (n < 0 || !has_as_many(outs, n, "outs") || !has_as_many(sizes, n, "sizes") ||
        make_chunks(chunks, n) < 0)
        return -1;
    if (fill_chunks(chunks, datas, outs, sizes, n) < 0 || !outs_are_apart(chunks)) {
        pywharf_chunks_deinit(chunks);
        return -1;
    }
    *ret_n_threads = n_threads;
    *ret_callback = callback;
    return 0;
}

void pywharf_chunks_deinit(struct pywharf_chunks *chunks)
{
    Py_ssize_t n = chunks->n;

    chunks->n = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        pywharf_chunk_deinit(&chunks->chunks[i]);
    free(chunks->chunks);
    chunks->chunks = NULL;
    pywharf_view_release(&chunks->in_rows);
    pywharf_view_release(&chunks->out_rows);
}

/* ---- decoding ------------------------------------------------------------------------------ */

struct decoding {
    struct pywharf_chunks *chunks;
    struct wharf *handle;
};

static void decode_part(void *context, size_t i, unsigned member)
{
    struct decoding *decoding = context;

    (void)member;
    pywharf_chunk_decode(&decoding->chunks->chunks[i], decoding->handle, &decoding->chunks->like);
}

static unsigned limit(unsigned n, size_t most)
{
    return n < most ? n : (unsigned)most;
}

static unsigned n_threads_for(const struct pywharf_chunks *chunks, unsigned wanted)
{
    size_t nbytes = 0;

    for (Py_ssize_t i = 0; i < chunks->n; i++)
        nbytes += (size_t)chunks->chunks[i].in.buffer.len + chunks->chunks[i].out_avail;
    return wanted ? wanted : limit(pywharf_n_cores(), 1 + nbytes / NBYTES_PER_THREAD);
}

void pywharf_chunks_decode(struct pywharf_chunks *chunks, struct wharf *handle, unsigned n_threads)
{
    struct decoding decoding = {chunks, handle};
    const struct pywharf_work work = {decode_part, &decoding, (size_t)chunks->n};

    pywharf_crew_run(&work, n_threads_for(chunks, n_threads));
}

/* ---- the answer ---------------------------------------------------------------------------- */

/* The exception that was just raised, as an object. */
static PyObject *take_error(void)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

PyObject *pywharf_chunks_answer(struct pywharf_chunks *chunks, struct pywharf_state *state)
{
    PyObject *list;

    if (!chunks->is_batch)
        return pywharf_chunk_answer(&chunks->chunks[0], state, -1);
    list = PyList_New(chunks->n);
    for (Py_ssize_t i = 0; list && i < chunks->n; i++) {
        PyObject *answer = pywharf_chunk_answer(&chunks->chunks[i], state, i);

        if (!answer && chunks->returns_errors)
            answer = take_error();
        if (!answer)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i, answer);
    }
    return list;
}
