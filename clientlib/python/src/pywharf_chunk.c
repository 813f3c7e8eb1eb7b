/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One chunk.  Its memory is the caller's, held by Py_buffers, or made here.  Without `out` the size
 * that the format states is made as bytes at once, which then is the answer without a copy; what
 * states no size, or an incredible one, is decoded into memory that grows.
 */
#include "clientlib/python/src/pywharf.h"

#include <stdlib.h>
#include <string.h>

#include "clientlib/python/src/pywharf_size.h"

static int limit_out(struct pywharf_chunk *chunk, PyObject *size)
{
    chunk->out_avail = (size_t)chunk->out.buffer.len;
    if (size == Py_None)
        return 0;
    Py_ssize_t most = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    if (most == -1 && PyErr_Occurred())
        return -1;
    if (most < 0 || most > chunk->out.buffer.len) {
        PyErr_SetString(PyExc_ValueError, "size is negative, or more than out has");
        return -1;
    }
    chunk->out_avail = (size_t)most;
    return 0;
}

/* Room for what the caller says may come out, or for what the data says will. */
static int make_out(struct pywharf_chunk *chunk, const struct wharf_job *like, PyObject *size)
{
    size_t first;

    if (size == Py_None && (like->flags & WHARF_JOB_EXACT_OUTPUT)) {
        PyErr_SetString(PyExc_ValueError, "exact_output needs out or size");
        return -1;
    }
    if (size != Py_None) {
        Py_ssize_t most = PyNumber_AsSsize_t(size, PyExc_OverflowError);

        if (most == -1 && PyErr_Occurred())
            return -1;
        if (most < 0) {
            PyErr_SetString(PyExc_ValueError, "size is negative");
            return -1;
        }
        first = chunk->max_out = (size_t)most;
    } else if (chunk->in.is_gpu) {
        PyErr_SetString(PyExc_ValueError, "a source in GPU memory needs out or size");
        return -1;
    } else {
        chunk->max_out = PTRDIFF_MAX;
        first = pywharf_stated_size(like->codec, like->parameter, chunk->in.buffer.buf,
                                    (size_t)chunk->in.buffer.len);
    }
    chunk->made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)first);
    chunk->out_avail = first;
    chunk->made_at = chunk->made ? PyBytes_AsString(chunk->made) : NULL;
    return chunk->made ? 0 : -1;
}

int pywharf_chunk_init(struct pywharf_chunk *chunk, const struct wharf_job *like, PyObject *size)
{
    int r = chunk->out.buffer.obj ? limit_out(chunk, size) : make_out(chunk, like, size);

    if (r < 0)
        pywharf_chunk_deinit(chunk);
    return r;
}

void pywharf_chunk_deinit(struct pywharf_chunk *chunk)
{
    pywharf_view_release(&chunk->in);
    pywharf_view_release(&chunk->out);
    Py_CLEAR(chunk->made);
    free(chunk->grown);
    free(chunk->message);
    chunk->grown = NULL;
    chunk->message = NULL;
}

void *pywharf_chunk_out(const struct pywharf_chunk *chunk)
{
    if (chunk->out.buffer.obj)
        return chunk->out.buffer.buf;
    return chunk->grown ? chunk->grown : chunk->made_at;
}

int pywharf_chunk_grow(struct pywharf_chunk *chunk)
{
    size_t avail = chunk->out_avail;
    uint8_t *grown;

    if (chunk->out.buffer.obj || avail >= chunk->max_out)
        return 0;
    avail = avail > chunk->max_out / 4 ? chunk->max_out : 4 * avail + 4096;
    grown = malloc(avail);
    if (!grown)
        return 0;
    free(chunk->grown);
    chunk->grown = grown;
    chunk->out_avail = avail;
    return 1;
}

static void decode(struct pywharf_chunk *chunk, struct wharf *handle, const struct wharf_job *like)
{
    struct wharf_job job = *like;

    job.in = chunk->in.buffer.buf;
    job.in_nbytes = (size_t)chunk->in.buffer.len;
    job.out = pywharf_chunk_out(chunk);
    job.out_avail = chunk->out_avail;
    chunk->error = wharf_decompress(handle, &job, &chunk->outcome);
}

void pywharf_chunk_decode(struct pywharf_chunk *chunk, struct wharf *handle,
                          const struct wharf_job *like)
{
    do
        decode(chunk, handle, like);
    while (chunk->error == 0 && chunk->outcome.result == WHARF_OUTPUT_TOO_SMALL &&
           pywharf_chunk_grow(chunk));
    if (chunk->error < 0)
        chunk->message = strdup(wharf_error_message());
}

static PyObject *take_bytes(struct pywharf_chunk *chunk)
{
    Py_ssize_t nbytes = (Py_ssize_t)chunk->outcome.out_nbytes;
    PyObject *made = chunk->made;

    if (chunk->grown || nbytes != PyBytes_Size(made))
        return PyBytes_FromStringAndSize(pywharf_chunk_out(chunk), nbytes);
    chunk->made = NULL;
    return made;
}

PyObject *pywharf_chunk_answer(struct pywharf_chunk *chunk, struct pywharf_state *state,
                               Py_ssize_t index)
{
    if (chunk->error < 0)
        return pywharf_raise(pywharf_call_error(chunk->error, chunk->message));
    if (chunk->outcome.result != WHARF_OK)
        return pywharf_raise(pywharf_outcome_error(state, &chunk->outcome, index));
    if (chunk->out.buffer.obj)
        return PyLong_FromUnsignedLongLong(chunk->outcome.out_nbytes);
    return take_bytes(chunk);
}
