/* SPDX-License-Identifier: Apache-2.0 */
/* stream_pipe.c: decodes a stream of any length in bounded memory. */
#include "clientlib/cli/stream_pipe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/parallel_stream.h"
#include "clientlib/cli/pipeline.h"

/* One being filled, one being written, and as many again for uneven speeds. */
enum { N_SLOTS = 4 };

struct slot {
    uint8_t *buf; /* WHARF_CLI_STREAM_SLOT_NBYTES */
    size_t nbytes;
    uint64_t in_offset; /* how far the input had been read */

    /* In the last slot only. */
    bool is_last;
    int read_error; /* or 0 */
    struct wharf_outcome outcome;
    uint64_t n_verified; /* bytes of the whole output */
};

struct stream_pipe {
    struct wharf_cli_task *task;
    /* One of the two decodes. */
    struct wharf_stream *stream;
    struct wharf_cli_parallel *parallel;
    uint64_t start;  /* where the stream begins in the input */
    uint64_t offset; /* how far the input has been read, by the first one */

    const uint8_t *span; /* output that no slot has taken yet */
    size_t span_nbytes;
    bool was_last;

    uint64_t n_written;
    struct wharf_cli_stream_rescue *rescue; /* NULL: what is not verified is not written */
    int status;
};

/* Gives the stream more input; 0 or -errno. */
static int feed(struct stream_pipe *pipe)
{
    size_t avail;
    uint8_t *space = wharf_stream_space(pipe->stream, &avail);
    int64_t n = wharf_cli_input_read_some(pipe->task->input, pipe->offset, space, avail);

    if (n < 0)
        return (int)n;
    pipe->offset += (uint64_t)n;
    wharf_stream_fill(pipe->stream, (size_t)n, n == 0);
    return 0;
}

static void take_span(struct stream_pipe *pipe, struct slot *slot)
{
    size_t n = WHARF_CLI_STREAM_SLOT_NBYTES - slot->nbytes;

    if (n > pipe->span_nbytes)
        n = pipe->span_nbytes;
    memcpy(slot->buf + slot->nbytes, pipe->span, n);
    slot->nbytes += n;
    pipe->span += n;
    pipe->span_nbytes -= n;
}

static void end_stream(struct stream_pipe *pipe, struct slot *slot, int read_error)
{
    pipe->was_last = true;
    slot->is_last = true;
    slot->read_error = read_error;
    if (pipe->parallel) {
        const struct wharf_parallel_inflate *stream = wharf_cli_parallel_stream(pipe->parallel);

        slot->n_verified = wharf_parallel_inflate_verified(stream);
        wharf_parallel_inflate_outcome(stream, &slot->outcome);
        return;
    }
    slot->n_verified = wharf_stream_verified(pipe->stream);
    if (read_error == 0)
        wharf_stream_outcome(pipe->stream, &slot->outcome);
}

/* The same as `advance`, of several threads. */
static void advance_parallel(struct stream_pipe *pipe, struct slot *slot)
{
    struct wharf_parallel_inflate *stream = wharf_cli_parallel_stream(pipe->parallel);
    int r = wharf_parallel_inflate_next(stream, &pipe->span, &pipe->span_nbytes);

    if (r <= 0)
        end_stream(pipe, slot, r);
    pipe->offset = pipe->start + wharf_parallel_inflate_n_read(stream);
}

/* Runs the decoder until it has output or comes to its end. */
static void advance(struct stream_pipe *pipe, struct slot *slot)
{
    int r;

    switch (wharf_stream_next(pipe->stream, &pipe->span, &pipe->span_nbytes)) {
    case WHARF_STREAM_INPUT:
        r = feed(pipe);
        if (r < 0)
            end_stream(pipe, slot, r);
        break;
    case WHARF_STREAM_OUTPUT:
        break;
    case WHARF_STREAM_END:
        end_stream(pipe, slot, 0);
        break;
    }
}

static bool fill(void *context, void *slot_memory)
{
    struct stream_pipe *pipe = context;
    struct slot *slot = slot_memory;

    if (pipe->was_last)
        return false;
    slot->nbytes = 0;
    while (slot->nbytes < WHARF_CLI_STREAM_SLOT_NBYTES && !slot->is_last) {
        if (pipe->span_nbytes)
            take_span(pipe, slot);
        else if (pipe->parallel)
            advance_parallel(pipe, slot);
        else
            advance(pipe, slot);
    }
    slot->in_offset = pipe->offset;
    return true;
}

