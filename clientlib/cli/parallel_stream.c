/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_stream.c: decodes a stream of an input by several threads. */
#include "clientlib/cli/parallel_stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct wharf_cli_parallel {
    struct wharf_cli_input *input;
    uint64_t offset; /* how far the input has been read: of the thread that reads */
    struct wharf_parallel_inflate *stream;
    unsigned n_threads;
    pthread_t threads[];
};

/* Two threads take as long as one, or up to twice as long where the data is easy to decode: markers
 * cost nearly as much processor time again. */
enum { LEAST_THREADS = 4 };

bool wharf_cli_parallel_pays(const struct wharf_cli_task *task, uint64_t offset)
{
    const struct wharf_cli_input *input = task->input;

    return task->options->n_threads >= LEAST_THREADS &&
           (!input->is_seekable || (input->nbytes > offset &&
                                    input->nbytes - offset >= WHARF_PARALLEL_INFLATE_LEAST_NBYTES));
}

static int64_t read_some(void *context, void *buf, size_t nbytes)
{
    struct wharf_cli_parallel *parallel = context;
    int64_t n = wharf_cli_input_read_some(parallel->input, parallel->offset, buf, nbytes);

    if (n > 0)
        parallel->offset += (uint64_t)n;
    return n;
}

static void *run(void *context)
{
    wharf_parallel_inflate_work(context);
    return NULL;
}

/* As many as can be had: one is enough. */
static int start_threads(struct wharf_cli_parallel *parallel, unsigned n_threads)
{
    int error = 0;

    for (; parallel->n_threads < n_threads && !error; parallel->n_threads += !error)
        error =
            pthread_create(&parallel->threads[parallel->n_threads], NULL, run, parallel->stream);
    return parallel->n_threads ? 0 : -error;
}

int wharf_cli_parallel_start(struct wharf_cli_task *task, enum wharf_inflate_format format,
                             uint64_t offset, bool wants_points,
                             struct wharf_cli_parallel **ret_parallel)
{
    unsigned n_threads = task->options->n_threads;
    struct wharf_cli_parallel *parallel =
        calloc(1, sizeof(*parallel) + n_threads * sizeof(parallel->threads[0]));
    struct wharf_parallel_source source = {read_some, parallel};
    int r;

    if (!parallel)
        return -ENOMEM;
    parallel->input = task->input;
    parallel->offset = offset;
    r = wharf_parallel_inflate_new(format, n_threads, &source, &parallel->stream);
    if (r == 0 && wants_points)
        wharf_parallel_inflate_want_points(parallel->stream);
    if (r == 0)
        r = start_threads(parallel, n_threads);
    if (r < 0) {
        wharf_parallel_inflate_free(parallel->stream);
        free(parallel);
        return r;
    }
    *ret_parallel = parallel;
    return 0;
}

struct wharf_parallel_inflate *wharf_cli_parallel_stream(struct wharf_cli_parallel *parallel)
{
    return parallel->stream;
}

void wharf_cli_parallel_join(struct wharf_cli_parallel *parallel)
{
    if (parallel->n_threads == 0)
        return;
    wharf_parallel_inflate_stop(parallel->stream);
    /* One may wait for a pipe. */
    wharf_cli_input_stop(parallel->input);
    for (; parallel->n_threads; parallel->n_threads--)
        pthread_join(parallel->threads[parallel->n_threads - 1], NULL);
    wharf_cli_input_resume(parallel->input);
}

void wharf_cli_parallel_free(struct wharf_cli_parallel *parallel)
{
    if (!parallel)
        return;
    wharf_cli_parallel_join(parallel);
    wharf_parallel_inflate_free(parallel->stream);
    free(parallel);
}
