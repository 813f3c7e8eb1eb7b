/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client: a handle of libwharf.
 *
 * A thread counts itself in n_calls while it uses the handle without the GIL, and closing waits for
 * them.  All open clients are in a list: at the interpreter's end they are closed, and after a fork
 * the child lets go of its copies.  After the end of the interpreter's own threads a call may go on
 * for ever; its handle then is left to the end of the process.
 */
#include "clientlib/python/src/pywharf.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* How long closing at the interpreter's end waits for threads that still decode. */
enum { END_SECONDS = 10 };

int pywharf_client_enter(struct pywharf_client *client)
{
    if (!client->handle || client->is_closing) {
        PyErr_SetString(PyExc_ValueError, "the client is closed, or belongs to the parent process");
        return -1;
    }
    client->n_calls++;
    return 0;
}

void pywharf_client_leave(struct pywharf_client *client)
{
    client->n_calls--;
}

/* ---- from its making to its end ------------------------------------------------------------ */

static void link_client(struct pywharf_client *client)
{
    struct pywharf_state *state = client->state;

    client->next = state->clients;
    if (client->next)
        client->next->previous = client;
    state->clients = client;
}

static void unlink_client(struct pywharf_client *client)
{
    if (client->previous)
        client->previous->next = client->next;
    else if (client->state->clients == client)
        client->state->clients = client->next;
    if (client->next)
        client->next->previous = client->previous;
    client->next = client->previous = NULL;
}

static PyObject *open_client(PyTypeObject *type, const struct wharf_options *options)
{
    struct pywharf_client *client = (struct pywharf_client *)PyType_GenericAlloc(type, 0);
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    struct wharf *handle;
    int r;

    if (!client)
        return NULL;
    client->state = PyType_GetModuleState(type);
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->changed, NULL);
    Py_BEGIN_ALLOW_THREADS r = wharf_open(options, &handle);
    Py_END_ALLOW_THREADS if (r < 0)
    {
        Py_DECREF((PyObject *)client);
        return pywharf_raise_call(r);
    }
    client->handle = handle;
    client->is_daemon = wharf_get_info(handle, &info) == 0 && info.is_daemon;
    link_client(client);
    return (PyObject *)client;
}

static int parse_where(const char *where, uint32_t *ret_flags)
{
    *ret_flags = 0;
    if (strcmp(where, "embedded") == 0)
        *ret_flags = WHARF_OPEN_EMBEDDED;
    else if (strcmp(where, "daemon") == 0)
        *ret_flags = WHARF_OPEN_DAEMON;
    else if (strcmp(where, "auto") != 0) {
        PyErr_SetString(PyExc_ValueError, "where is 'auto', 'embedded' or 'daemon'");
        return -1;
    }
    return 0;
}

static PyObject *new_client(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"where",    "engine", "socket",   "name",
                                        "max_jobs", "arena",  "patience", NULL};
    struct wharf_options options = WHARF_OPTIONS_INIT;
    const char *where = "auto", *engine = "auto";
    Py_ssize_t arena = 0;
    double patience = 0;
    int number;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|s$szzInd", (char **)names, &where, &engine,
                                     &options.socket_path, &options.client_name, &options.max_jobs,
                                     &arena, &patience))
        return NULL;
    number = wharf_engine_from_name(engine);
    if (number < 0 || parse_where(where, &options.flags) < 0)
        return number < 0 ? PyErr_Format(PyExc_ValueError, "%s", wharf_error_message()) : NULL;
    if (arena < 0 || !(patience >= 0 && patience < 4e6))
        return PyErr_Format(PyExc_ValueError, "arena or patience is out of range");
    options.engine = (uint32_t)number;
    options.arena_nbytes = (size_t)arena;
    options.patience_ms = (uint32_t)(patience * 1000);
    return open_client(type, &options);
}

struct pywharf_client *pywharf_client_default(struct pywharf_state *state)
{
    if (!state->default_client) {
        struct wharf_options options = WHARF_OPTIONS_INIT;
        PyObject *made = open_client(state->client_type, &options);

        /* Another thread may have made one meanwhile. */
        if (state->default_client)
            Py_XDECREF(made);
        else
            state->default_client = (struct pywharf_client *)made;
    }
    return state->default_client;
}

