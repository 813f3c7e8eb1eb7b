/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: chunks that were handed in, until they are done.
 *
 * What the daemon does not reach is copied into the arena, and back when it is done, so a job in
 * flight never has the daemon write to memory of Python's.  The client's list holds a reference to
 * each job in flight, whose address is its user_data: it stays until its completion was taken or
 * the handle is gone.
 *
 * Several threads may wait for jobs of one client.  One of them, the leader, sleeps in libwharf and
 * finishes what comes; the others sleep until it is back, and look whether theirs is done.
 */
#include "clientlib/python/src/pywharf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Signals are looked at so often. */
#define SLICE_NS INT64_C(100000000)
enum { MAX_TAKEN = 64 };

struct pywharf_job {
    PyObject_HEAD struct pywharf_client *client; /* a reference */
    struct pywharf_chunks chunks;
    struct wharf_chunk_result *results; /* of a batch */
    PyObject *callback;                 /* or NULL */
    PyObject *answer, *error;           /* one of them, when it is done */
    struct pywharf_job *next, *previous;
    int is_done;
    int is_submitted;
};

/* ---- copies -------------------------------------------------------------------------------- */

static int needs_copy(const struct pywharf_client *client, const struct pywharf_view *view,
                      size_t nbytes)
{
    return nbytes && !(view->buffer.obj && pywharf_memory_reaches(client, view, nbytes));
}

static int take_copies(const struct pywharf_client *client, struct pywharf_chunk *chunk)
{
    int r = 0;

    if (needs_copy(client, &chunk->in, (size_t)chunk->in.buffer.len)) {
        r = wharf_alloc(client->handle, (size_t)chunk->in.buffer.len, &chunk->in_copy);
        if (r == 0)
            memcpy(chunk->in_copy, chunk->in.buffer.buf, (size_t)chunk->in.buffer.len);
    }
    if (r == 0 && needs_copy(client, &chunk->out, chunk->out_avail))
        r = wharf_alloc(client->handle, chunk->out_avail, &chunk->out_copy);
    return r;
}

static void drop_copies(struct pywharf_job *job)
{
    for (Py_ssize_t i = 0; i < job->chunks.n; i++) {
        struct pywharf_chunk *chunk = &job->chunks.chunks[i];

        if (job->client->handle) {
            wharf_free(job->client->handle, chunk->in_copy);
            wharf_free(job->client->handle, chunk->out_copy);
        }
        chunk->in_copy = chunk->out_copy = NULL;
    }
}

static const void *source_of(const struct pywharf_chunk *chunk)
{
    return chunk->in_copy ? chunk->in_copy : chunk->in.buffer.buf;
}

static void *destination_of(const struct pywharf_chunk *chunk)
{
    return chunk->out_copy ? chunk->out_copy : pywharf_chunk_out(chunk);
}

/* ---- handing in ---------------------------------------------------------------------------- */

static int submit_one(struct pywharf_job *job)
{
    const struct pywharf_chunk *chunk = &job->chunks.chunks[0];
    struct wharf_job one = job->chunks.like;
    int r;

    one.in = source_of(chunk);
    one.in_nbytes = (size_t)chunk->in.buffer.len;
    one.out = destination_of(chunk);
    one.out_avail = chunk->out_avail;
    one.user_data = (uintptr_t)job;
    r = wharf_submit(job->client->handle, &one, 1);
    return r < 0 ? r : 0;
}

static int fill_table(struct pywharf_job *job, struct wharf_batch_chunk *table)
{
    for (Py_ssize_t i = 0; i < job->chunks.n; i++) {
        const struct pywharf_chunk *chunk = &job->chunks.chunks[i];

        if (chunk->in.buffer.len > UINT32_MAX || chunk->out_avail > UINT32_MAX)
            return -EMSGSIZE;
        table[i].in = source_of(chunk);
        table[i].in_nbytes = (uint32_t)chunk->in.buffer.len;
        table[i].out = destination_of(chunk);
        table[i].out_avail = (uint32_t)chunk->out_avail;
    }
    return 0;
}

