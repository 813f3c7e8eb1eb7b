/* SPDX-License-Identifier: Apache-2.0 */
/* What decoders that are given their input piece by piece have in common: the piece at hand, and a
 * lock. */
#include "clientlib/python/src/pywharf.h"

#include <string.h>

int pywharf_feed_init(struct pywharf_feed *feed)
{
    memset(feed, 0, sizeof(*feed));
    feed->lock = PyThread_allocate_lock();
    if (!feed->lock)
        PyErr_NoMemory();
    return feed->lock ? 0 : -1;
}

void pywharf_feed_deinit(struct pywharf_feed *feed)
{
    if (feed->in.obj)
        PyBuffer_Release(&feed->in);
    if (feed->lock)
        PyThread_free_lock(feed->lock);
    feed->lock = NULL;
}

int pywharf_feed_enter(struct pywharf_feed *feed)
{
    if (!PyThread_acquire_lock(feed->lock, NOWAIT_LOCK)) {
        if (feed->owner == PyThread_get_thread_ident()) {
            PyErr_SetString(PyExc_RuntimeError, "a call is made inside another one");
            return -1;
        }
        Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(feed->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS
    }
    feed->owner = PyThread_get_thread_ident();
    return 0;
}

void pywharf_feed_leave(struct pywharf_feed *feed)
{
    feed->owner = 0;
    PyThread_release_lock(feed->lock);
}

int pywharf_feed_give(struct pywharf_feed *feed, PyObject *data)
{
    Py_buffer in;

    if (feed->nbytes) {
        PyErr_SetString(PyExc_ValueError, "it has input that is not used yet");
        return -1;
    }
    if (PyObject_GetBuffer(data, &in, PyBUF_SIMPLE) < 0)
        return -1;
    if (feed->in.obj)
        PyBuffer_Release(&feed->in);
    feed->in = in;
    feed->at = in.buf;
    feed->nbytes = (size_t)in.len;
    return 0;
}

void pywharf_feed_end(struct pywharf_feed *feed)
{
    if (feed->in.obj)
        PyBuffer_Release(&feed->in);
    feed->nbytes = 0;
}

void pywharf_feed_take(struct pywharf_feed *feed, size_t nbytes)
{
    feed->at += nbytes;
    feed->nbytes -= nbytes;
}

PyObject *pywharf_feed_rest(struct pywharf_feed *feed)
{
    PyObject *rest = PyBytes_FromStringAndSize((const char *)feed->at, (Py_ssize_t)feed->nbytes);

    if (rest)
        feed->nbytes = 0;
    return rest;
}

PyObject *pywharf_refuse_pickle(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyErr_Format(PyExc_TypeError, "cannot pickle %R", (PyObject *)Py_TYPE(self));
}
