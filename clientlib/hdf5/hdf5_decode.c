/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_decode.c: decodes streams for the filters by libwharf.
 *
 * Small streams are decoded by the embedded engine, since asking the daemon would take longer.  The
 * first large one connects to the daemon.  What the daemon cannot do, or does not answer in time,
 * is decoded in this process.
 */
#include "clientlib/hdf5/hdf5_decode.h"

#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

#include "clientlib/hdf5/hdf5_errors.h"
#include "clientlib/wharf.h"

/* Output below this is decoded sooner in this process. */
#define DAEMON_NBYTES ((size_t)1 << 20)
/* How long a reader waits for a daemon that hangs. */
enum { PATIENCE_MS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wharf *embedded, *daemon_handle;
/* The process that opened the handles: a child of fork must not use its parent's. */
static pid_t owner;

static void close_handles(void)
{
    wharf_close(daemon_handle);
    wharf_close(embedded);
    daemon_handle = NULL;
    embedded = NULL;
}

/* HDF5 unloads its plugins when it is closed. */
__attribute__((destructor)) static void unload(void)
{
    close_handles();
}

/* Returns the handle for a stream of this size, or NULL if out of memory. */
static struct wharf *get_handle(size_t out_nbytes)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf **handle = out_nbytes < DAEMON_NBYTES ? &embedded : &daemon_handle;

    options.flags = handle == &embedded ? WHARF_OPEN_EMBEDDED : 0;
    options.patience_ms = PATIENCE_MS;
    options.client_name = "HDF5 filter";
    pthread_mutex_lock(&lock);
    if (owner != getpid())
        close_handles();
    owner = getpid();
    if (!*handle && wharf_open(&options, handle) < 0)
        *handle = NULL;
    struct wharf *found = *handle;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Decodes through the daemon if it is worth it, or else in this thread. */
static int run(const struct wharf_job *job, struct wharf_outcome *outcome)
{
    struct wharf *wharf = get_handle(job->out_avail);
    int r = wharf ? wharf_decompress(wharf, job, outcome) : -1;

    /* A failure of the daemon says nothing about the data. */
    if (r == 0 && outcome->result != WHARF_QUOTA && outcome->result != WHARF_NO_MEMORY &&
        outcome->result != WHARF_INTERNAL && outcome->result != WHARF_DEVICE_FAULT)
        return 0;
    wharf = get_handle(0);
    return wharf ? wharf_decompress(wharf, job, outcome) : -1;
}

bool wharf_hdf5_decode(const struct wharf_hdf5_chunk *chunk, const struct wharf_hdf5_stream *stream)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;

    job.codec = stream->codec;
    job.parameter = stream->parameter;
    job.flags = stream->ret_out_nbytes ? 0 : WHARF_JOB_EXACT_OUTPUT;
    job.in = chunk->in + stream->offset;
    job.in_nbytes = stream->nbytes;
    job.out = stream->out;
    job.out_avail = stream->out_nbytes;
    if (run(&job, &outcome) < 0)
        return wharf_hdf5_fail("%s", wharf_error_message());
    if (outcome.result != WHARF_OK)
        return wharf_hdf5_fail("%s at bit %" PRIu64 " of a chunk of %zu bytes",
                               wharf_reason_string(outcome.reason),
                               outcome.bit_offset + (uint64_t)stream->offset * 8, chunk->in_nbytes);
    if (stream->ret_out_nbytes)
        *stream->ret_out_nbytes = outcome.out_nbytes;
    return true;
}
