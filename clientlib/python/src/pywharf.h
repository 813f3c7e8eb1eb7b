/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pywharf.h: the extension module wharf._wharf, libwharf for Python.
 *
 * The module is made of few parts, each of which knows those before it:
 *   pywharf_error.c    exceptions: results of jobs, and errors of calls
 *   pywharf_view.c     the caller's memory, held: buffers, and arrays of other packages
 *   pywharf_chunk.c    one chunk: the caller's memory, and room for what comes out
 *   pywharf_crew.c     work of one call on several threads
 *   pywharf_chunks.c   a call's chunks: from arguments, on several threads, into an answer
 *   pywharf_client.c   Client: a handle of libwharf, its life, fork and the interpreter's end
 *   pywharf_memory.c   Memory: a piece of the handle's arena, that needs no copies
 *   pywharf_gpu.c      GpuMemory: a piece of a GPU's memory, that needs no copies
 *   pywharf_driver.c   CUDA's driver, which makes it
 *   pywharf_job.c      Job: what Client.submit hands in, until it is done
 *   pywharf_feed.c     input that comes piece by piece
 *   pywharf_inflater.c Inflater: zlib's decompressobj
 *   pywharf_stream.c   Stream: a file's bytes in order
 *   pywharf_container.c  Container: chunks of a wharf container
 *   pywharf_index.c    GzipIndex: parts of a gzip file; and what a file is
 *   pywharf_packer.c   Packer: makes a compressed file
 *   pywharf_pack_formats.c  what it makes: gzip, BGZF, zstd, wharf's own
 *
 * Rules.  A Py_buffer is held from before the first look at its memory until nobody looks any more,
 * so no caller can release or shrink memory that is read or written.  The GIL guards all objects;
 * it is let go while libwharf decodes, waits or connects, and nothing but chunks of that call, and
 * the handle, is used meanwhile.  Only the stable interface of Python 3.11 is used: one binary
 * serves all later versions.
 */
#ifndef WHARF_PYWHARF_H
#define WHARF_PYWHARF_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <pthread.h>
#include <stdint.h>

#include "clientlib/wharf.h"

enum { PYWHARF_N_RESULTS = WHARF_FILE_ERROR + 1 };

struct pywharf_client;

struct pywharf_state {
    PyObject *error;                     /* wharf.Error */
    PyObject *data_error;                /* wharf.DataError */
    PyObject *errors[PYWHARF_N_RESULTS]; /* by enum wharf_result; NULL at WHARF_OK */
    PyTypeObject *client_type, *job_type, *memory_type, *gpu_type, *inflater_type;
    struct pywharf_client *default_client; /* of the module's functions; NULL until it is needed */
    struct pywharf_client *clients;        /* all that are open */
};

/* ---- pywharf_error.c ----------------------------------------------------------------------- */

/* Makes the exceptions and adds them to the module.  Returns 0, or -1 with an exception. */
int pywharf_errors_init(PyObject *module, struct pywharf_state *state);

/* A new exception for an outcome that is not WHARF_OK; `index` is the chunk's in a batch, or -1. */
PyObject *pywharf_outcome_error(struct pywharf_state *state, const struct wharf_outcome *outcome,
                                Py_ssize_t index);

/* A new exception for a call's negative errno and wharf_error_message's text. */
PyObject *pywharf_call_error(int error, const char *message);

/* Raises an exception that it takes over; NULL is one that is raised already.  Returns NULL. */
PyObject *pywharf_raise(PyObject *exception);

/* Raises pywharf_call_error for the library call that just failed in this thread. */
PyObject *pywharf_raise_call(int error);

/* ---- pywharf_view.c ------------------------------------------------------------------------ */