/* The handle is nobody's any more. */
static void let_go(struct pywharf_client *client)
{
    struct wharf *handle = client->handle;

    client->handle = NULL;
    unlink_client(client);
    pywharf_memory_forget(client);
    pywharf_gpu_forget(client);
    pywharf_jobs_forget(client, 0);
    wharf_close(handle);
}

static int wait_for_calls(struct pywharf_client *client, int seconds)
{
    const struct timespec moment = {0, 1000000};

    for (long i = 0; client->n_calls; i++) {
        if (seconds && i >= 1000L * seconds)
            return -1;
        if (!seconds && PyErr_CheckSignals() < 0)
            return -1;
        Py_BEGIN_ALLOW_THREADS nanosleep(&moment, NULL);
        Py_END_ALLOW_THREADS
    }
    return 0;
}

/* `seconds` is how long to wait for other threads' calls, 0 for ever.  Returns 0, or -1 with an
 * exception, and the client open as before. */
static int close_client(struct pywharf_client *client, int seconds)
{
    if (!client->handle || client->is_closing)
        return 0;
    if (pywharf_memory_n_exports(client) > pywharf_job_n_held(client)) {
        PyErr_SetString(PyExc_BufferError, "memory of the client is still in use");
        return -1;
    }
    client->is_closing = 1;
    if (wait_for_calls(client, seconds) < 0) {
        client->is_closing = 0;
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "other threads are still in the client");
        return -1;
    }
    let_go(client);
    client->is_closing = 0;
    return 0;
}

void pywharf_clients_end(struct pywharf_state *state)
{
    struct pywharf_client *client = state->clients;

    while (client) {
        Py_INCREF((PyObject *)client);
        if (close_client(client, END_SECONDS) < 0)
            PyErr_Clear();
        struct pywharf_client *next = client->handle ? client->next : state->clients;
        Py_DECREF((PyObject *)client);
        client = next;
    }
}

void pywharf_clients_forked(struct pywharf_state *state)
{
    struct pywharf_client *client;

    while ((client = state->clients) != NULL) {
        struct wharf *handle = client->handle;
        int is_kept = !client->is_daemon && pywharf_memory_n_exports(client);

        Py_INCREF((PyObject *)client);
        pthread_mutex_init(&client->lock, NULL);
        pthread_cond_init(&client->changed, NULL);
        client->has_leader = 0;
        client->n_calls = 0;
        client->handle = NULL;
        unlink_client(client);
        /* Its own copy of an embedded arena stays for those who look at it. */
        if (!is_kept)
            wharf_close(handle);
        pywharf_memory_forked(client);
        pywharf_memory_forget(client);
        pywharf_gpu_forget(client);
        pywharf_jobs_forget(client, 1);
        Py_DECREF((PyObject *)client);
    }
    Py_CLEAR(state->default_client);
}

