/* SPDX-License-Identifier: Apache-2.0 */
/* pack_pipe.c: packs an input into a wharf container, with chunks in parallel. */
#include "clientlib/cli/pack_pipe.h"

#include <errno.h>
#include <stdlib.h>

#include "clientlib/cli/daemon_pack.h"
#include "clientlib/cli/pipeline.h"
#include "encoders/container_write.h"

enum {
    /* As in container_pipe.c. */
    SLOT_RAW_NBYTES = 1 << 20,
    SLOT_MAX_CHUNKS = 128,
};

struct slot {
    uint8_t *raw;
    uint8_t *payload; /* as large: no chunk is stored in more than its size */
    size_t raw_nbytes;
    int read_error;
    uint64_t in_offset;

    unsigned n_packed;
    struct wharf_container_packed packed[SLOT_MAX_CHUNKS];
    int pack_error;                               /* of the chunk behind them */
    struct wharf_cli_daemon_pack_failure failure; /* if that was the daemon's */
};

struct pack_pipe {
    struct wharf_cli_task *task;
    const struct wharf_cli_pack_settings *settings;
    size_t slot_nbytes;              /* a multiple of the chunk's size */
    struct wharf_encoder **encoders; /* one for each worker */
    uint64_t offset;                 /* how far the input was read */
    bool was_last;
    struct wharf_container_writer writer;
    bool write_failed; /* and output_file.c has said why */
    struct wharf_cli_tally before;
    int status;
};

static bool fill(void *context, void *slot_memory)
{
    struct pack_pipe *pipe = context;
    struct slot *slot = slot_memory;
    int64_t n;

    if (pipe->was_last)
        return false;
    n = wharf_cli_input_read_at(pipe->task->input, pipe->offset, slot->raw, pipe->slot_nbytes);
    slot->read_error = n < 0 ? (int)n : 0;
    slot->raw_nbytes = n < 0 ? 0 : (size_t)n;
    pipe->offset += slot->raw_nbytes;
    pipe->was_last = slot->raw_nbytes < pipe->slot_nbytes;
    slot->in_offset = pipe->offset;
    return true;
}

static bool is_daemons(const struct pack_pipe *pipe)
{
    return pipe->task->service && pipe->task->service->wharf;
}

/* The next chunk of the slot, nbytes from `at` on. */
static int pack_chunk(const struct pack_pipe *pipe, struct slot *slot, size_t at, uint32_t nbytes,
                      unsigned worker)
{
    const struct wharf_cli_pack_settings *settings = pipe->settings;
    struct wharf_container_packed *packed = &slot->packed[slot->n_packed];

    if (is_daemons(pipe))
        return wharf_cli_daemon_pack(pipe->task->service, settings, slot->raw + at, nbytes,
                                     slot->payload + at, packed, &slot->failure);
    return wharf_container_pack(settings->codec, settings->encoder.parameter,
                                pipe->encoders[worker], slot->raw + at, nbytes, slot->payload + at,
                                packed);
}

static void work(void *context, void *slot_memory, unsigned worker)
{
    const struct pack_pipe *pipe = context;
    const struct wharf_cli_pack_settings *settings = pipe->settings;
    struct slot *slot = slot_memory;
    size_t at = 0;

    slot->n_packed = 0;
    slot->pack_error = slot->failure.error = 0;
    while (at < slot->raw_nbytes && slot->pack_error == 0) {
        size_t left = slot->raw_nbytes - at;
        uint32_t nbytes = left < settings->chunk_nbytes ? (uint32_t)left : settings->chunk_nbytes;

        slot->pack_error = pack_chunk(pipe, slot, at, nbytes, worker);
        if (slot->pack_error == 0)
            slot->n_packed++;
        at += nbytes;
    }
}

static int write_parts(void *context, const struct iovec *parts, int n_parts)
{
    struct pack_pipe *pipe = context;
    int r = wharf_cli_output_write_parts(pipe->task->output, parts, n_parts);

    pipe->write_failed = r < 0;
    return r;
}

/* Errors of the container's writer that are not the output's come from a size that is not the
 * announced one. */
static int tell_writer_error(struct pack_pipe *pipe, int error)
{
    if (pipe->write_failed)
        return wharf_cli_task_write_error(pipe->task, error);
    wharf_cli_say("%s: its size changed while it was read", pipe->task->input->name);
    return wharf_cli_tally_error(pipe->task->tally, pipe->task->input->name, error);
}

static int put_chunks(struct pack_pipe *pipe, const struct slot *slot)
{
    for (unsigned i = 0; i < slot->n_packed; i++) {
        int r = wharf_container_put(&pipe->writer, &slot->packed[i]);

        if (r < 0)
            return tell_writer_error(pipe, r);
    }
    pipe->task->tally->in_nbytes = pipe->before.in_nbytes + slot->in_offset;
    pipe->task->tally->n_chunks = pipe->before.n_chunks + pipe->writer.n_chunks;
    pipe->task->tally->out_nbytes = pipe->before.out_nbytes + pipe->writer.file_nbytes;
    wharf_cli_task_move(pipe->task, slot->in_offset, 0);
    return WHARF_CLI_GOOD;
}