/* Contiguous bytes. */
struct pywharf_view {
    Py_buffer buffer;        /* obj is NULL: none is held */
    int is_gpu;              /* an address of a GPU's, that nobody has looked at yet */
    int is_ready;            /* of that: no work is in flight that uses it */
    struct pywharf_gpu *gpu; /* of that: a reference to whose memory it is, or NULL */
    int has_stream;          /* `stream` has such work; else any may have */
    uintptr_t stream;
    Py_ssize_t n_rows; /* the first of two or more dimensions, or -1 */
};

/*
 * Holds the memory of an object with the buffer protocol, __dlpack__ or __cuda_array_interface__.
 * Returns 0, or -1 with an exception and nothing held.
 */
int pywharf_view_get(struct pywharf_view *view, PyObject *object, int writable);
void pywharf_view_release(struct pywharf_view *view);

/*
 * pywharf_view_rows: holds an array of n rows, each of which is a chunk's memory.
 * Returns 1; 0 with nothing held if `object` is none such, so that its items are to be asked for;
 * or -1 with an exception and nothing held.
 */
int pywharf_view_rows(struct pywharf_view *view, PyObject *object, Py_ssize_t n, int writable);
/* One of them, which must be released before `rows` are. */
void pywharf_view_row(struct pywharf_view *view, const struct pywharf_view *rows, Py_ssize_t i);

/* ---- pywharf_chunk.c ----------------------------------------------------------------------- */

struct pywharf_chunk {
    struct pywharf_view in;
    struct pywharf_view out; /* nothing is held: none was given */
    PyObject *made;          /* without `out`: bytes that are decoded into, or NULL */
    void *made_at;           /* where they are */
    uint8_t *grown;          /* without both: memory that is decoded into */
    size_t out_avail;        /* of whichever of the three it is */
    size_t max_out;          /* the most that `grown` may grow to */
    void *in_copy; /* of the arena, for what the daemon does not reach; NULL: not needed */
    void *out_copy;
    struct wharf_outcome outcome;
    int error;     /* 0, or the negative errno of the call, with its */
    char *message; /* text, or NULL */
};

/*
 * pywharf_chunk_init: makes room for what comes out.
 *   chunk  zeros, but for `in` and `out`, which the caller holds; `out` may be nothing.
 *   size   None, or the most bytes that may come out.
 * Returns 0, or -1 with an exception and nothing held.
 */
int pywharf_chunk_init(struct pywharf_chunk *chunk, const struct wharf_job *like, PyObject *size);
/* With the GIL.  The arena's copies are gone before. */
void pywharf_chunk_deinit(struct pywharf_chunk *chunk);

/* Where it is decoded to.  Needs no GIL. */
void *pywharf_chunk_out(const struct pywharf_chunk *chunk);

/* More room, after WHARF_OUTPUT_TOO_SMALL.  Returns whether there is; needs no GIL. */
int pywharf_chunk_grow(struct pywharf_chunk *chunk);

/* Decodes by wharf_decompress, growing as it goes.  Without the GIL. */
void pywharf_chunk_decode(struct pywharf_chunk *chunk, struct wharf *handle,
                          const struct wharf_job *like);

/* What the caller gets: bytes, or how many were written to `out`; NULL with an exception. */
PyObject *pywharf_chunk_answer(struct pywharf_chunk *chunk, struct pywharf_state *state,
                               Py_ssize_t index);

/* ---- pywharf_crew.c ------------------------------------------------------------------------ */

enum { PYWHARF_MAX_THREADS = 256 };

/* Parts 0 to n - 1, each done once by one of several threads, which are numbered from 0 on. */
struct pywharf_work {
    void (*act)(void *context, size_t i, unsigned member);
    void *context;
    size_t n;
};

/* Does the work on up to n_threads threads, of which the caller's is one.  Without the GIL. */
void pywharf_crew_run(const struct pywharf_work *work, unsigned n_threads);

/* How many this process may use. */
unsigned pywharf_n_cores(void);

/* ---- pywharf_chunks.c ---------------------------------------------------------------------- */