static int submit_many(struct pywharf_job *job)
{
    size_t n = (size_t)job->chunks.n;
    struct wharf_batch_chunk *table = calloc(n, sizeof(table[0]));
    struct wharf_batch batch = WHARF_BATCH_INIT;
    int r = -ENOMEM;

    job->results = calloc(n, sizeof(job->results[0]));
    if (table && job->results)
        r = fill_table(job, table);
    batch.codec = job->chunks.like.codec;
    batch.flags = job->chunks.like.flags;
    batch.timeout_us = job->chunks.like.timeout_us;
    batch.job_class = job->chunks.like.job_class;
    batch.parameter = job->chunks.like.parameter;
    batch.user_data = (uintptr_t)job;
    batch.chunks = table;
    batch.results = job->results;
    batch.n_chunks = (uint32_t)n;
    if (r == 0)
        r = wharf_submit_batch(job->client->handle, &batch);
    free(table);
    return r;
}

static void link_job(struct pywharf_job *job)
{
    job->is_submitted = 1;
    job->next = job->client->jobs;
    if (job->next)
        job->next->previous = job;
    job->client->jobs = job;
    Py_INCREF((PyObject *)job);
}

static void unlink_job(struct pywharf_job *job)
{
    if (job->previous)
        job->previous->next = job->next;
    else
        job->client->jobs = job->next;
    if (job->next)
        job->next->previous = job->previous;
    job->next = job->previous = NULL;
    job->is_submitted = 0;
}

static int hand_in(struct pywharf_job *job)
{
    int r = 0;

    for (Py_ssize_t i = 0; r == 0 && i < job->chunks.n; i++)
        r = take_copies(job->client, &job->chunks.chunks[i]);
    if (r == 0)
        r = job->chunks.is_batch ? submit_many(job) : submit_one(job);
    if (r < 0)
        drop_copies(job);
    else
        link_job(job);
    return r;
}

static void finish(struct pywharf_job *job);
static void tell(struct pywharf_job *job);

/* Takes the chunks over, whatever happens. */
static struct pywharf_job *new_job(struct pywharf_client *client, struct pywharf_chunks *chunks,
                                   PyObject *callback)
{
    struct pywharf_job *job;
    int r = 0;

    job = (struct pywharf_job *)PyType_GenericAlloc(client->state->job_type, 0);
    if (!job) {
        pywharf_chunks_deinit(chunks);
        return NULL;
    }
    job->chunks = *chunks;
    job->client = (struct pywharf_client *)Py_NewRef((PyObject *)client);
    job->callback = callback == Py_None ? NULL : Py_NewRef(callback);
    if (pywharf_gpu_make_ready(client, &job->chunks) < 0 || pywharf_client_enter(client) < 0) {
        Py_DECREF((PyObject *)job);
        return NULL;
    }
    if (job->chunks.n)
        r = hand_in(job);
    pywharf_client_leave(client);
    if (r < 0) {
        pywharf_raise_call(r);
        Py_DECREF((PyObject *)job);
        return NULL;
    }
    if (!job->chunks.n) {
        finish(job);
        tell(job);
    }
    return job;
}

PyObject *pywharf_job_submit(struct pywharf_client *client, PyObject *args, PyObject *kwargs)
{
    struct pywharf_chunks chunks;
    PyObject *callback;

    if (pywharf_chunks_parse_one(&chunks, args, kwargs, &callback) < 0)
        return NULL;
    return (PyObject *)new_job(client, &chunks, callback);
}

PyObject *pywharf_job_submit_batch(struct pywharf_client *client, PyObject *args, PyObject *kwargs)
{
    struct pywharf_chunks chunks;
    PyObject *callback;
    unsigned n_threads;

    if (pywharf_chunks_parse_batch(&chunks, args, kwargs, &n_threads, &callback) < 0)
        return NULL;
    return (PyObject *)new_job(client, &chunks, callback);
}

/* ---- what became of it --------------------------------------------------------------------- */

static struct wharf_outcome outcome_of(const struct pywharf_job *job, Py_ssize_t i,
                                       const struct wharf_completion *c)
{
    if (job->chunks.is_batch && (c->flags & WHARF_COMPLETION_RESULTS)) {
        const struct wharf_chunk_result *r = &job->results[i];

        return (struct wharf_outcome){r->result, r->reason, r->bit_offset, r->in_nbytes,
                                      r->out_nbytes};
    }
    return (struct wharf_outcome){c->result, c->reason, c->bit_offset, c->in_nbytes, c->out_nbytes};
}