/* Writes what of a slot may be written: all, or after a failure what was verified. */
static int write_slot(struct stream_pipe *pipe, const struct slot *slot)
{
    size_t nbytes = slot->nbytes;
    bool is_good = slot->read_error == 0 && slot->outcome.result == WHARF_OK;

    if (slot->is_last && !is_good && !pipe->rescue) {
        uint64_t n_good =
            slot->n_verified > pipe->n_written ? slot->n_verified - pipe->n_written : 0;

        nbytes = n_good < nbytes ? (size_t)n_good : nbytes;
    }
    pipe->n_written += nbytes;
    return wharf_cli_task_write(pipe->task, slot->in_offset, slot->buf, nbytes);
}

static int tell_end(struct stream_pipe *pipe, const struct slot *slot)
{
    const struct wharf_outcome *outcome = &slot->outcome;
    struct wharf_cli_fault fault = {
        .result = outcome->result,
        .reason = outcome->reason,
        .bit_offset = 8 * pipe->start + outcome->bit_offset,
        .chunk = WHARF_CLI_NO_CHUNK,
    };

    if (slot->read_error)
        return wharf_cli_task_read_error(pipe->task, slot->read_error);
    pipe->task->tally->in_nbytes += outcome->in_nbytes;
    pipe->task->tally->n_chunks++;
    pipe->task->tally->engines |= 1u << WHARF_ENGINE_CPU;
    if (pipe->rescue) {
        *pipe->rescue = (struct wharf_cli_stream_rescue){
            .outcome = *outcome,
            .member_start = pipe->start + wharf_stream_member_start(pipe->stream),
            .n_written = pipe->n_written,
            .n_doubtful = pipe->n_written - slot->n_verified,
        };
        return WHARF_CLI_GOOD;
    }
    if (outcome->result == WHARF_OK)
        return WHARF_CLI_GOOD;
    return wharf_cli_task_fault(
        pipe->task, &fault,
        pipe->n_written > slot->n_verified ? pipe->n_written - slot->n_verified : 0);
}

static bool drain(void *context, void *slot_memory)
{
    struct stream_pipe *pipe = context;
    struct slot *slot = slot_memory;

    pipe->status = write_slot(pipe, slot);
    if (pipe->status == WHARF_CLI_GOOD && slot->is_last)
        pipe->status = tell_end(pipe, slot);
    return pipe->status == WHARF_CLI_GOOD;
}

static void stop(void *context)
{
    struct stream_pipe *pipe = context;

    if (pipe->parallel)
        wharf_parallel_inflate_stop(wharf_cli_parallel_stream(pipe->parallel));
    else
        wharf_cli_input_stop(pipe->task->input);
}

/* The same as settle_end, of several threads, which are over. */
static int settle_parallel(struct stream_pipe *pipe, uint64_t *ret_end)
{
    const struct wharf_parallel_inflate *stream = wharf_cli_parallel_stream(pipe->parallel);
    size_t nbytes = wharf_parallel_inflate_rest_nbytes(stream);
    uint8_t *rest = malloc(nbytes + 1);
    struct wharf_outcome outcome;
    int r = -ENOMEM;

    wharf_parallel_inflate_outcome(stream, &outcome);
    *ret_end = pipe->start + outcome.in_nbytes;
    if (rest) {
        wharf_parallel_inflate_copy_rest(stream, rest);
        r = wharf_cli_input_unread(pipe->task->input, *ret_end, rest, nbytes);
    }
    free(rest);
    return r < 0 ? wharf_cli_task_error(pipe->task, "cannot decode", r) : WHARF_CLI_GOOD;
}

/* Gives back what was read behind the end of the stream, and says where that is. */
static int settle_end(struct stream_pipe *pipe, uint64_t *ret_end)
{
    size_t nbytes;
    const uint8_t *rest = wharf_stream_rest(pipe->stream, &nbytes);
    int r = wharf_cli_input_unread(pipe->task->input, pipe->offset - nbytes, rest, nbytes);

    if (r < 0)
        return wharf_cli_task_error(pipe->task, "cannot decode", r);
    *ret_end = pipe->offset - nbytes;
    return WHARF_CLI_GOOD;
}