/* All chunks of a call, which have in common what `like` says. */
struct pywharf_chunks {
    struct wharf_job like;
    struct pywharf_chunk *chunks;
    Py_ssize_t n;
    struct pywharf_view in_rows, out_rows; /* arrays of all sources or outputs, or nothing */
    int is_batch;                          /* the answer is a list */
    int returns_errors;                    /* in the list, in the place of answers */
};

/* One chunk, from the arguments of decompress and submit (whose `callback` is given back,
 * borrowed). */
int pywharf_chunks_parse_one(struct pywharf_chunks *chunks, PyObject *args, PyObject *kwargs,
                             PyObject **ret_callback);
/* Many, from those of decompress_batch and submit_batch (which has no `ret_n_threads`). */
int pywharf_chunks_parse_batch(struct pywharf_chunks *chunks, PyObject *args, PyObject *kwargs,
                               unsigned *ret_n_threads, PyObject **ret_callback);
void pywharf_chunks_deinit(struct pywharf_chunks *chunks);

/* Decodes all, on up to n_threads threads (0: as many as pays).  Without the GIL. */
void pywharf_chunks_decode(struct pywharf_chunks *chunks, struct wharf *handle, unsigned n_threads);

PyObject *pywharf_chunks_answer(struct pywharf_chunks *chunks, struct pywharf_state *state);

/* ---- pywharf_client.c ---------------------------------------------------------------------- */

struct pywharf_job;
struct pywharf_memory;
struct pywharf_gpu;