/* A daemon is not trusted to say how much it wrote. */
static void copy_back(struct pywharf_chunk *chunk)
{
    size_t nbytes = chunk->outcome.out_nbytes;

    if (nbytes > chunk->out_avail)
        chunk->outcome = (struct wharf_outcome){.result = WHARF_INTERNAL};
    else if (chunk->outcome.result == WHARF_OK && chunk->out_copy)
        memcpy(pywharf_chunk_out(chunk), chunk->out_copy, nbytes);
}

static void take_outcomes(struct pywharf_job *job, const struct wharf_completion *c)
{
    for (Py_ssize_t i = 0; i < job->chunks.n; i++) {
        job->chunks.chunks[i].outcome = outcome_of(job, i, c);
        copy_back(&job->chunks.chunks[i]);
    }
}

/* A chunk that needs more room than was thought goes back.  Returns whether it did. */
static int goes_again(struct pywharf_job *job)
{
    struct pywharf_chunk *chunk = &job->chunks.chunks[0];

    if (job->chunks.is_batch || chunk->outcome.result != WHARF_OUTPUT_TOO_SMALL ||
        !pywharf_chunk_grow(chunk))
        return 0;
    chunk->error = hand_in(job);
    if (chunk->error < 0)
        chunk->message = strdup(wharf_error_message());
    return chunk->error == 0;
}

/* Makes the answer and gives the buffers back. */
static void finish(struct pywharf_job *job)
{
    PyObject *type, *trace;

    job->answer = pywharf_chunks_answer(&job->chunks, job->client->state);
    if (!job->answer) {
        PyErr_Fetch(&type, &job->error, &trace);
        PyErr_NormalizeException(&type, &job->error, &trace);
        Py_XDECREF(type);
        Py_XDECREF(trace);
    }
    pywharf_chunks_deinit(&job->chunks);
    job->is_done = 1;
}

/* The callback may do anything: wait for other jobs, or close the client. */
static void tell(struct pywharf_job *job)
{
    PyObject *callback = job->is_done ? job->callback : NULL, *told;

    if (!callback)
        return;
    job->callback = NULL;
    told = PyObject_CallFunctionObjArgs(callback, (PyObject *)job, NULL);
    if (!told)
        PyErr_WriteUnraisable(callback);
    Py_XDECREF(told);
    Py_DECREF(callback);
}

/* The list's reference to the job is the caller's then. */
static void end_job(struct pywharf_job *job, const struct wharf_completion *c)
{
    unlink_job(job);
    take_outcomes(job, c);
    drop_copies(job);
    if (!goes_again(job))
        finish(job);
}

void pywharf_jobs_forget(struct pywharf_client *client, int is_child)
{
    const struct wharf_completion gone = {.result = WHARF_CANCELLED};
    struct pywharf_job *job;

    while ((job = client->jobs) != NULL) {
        end_job(job, &gone);
        if (is_child)
            Py_CLEAR(job->callback);
        tell(job);
        Py_DECREF((PyObject *)job);
    }
}

Py_ssize_t pywharf_job_n_held(const struct pywharf_client *client)
{
    PyTypeObject *type = client->state->memory_type;
    Py_ssize_t n = 0;

    for (const struct pywharf_job *job = client->jobs; job; job = job->next)
        for (Py_ssize_t i = 0; i < job->chunks.n; i++) {
            const struct pywharf_chunk *chunk = &job->chunks.chunks[i];

            n += chunk->in.buffer.obj && Py_TYPE(chunk->in.buffer.obj) == type;
            n += chunk->out.buffer.obj && Py_TYPE(chunk->out.buffer.obj) == type;
        }
    return n;
}

/* ---- waiting ------------------------------------------------------------------------------- */