static int run_slots(struct stream_pipe *pipe)
{
    const struct wharf_cli_stages stages = {fill, NULL, drain, stop, pipe};
    struct slot slots[N_SLOTS] = {0};
    uint8_t *memory = malloc((size_t)N_SLOTS * WHARF_CLI_STREAM_SLOT_NBYTES);
    int r = -ENOMEM;

    for (int i = 0; memory && i < N_SLOTS; i++)
        slots[i].buf = memory + (size_t)i * WHARF_CLI_STREAM_SLOT_NBYTES;
    if (memory)
        r = wharf_cli_pipeline_run(&stages, slots, sizeof(slots[0]), N_SLOTS, 0);
    free(memory);
    if (r < 0)
        return wharf_cli_task_error(pipe->task, "cannot decode", r);
    return pipe->status;
}

static int run_stream(struct stream_pipe *pipe, uint64_t *ret_end)
{
    int status;

    if (!pipe->stream)
        return wharf_cli_task_error(pipe->task, "cannot decode", -ENOMEM);
    status = run_slots(pipe);
    if (status == WHARF_CLI_GOOD && (!pipe->rescue || pipe->rescue->outcome.result == WHARF_OK))
        status = settle_end(pipe, ret_end);
    wharf_stream_free(pipe->stream);
    return status;
}

static int run_parallel(struct stream_pipe *pipe, uint64_t *ret_end)
{
    int status = run_slots(pipe);

    wharf_cli_parallel_join(pipe->parallel);
    if (status == WHARF_CLI_GOOD)
        status = settle_parallel(pipe, ret_end);
    wharf_cli_parallel_free(pipe->parallel);
    return status;
}

int wharf_cli_stream_pipe(struct wharf_cli_task *task, struct wharf_stream *stream, uint64_t offset,
                          uint64_t *ret_end)
{
    struct stream_pipe pipe = {.task = task, .stream = stream, .start = offset, .offset = offset};

    return run_stream(&pipe, ret_end);
}

int wharf_cli_inflate_pipe(struct wharf_cli_task *task, enum wharf_inflate_format format,
                           uint64_t offset, uint64_t *ret_end)
{
    struct stream_pipe pipe = {.task = task, .start = offset, .offset = offset};

    /* Where there is no memory for many decoders there may be for one. */
    if (wharf_cli_parallel_pays(task, offset) &&
        wharf_cli_parallel_start(task, format, offset, false, &pipe.parallel) == 0)
        return run_parallel(&pipe, ret_end);
    return wharf_cli_stream_pipe(task, wharf_inflate_stream_new(format), offset, ret_end);
}

int wharf_cli_stream_rescue(struct wharf_cli_task *task, struct wharf_stream *stream,
                            uint64_t offset, struct wharf_cli_stream_rescue *ret_rescue)
{
    struct stream_pipe pipe = {
        .task = task, .stream = stream, .start = offset, .offset = offset, .rescue = ret_rescue};

    return run_stream(&pipe, &ret_rescue->end);
}

static bool is_all_zeros(const uint8_t *bytes, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        if (bytes[i])
            return false;
    return true;
}

void wharf_cli_say_rest(const struct wharf_cli_task *task, uint64_t offset)
{
    if (!task->options->quiet)
        wharf_cli_say("%s: what follows byte %" PRIu64 " is not compressed data, ignored",
                      task->input->name, offset);
}

int wharf_cli_look_at_rest(struct wharf_cli_task *task, uint64_t offset, bool *ret_has_bytes)
{
    uint8_t bytes[4096];
    int64_t n;

    *ret_has_bytes = false;
    while (!*ret_has_bytes &&
           (n = wharf_cli_input_read_some(task->input, offset, bytes, sizeof(bytes))) != 0) {
        if (n < 0)
            return wharf_cli_task_read_error(task, (int)n);
        *ret_has_bytes = !is_all_zeros(bytes, (size_t)n);
        offset += (uint64_t)n;
    }
    return WHARF_CLI_GOOD;
}

int wharf_cli_mention_rest(struct wharf_cli_task *task, uint64_t offset)
{
    bool has_bytes;
    int status = wharf_cli_look_at_rest(task, offset, &has_bytes);

    if (has_bytes)
        wharf_cli_say_rest(task, offset);
    return status;
}