struct pywharf_client {
    PyObject_HEAD struct pywharf_state *state;
    struct wharf *handle; /* NULL: closed */
    int is_daemon;
    unsigned n_calls; /* threads that use the handle, without the GIL */
    int is_closing;
    struct pywharf_client *next, *previous; /* in state->clients */
    struct pywharf_job *jobs;               /* in flight; each is a reference */
    struct pywharf_memory *memories;        /* of the arena; borrowed */
    struct pywharf_gpu *gpus;               /* registered memory of GPUs; borrowed */
    /* Of threads that wait for jobs one sleeps in libwharf, the others until it is back. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int has_leader;
    uint64_t n_led;
};

int pywharf_client_init(PyObject *module, struct pywharf_state *state);

/* Before and after a use of the handle without the GIL.  enter returns 0, or -1 with an
 * exception. */
int pywharf_client_enter(struct pywharf_client *client);
void pywharf_client_leave(struct pywharf_client *client);

/* The client of the module's functions, borrowed, opened if need be; NULL with an exception. */
struct pywharf_client *pywharf_client_default(struct pywharf_state *state);

PyObject *pywharf_client_decompress(struct pywharf_client *client, PyObject *args,
                                    PyObject *kwargs);
PyObject *pywharf_client_decompress_batch(struct pywharf_client *client, PyObject *args,
                                          PyObject *kwargs);

/* At the interpreter's end: closes all.  In a forked child: lets go of the parent's. */
void pywharf_clients_end(struct pywharf_state *state);
void pywharf_clients_forked(struct pywharf_state *state);

/* ---- pywharf_memory.c ---------------------------------------------------------------------- */

int pywharf_memory_init(PyObject *module, struct pywharf_state *state);
PyObject *pywharf_memory_alloc(struct pywharf_client *client, Py_ssize_t nbytes);

/* Whether the daemon reaches all of the first nbytes, as the client's own memory or a GPU's. */
int pywharf_memory_reaches(const struct pywharf_client *client, const struct pywharf_view *view,
                           size_t nbytes);

/* How many buffers of the client's memories are held, by whomever. */
Py_ssize_t pywharf_memory_n_exports(const struct pywharf_client *client);

/* The handle is gone, and the arena with it. */
void pywharf_memory_forget(struct pywharf_client *client);

/* In a forked child: zeros in the place of memory that is not there. */
void pywharf_memory_forked(struct pywharf_client *client);

/* ---- pywharf_gpu.c ------------------------------------------------------------------------- */

int pywharf_gpu_init(PyObject *module, struct pywharf_state *state);
PyObject *pywharf_gpu_alloc(struct pywharf_client *client, PyObject *args, PyObject *kwargs);
PyObject *pywharf_gpu_register(struct pywharf_client *client, PyObject *args, PyObject *kwargs);

/* Refuses GPU memory that the daemon does not reach, and waits for the caller's work in the rest.
 * Returns 0, or -1 with an exception. */
int pywharf_gpu_make_ready(struct pywharf_client *client, struct pywharf_chunks *chunks);

/* Lets go of what that holds. */
void pywharf_gpu_let_go(struct pywharf_view *view);

/* The handle is gone, and what was registered with it. */
void pywharf_gpu_forget(struct pywharf_client *client);

/* ---- pywharf_job.c ------------------------------------------------------------------------- */

int pywharf_job_init(PyObject *module, struct pywharf_state *state);

PyObject *pywharf_job_submit(struct pywharf_client *client, PyObject *args, PyObject *kwargs);
PyObject *pywharf_job_submit_batch(struct pywharf_client *client, PyObject *args, PyObject *kwargs);

/* Submits and waits: the answer, or NULL with an exception.  Takes the chunks over. */
PyObject *pywharf_job_run(struct pywharf_client *client, struct pywharf_chunks *chunks);

/* Takes completions, waiting up to timeout_ns (negative: for ever) for one.  Returns how many, or
 * -1 with an exception. */
Py_ssize_t pywharf_job_reap(struct pywharf_client *client, int64_t timeout_ns);

/* Buffers of the client's own memories that its jobs in flight hold. */
Py_ssize_t pywharf_job_n_held(const struct pywharf_client *client);

/* Ends all that are in flight, since the handle is gone.  In a forked child nobody is told: the
 * jobs are the parent's. */
void pywharf_jobs_forget(struct pywharf_client *client, int is_child);

/* ---- pywharf_feed.c ------------------------------------------------------------------------ */

/* Input that a decoder was given and has not used up, and the lock of its calls. */
struct pywharf_feed {
    PyThread_type_lock lock;
    unsigned long owner; /* the thread that has it, or 0 */
    Py_buffer in;        /* obj is NULL: none is held */
    const uint8_t *at;
    size_t nbytes;
};

int pywharf_feed_init(struct pywharf_feed *feed);
void pywharf_feed_deinit(struct pywharf_feed *feed);

/* One call at a time.  With the GIL, which is let go while another thread is in one.  -1 with an
 * exception: this thread is, since buffers of strangers run code of theirs. */
int pywharf_feed_enter(struct pywharf_feed *feed);
void pywharf_feed_leave(struct pywharf_feed *feed);

/* Between these two. */
/* Holds the next piece, when the one before is used up.  0, or -1 with an exception. */
int pywharf_feed_give(struct pywharf_feed *feed, PyObject *data);
/* Takes bytes off the piece.  Needs no GIL. */
void pywharf_feed_take(struct pywharf_feed *feed, size_t nbytes);
/* Takes all that is left, as bytes; NULL with an exception. */
PyObject *pywharf_feed_rest(struct pywharf_feed *feed);
/* Lets the piece go. */
void pywharf_feed_end(struct pywharf_feed *feed);

/* The method __reduce__ of what stands in the middle of something. */
PyObject *pywharf_refuse_pickle(PyObject *self, PyObject *unused);

/* ---- decoders and readers -------------------------------------------------------------------- */

int pywharf_inflater_init(PyObject *module, struct pywharf_state *state);
PyObject *pywharf_inflater_new(struct pywharf_state *state, PyObject *args, PyObject *kwargs);
int pywharf_stream_init(PyObject *module);
int pywharf_container_init(PyObject *module);
int pywharf_index_init(PyObject *module);
int pywharf_packer_init(PyObject *module);

/* Functions of the module. */
PyObject *pywharf_detect(PyObject *module, PyObject *args);
PyObject *pywharf_bgzf_block(PyObject *module, PyObject *data);

#endif