static bool drain(void *context, void *slot_memory)
{
    struct pack_pipe *pipe = context;
    struct slot *slot = slot_memory;

    pipe->status = put_chunks(pipe, slot);
    if (pipe->status != WHARF_CLI_GOOD)
        return false;
    if (slot->failure.error)
        pipe->status =
            wharf_cli_task_daemon_error(pipe->task, slot->failure.error, slot->failure.text);
    else if (slot->pack_error)
        pipe->status = wharf_cli_task_error(pipe->task, "cannot pack", slot->pack_error);
    else if (slot->read_error)
        pipe->status = wharf_cli_task_read_error(pipe->task, slot->read_error);
    return pipe->status == WHARF_CLI_GOOD;
}

static void stop(void *context)
{
    struct pack_pipe *pipe = context;

    wharf_cli_input_stop(pipe->task->input);
}

/* ---- all together ---------------------------------------------------------------------- */

static int run_slots(struct pack_pipe *pipe, struct slot *slots, unsigned n_slots)
{
    const struct wharf_cli_stages stages = {fill, work, drain, stop, pipe};

    int r;

    for (unsigned i = 0; i < n_slots; i++) {
        slots[i].raw = malloc(pipe->slot_nbytes);
        slots[i].payload = malloc(pipe->slot_nbytes);
        if (!slots[i].raw || !slots[i].payload)
            return wharf_cli_task_error(pipe->task, "cannot pack", -ENOMEM);
    }
    r = wharf_cli_pipeline_run(&stages, slots, sizeof(*slots), n_slots,
                               pipe->task->options->n_threads);
    return r < 0 ? wharf_cli_task_error(pipe->task, "cannot pack", r) : pipe->status;
}

static int with_slots(struct pack_pipe *pipe)
{
    unsigned n_slots = wharf_cli_pipeline_n_slots(pipe->task->options->n_threads);
    struct slot *slots = calloc(n_slots, sizeof(*slots));
    int status;

    if (!slots)
        return wharf_cli_task_error(pipe->task, "cannot pack", -ENOMEM);
    status = run_slots(pipe, slots, n_slots);
    for (unsigned i = 0; i < n_slots; i++) {
        free(slots[i].raw);
        free(slots[i].payload);
    }
    free(slots);
    return status;
}

/* What a daemon compresses takes none. */
static int make_encoders(struct pack_pipe *pipe, const struct wharf_encoder_ops *ops)
{
    for (unsigned i = 0; !is_daemons(pipe) && i < pipe->task->options->n_threads; i++) {
        int r = ops->new (&pipe->settings->encoder, &pipe->encoders[i]);

        if (r < 0)
            return wharf_cli_task_error(pipe->task, "cannot pack", r);
    }
    return WHARF_CLI_GOOD;
}

/* The container around the chunks. */
static int write_container(struct pack_pipe *pipe)
{
    const struct wharf_container_sink sink = {write_parts, pipe};
    const struct wharf_cli_input *input = pipe->task->input;
    uint64_t total = input->is_seekable ? input->nbytes : WHARF_CONTAINER_TOTAL_UNKNOWN;
    int r = wharf_container_writer_init(&pipe->writer, &sink, pipe->settings->chunk_nbytes, total);
    int status;

    if (r < 0)
        return tell_writer_error(pipe, r);
    status = with_slots(pipe);
    if (status != WHARF_CLI_GOOD)
        return status;
    r = wharf_container_finish(&pipe->writer);
    pipe->task->tally->out_nbytes = pipe->before.out_nbytes + pipe->writer.file_nbytes;
    return r < 0 ? tell_writer_error(pipe, r) : WHARF_CLI_GOOD;
}

int wharf_cli_pack_pipe(struct wharf_cli_task *task, const struct wharf_cli_pack_settings *settings)
{
    const struct wharf_encoder_ops *ops = wharf_codec_find(settings->codec)->ops->encoder;
    unsigned n_encoders = task->options->n_threads;
    struct pack_pipe pipe = {.task = task, .settings = settings, .before = *task->tally};
    size_t n_chunks = SLOT_RAW_NBYTES / settings->chunk_nbytes;
    int status;

    n_chunks = n_chunks > SLOT_MAX_CHUNKS ? SLOT_MAX_CHUNKS : n_chunks;
    pipe.slot_nbytes = (n_chunks ? n_chunks : 1) * settings->chunk_nbytes;
    pipe.encoders = calloc(n_encoders, sizeof(*pipe.encoders));
    if (!pipe.encoders)
        return wharf_cli_task_error(task, "cannot pack", -ENOMEM);
    status = make_encoders(&pipe, ops);
    if (status == WHARF_CLI_GOOD)
        status = write_container(&pipe);
    if (is_daemons(&pipe)) {
        task->tally->through_daemon = true;
        task->tally->engines |= 1u << WHARF_ENGINE_CPU;
    }
    for (unsigned i = 0; i < n_encoders; i++)
        ops->free(pipe.encoders[i]);
    free(pipe.encoders);
    return status;
}