/* Sleeps until the leader is back.  Without the GIL. */
static void follow(struct pywharf_client *client, int64_t timeout_ns)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    timeout_ns += end.tv_nsec;
    end.tv_sec += timeout_ns / 1000000000;
    end.tv_nsec = timeout_ns % 1000000000;
    pthread_mutex_lock(&client->lock);
    uint64_t n_led = client->n_led;
    while (client->has_leader && n_led == client->n_led &&
           pthread_cond_timedwait(&client->changed, &client->lock, &end) == 0)
        ;
    pthread_mutex_unlock(&client->lock);
}

static int try_to_lead(struct pywharf_client *client)
{
    pthread_mutex_lock(&client->lock);
    int leads = !client->has_leader;
    client->has_leader = 1;
    pthread_mutex_unlock(&client->lock);
    return leads;
}

static void stop_leading(struct pywharf_client *client)
{
    pthread_mutex_lock(&client->lock);
    client->has_leader = 0;
    client->n_led++;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

/* Takes completions and ends their jobs, whose references are the caller's then. */
static int lead(struct pywharf_client *client, int64_t timeout_ns, struct pywharf_job **ended)
{
    struct wharf_completion taken[MAX_TAKEN];
    int n;

    Py_BEGIN_ALLOW_THREADS n =
        wharf_wait(client->handle, taken, MAX_TAKEN, timeout_ns != 0, timeout_ns);
    Py_END_ALLOW_THREADS for (int i = 0; i < n; i++)
    {
        ended[i] = (struct pywharf_job *)(uintptr_t)taken[i].user_data;
        end_job(ended[i], &taken[i]);
    }
    stop_leading(client);
    if (n < 0)
        pywharf_raise_call(n);
    return n < 0 ? -1 : n;
}

/* Callbacks come last, when this thread neither leads nor keeps the client from closing.  Adds to
 * *n_done how many jobs are done, and returns how many completions it took, or -1. */
static int reap_once(struct pywharf_client *client, int64_t timeout_ns, Py_ssize_t *n_done)
{
    struct pywharf_job *ended[MAX_TAKEN];
    int n = 0;

    if (pywharf_client_enter(client) < 0)
        return -1;
    if (!try_to_lead(client)) {
        Py_BEGIN_ALLOW_THREADS follow(client, timeout_ns < 0 ? SLICE_NS : timeout_ns);
        Py_END_ALLOW_THREADS
    } else {
        n = lead(client, timeout_ns, ended);
    }
    pywharf_client_leave(client);
    for (int i = 0; i < n; i++) {
        *n_done += ended[i]->is_done;
        tell(ended[i]);
        Py_DECREF((PyObject *)ended[i]);
    }
    return n;
}

Py_ssize_t pywharf_job_reap(struct pywharf_client *client, int64_t timeout_ns)
{
    Py_ssize_t n_done = 0;
    int n;

    Py_INCREF((PyObject *)client);
    /* All that are there: the descriptor tells of them once. */
    do
        n = reap_once(client, timeout_ns, &n_done);
    while (timeout_ns == 0 && n == MAX_TAKEN && client->handle);
    Py_DECREF((PyObject *)client);
    return n < 0 ? -1 : n_done;
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void pause_briefly(void)
{
    const struct timespec moment = {0, 1000000};

    Py_BEGIN_ALLOW_THREADS nanosleep(&moment, NULL);
    Py_END_ALLOW_THREADS
}

/* Returns 0, or -1 with an exception. */
static int wait_for_job(struct pywharf_job *job, int64_t timeout_ns)
{
    int64_t end = timeout_ns < 0 ? INT64_MAX : now_ns() + timeout_ns;

    /* Once also if there is no time. */
    for (int has_looked = 0; !job->is_done; has_looked = 1) {
        int64_t left = end == INT64_MAX ? SLICE_NS : end - now_ns();

        left = left < 0 ? 0 : left;
        if (left == 0 && has_looked) {
            PyErr_SetString(PyExc_TimeoutError, "the job is not done yet");
            return -1;
        }
        if (job->client->is_closing)
            pause_briefly(); /* which ends the job, or goes back */
        else if (pywharf_job_reap(job->client, left < SLICE_NS ? left : SLICE_NS) < 0)
            return job->is_done ? (PyErr_Clear(), 0) : -1;
        if (PyErr_CheckSignals() < 0)
            return -1;
    }
    return 0;
}

static PyObject *answer_of(const struct pywharf_job *job)
{
    if (job->answer)
        return Py_NewRef(job->answer);
    if (!job->error) /* the collector has been here */
        return PyErr_Format(PyExc_RuntimeError, "the job has been collected");
    PyErr_SetObject((PyObject *)Py_TYPE(job->error), job->error);
    return NULL;
}

PyObject *pywharf_job_run(struct pywharf_client *client, struct pywharf_chunks *chunks)
{
    struct pywharf_job *job = new_job(client, chunks, Py_None);
    PyObject *answer = job && wait_for_job(job, -1) == 0 ? answer_of(job) : NULL;

    Py_XDECREF((PyObject *)job);
    return answer;
}

static int parse_timeout(PyObject *args, int64_t *ret_ns)
{
    PyObject *timeout = Py_None;
    double seconds;

    *ret_ns = -1;
    if (!PyArg_ParseTuple(args, "|O", &timeout))
        return -1;
    if (timeout == Py_None)
        return 0;
    seconds = PyFloat_AsDouble(timeout);
    if (seconds == -1.0 && PyErr_Occurred())
        return -1;
    if (!(seconds >= 0 && seconds < 1e9)) {
        PyErr_SetString(PyExc_ValueError, "timeout is in seconds, 0 or more");
        return -1;
    }
    *ret_ns = (int64_t)(seconds * 1e9);
    return 0;
}

static PyObject *result(PyObject *self, PyObject *args)
{
    struct pywharf_job *job = (struct pywharf_job *)self;
    int64_t timeout_ns;

    if (parse_timeout(args, &timeout_ns) < 0 || wait_for_job(job, timeout_ns) < 0)
        return NULL;
    return answer_of(job);
}

/* Jobs are done when somebody has looked: who only asks would ask for ever. */
static PyObject *done(PyObject *self, PyObject *unused)
{
    struct pywharf_job *job = (struct pywharf_job *)self;

    (void)unused;
    if (!job->is_done && !job->client->is_closing && pywharf_job_reap(job->client, 0) < 0) {
        if (!job->is_done)
            return NULL;
        PyErr_Clear();
    }
    return PyBool_FromLong(job->is_done);
}

static PyObject *cancel(PyObject *self, PyObject *unused)
{
    struct pywharf_job *job = (struct pywharf_job *)self;
    int r;

    (void)unused;
    if (job->is_done)
        return Py_NewRef(Py_False);
    if (pywharf_client_enter(job->client) < 0)
        return NULL;
    r = wharf_cancel(job->client->handle, (uintptr_t)job);
    pywharf_client_leave(job->client);
    return r < 0 ? pywharf_raise_call(r) : PyBool_FromLong(r);
}

/* An error that was raised has a traceback, whose frames lead back to the job. */
static int traverse(PyObject *self, visitproc visit, void *arg)
{
    struct pywharf_job *job = (struct pywharf_job *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(job->callback);
    Py_VISIT(job->answer);
    Py_VISIT(job->error);
    return 0;
}

static int clear(PyObject *self)
{
    struct pywharf_job *job = (struct pywharf_job *)self;

    Py_CLEAR(job->callback);
    Py_CLEAR(job->answer);
    Py_CLEAR(job->error);
    return 0;
}

static void dealloc(PyObject *self)
{
    struct pywharf_job *job = (struct pywharf_job *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    pywharf_chunks_deinit(&job->chunks);
    free(job->results);
    clear(self);
    Py_XDECREF((PyObject *)job->client);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"result", result, METH_VARARGS,
     "result(timeout=None): waits, at most so many seconds, and returns what decompress would\n"
     "return or raises what it would raise; TimeoutError when time is over."},
    {"done", done, METH_NOARGS,
     "Whether the job is done.  Never waits; finishes jobs as poll does."},
    {"cancel", cancel, METH_NOARGS,
     "Asks to end the job, whose result is CancelledError unless it was faster.  Returns whether\n"
     "there was something to ask for."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "What Client.submit returns: a job in flight, until it is done."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "wharf.Job",
    .basicsize = sizeof(struct pywharf_job),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int pywharf_job_init(PyObject *module, struct pywharf_state *state)
{
    state->job_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->job_type ? PyModule_AddType(module, state->job_type) : -1;
}