static void dealloc(PyObject *self)
{
    struct pywharf_client *client = (struct pywharf_client *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (client->handle)
        let_go(client);
    pthread_mutex_destroy(&client->lock);
    pthread_cond_destroy(&client->changed);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* ---- calls --------------------------------------------------------------------------------- */

static PyObject *run(struct pywharf_client *client, struct pywharf_chunks *chunks,
                     unsigned n_threads)
{
    PyObject *answer = NULL;

    if (pywharf_gpu_make_ready(client, chunks) == 0 && pywharf_client_enter(client) == 0) {
        Py_INCREF((PyObject *)client);
        Py_BEGIN_ALLOW_THREADS if (chunks->is_batch)
            pywharf_chunks_decode(chunks, client->handle, n_threads);
        else pywharf_chunk_decode(&chunks->chunks[0], client->handle, &chunks->like);
        Py_END_ALLOW_THREADS pywharf_client_leave(client);
        answer = pywharf_chunks_answer(chunks, client->state);
        Py_DECREF((PyObject *)client);
    }
    pywharf_chunks_deinit(chunks);
    return answer;
}

PyObject *pywharf_client_decompress(struct pywharf_client *client, PyObject *args, PyObject *kwargs)
{
    struct pywharf_chunks chunks;
    PyObject *callback;

    if (pywharf_chunks_parse_one(&chunks, args, kwargs, &callback) < 0)
        return NULL;
    return run(client, &chunks, 1);
}

/* What lies in the client's memory alone goes to the daemon at once. */
static int is_for_the_daemon(const struct pywharf_client *client,
                             const struct pywharf_chunks *chunks, unsigned n_threads)
{
    if (!client->is_daemon || n_threads || chunks->n == 0)
        return 0;
    for (Py_ssize_t i = 0; i < chunks->n; i++) {
        const struct pywharf_chunk *c = &chunks->chunks[i];

        if (!c->out.buffer.obj || c->in.buffer.len > UINT32_MAX || c->out.buffer.len > UINT32_MAX ||
            !pywharf_memory_reaches(client, &c->in, (size_t)c->in.buffer.len) ||
            !pywharf_memory_reaches(client, &c->out, (size_t)c->out.buffer.len))
            return 0;
    }
    return 1;
}

PyObject *pywharf_client_decompress_batch(struct pywharf_client *client, PyObject *args,
                                          PyObject *kwargs)
{
    struct pywharf_chunks chunks;
    PyObject *callback;
    unsigned n_threads;

    if (pywharf_chunks_parse_batch(&chunks, args, kwargs, &n_threads, &callback) < 0)
        return NULL;
    if (is_for_the_daemon(client, &chunks, n_threads))
        return pywharf_job_run(client, &chunks);
    return run(client, &chunks, n_threads);
}

static PyObject *decompress(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return pywharf_client_decompress((struct pywharf_client *)self, args, kwargs);
}

static PyObject *decompress_batch(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return pywharf_client_decompress_batch((struct pywharf_client *)self, args, kwargs);
}

static PyObject *submit(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return pywharf_job_submit((struct pywharf_client *)self, args, kwargs);
}

static PyObject *submit_batch(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return pywharf_job_submit_batch((struct pywharf_client *)self, args, kwargs);
}

static PyObject *poll_client(PyObject *self, PyObject *unused)
{
    Py_ssize_t n = pywharf_job_reap((struct pywharf_client *)self, 0);

    (void)unused;
    return n < 0 ? NULL : PyLong_FromSsize_t(n);
}

static PyObject *alloc(PyObject *self, PyObject *nbytes)
{
    Py_ssize_t n = PyNumber_AsSsize_t(nbytes, PyExc_OverflowError);

    if (n == -1 && PyErr_Occurred())
        return NULL;
    return pywharf_memory_alloc((struct pywharf_client *)self, n);
}

static PyObject *alloc_gpu(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return pywharf_gpu_alloc((struct pywharf_client *)self, args, kwargs);
}

static PyObject *register_gpu(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return pywharf_gpu_register((struct pywharf_client *)self, args, kwargs);
}

static PyObject *fileno_of(PyObject *self, PyObject *unused)
{
    struct pywharf_client *client = (struct pywharf_client *)self;
    int r;

    (void)unused;
    if (pywharf_client_enter(client) < 0)
        return NULL;
    r = wharf_fd(client->handle);
    pywharf_client_leave(client);
    return r < 0 ? pywharf_raise_call(r) : PyLong_FromLong(r);
}

static PyObject *info(PyObject *self, PyObject *unused)
{
    struct pywharf_client *client = (struct pywharf_client *)self;
    struct wharf_info i = {.struct_nbytes = sizeof(i)};
    int r;

    (void)unused;
    if (pywharf_client_enter(client) < 0)
        return NULL;
    r = wharf_get_info(client->handle, &i);
    pywharf_client_leave(client);
    if (r < 0)
        return pywharf_raise_call(r);
    return Py_BuildValue(
        "{s:O,s:O,s:I,s:I,s:K,s:K,s:K,s:K,s:K,s:s}", "is_daemon", i.is_daemon ? Py_True : Py_False,
        "is_connected", i.is_connected ? Py_True : Py_False, "max_jobs", i.max_jobs, "n_in_flight",
        i.n_in_flight, "arena_nbytes", i.arena_nbytes, "arena_taken_nbytes", i.arena_taken_nbytes,
        "max_batch_chunks", i.max_batch_chunks, "n_reconnects", i.n_reconnects, "n_here", i.n_here,
        "daemon_version", i.daemon_version);
}

static PyObject *close_method(PyObject *self, PyObject *unused)
{
    (void)unused;
    return close_client((struct pywharf_client *)self, 0) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *enter_method(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *exit_method(PyObject *self, PyObject *args)
{
    (void)args;
    return close_method(self, NULL);
}

static PyObject *get_is_daemon(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct pywharf_client *)self)->is_daemon);
}

static PyObject *get_closed(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(!((struct pywharf_client *)self)->handle);
}

#define WITH_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"decompress", WITH_KEYWORDS(decompress), METH_VARARGS | METH_KEYWORDS,
     "As wharf.decompress, by this client."},
    {"decompress_batch", WITH_KEYWORDS(decompress_batch), METH_VARARGS | METH_KEYWORDS,
     "As wharf.decompress_batch, by this client.  Chunks that lie in memory of alloc, with outs\n"
     "there too, go to the daemon as one batch, without copies."},
    {"submit", WITH_KEYWORDS(submit), METH_VARARGS | METH_KEYWORDS,
     "Hands one chunk in and returns its Job at once; arguments as of decompress.\n\n"
     "callback: called with the Job when it is done, by whichever thread notices.\n"
     "Raises BlockingIOError when max_jobs are in flight, and OSError (ENOBUFS) when the arena "
     "has\n"
     "no room for copies."},
    {"submit_batch", WITH_KEYWORDS(submit_batch), METH_VARARGS | METH_KEYWORDS,
     "Hands a batch in and returns its Job at once; arguments as of decompress_batch, with outs "
     "or\n"
     "sizes for chunks whose format states no size."},
    {"poll", poll_client, METH_NOARGS, "Finishes jobs that are done, and returns how many."},
    {"alloc", alloc, METH_O, "Memory of so many bytes that the daemon reaches itself."},
    {"alloc_gpu", WITH_KEYWORDS(alloc_gpu), METH_VARARGS | METH_KEYWORDS,
     "alloc_gpu(nbytes, /, *, device=0)\n\nGpuMemory of at least so many bytes, made by CUDA's "
     "driver\n"
     "on the GPU of that number.  Raises OSError without a daemon that has this GPU (EOPNOTSUPP) "
     "or\n"
     "a driver (ENODEV), and MemoryError."},
    {"register_gpu", WITH_KEYWORDS(register_gpu), METH_VARARGS | METH_KEYWORDS,
     "register_gpu(fd, address, nbytes, *, device=0, readonly=False)\n\nGpuMemory of what the "
     "program\n"
     "made itself: all of one cuMemCreate, the descriptor that cuMemExportToShareableHandle gave "
     "of\n"
     "it (which stays the caller's), and the device address of its mapping.  readonly: for "
     "sources\n"
     "alone.  Raises OSError."},
    {"fileno", fileno_of, METH_NOARGS, "A descriptor that is readable when poll should be called."},
    {"info", info, METH_NOARGS, "A dict of what the client is and has done; sizes in bytes."},
    {"close", close_method, METH_NOARGS,
     "Ends the client.  Jobs in flight end with CancelledError.  Raises BufferError while "
     "somebody\n"
     "holds a buffer of its Memory."},
    {"__enter__", enter_method, METH_NOARGS, NULL},
    {"__exit__", exit_method, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"is_daemon", get_is_daemon, NULL, "Whether jobs go through a daemon.", NULL},
    {"closed", get_closed, NULL, "Whether it was closed, or is the parent's.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Client(where='auto', *, engine='auto', socket=None, name=None, max_jobs=0, arena=0,\n"
     "       patience=0.0)\n\n"
     "A connection to the daemon of this machine, or the decoders of this process.\n\n"
     "where: 'auto' is the daemon if there is one; 'embedded' and 'daemon' insist.\n"
     "engine: 'auto', 'cpu', 'gpu', 'simt' or 'reference'.\n"
     "socket: path of the daemon's; None is $WHARF_SOCKET or the usual one.\n"
     "arena: bytes for Memory and copies; 0 is 32 MiB.  patience: seconds; 0 is 10.\n"
     "Any thread may use it.  It cannot be pickled; a forked child makes its own."},
    {Py_tp_new, new_client},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "wharf.Client",
    .basicsize = sizeof(struct pywharf_client),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int pywharf_client_init(PyObject *module, struct pywharf_state *state)
{
    state->client_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->client_type ? PyModule_AddType(module, state->client_type) : -1;
}
