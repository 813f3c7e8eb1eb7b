/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bgzf_pipe.c: decodes BGZF in a pipeline of slots (pipeline.h).
 *
 * The reader splits the input into blocks by their headers (bgzf.h), fills slots with them, and
 * keeps what does not fit for the next slot.  Block sizes are hints.  When a block does not decode
 * as promised, everything from its beginning on is returned to the input, and the caller decodes it
 * as plain gzip.
 */
#include "clientlib/cli/bgzf_pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/load.h"
#include "clientlib/cli/pipeline.h"
#include "encoders/gzip/bgzf.h"

enum {
    /* Output that a slot holds: some 16 full blocks, or 1 ms of work, so that the cost of passing a
     * slot on is small beside it. */
    SLOT_OUT_NBYTES = 1 << 20,
    /* The input for that output at a ratio of 3.2, as of text; at other ratios one of the two
     * buffers is not filled.  128 KiB cost 1.6 times as many context switches and a few percent
     * more processor time. */
    SLOT_IN_NBYTES = 320 << 10,
};

struct slot {
    struct wharf_cli_load load; /* its `in` as it was read, beginning with blocks */
    uint64_t in_offset;         /* offset in the input of load.in */
    size_t in_nbytes;           /* bytes read: blocks, and the beginning of the next slot */
    size_t taken_nbytes;
    size_t out_nbytes;

    /* Whether this is the last slot, and why. */
    bool is_last;
    int read_error; /* or 0 */
    uint32_t kind;  /* enum wharf_bgzf_piece_kind after the blocks */
};

struct bgzf_pipe {
    struct wharf_cli_task *task;
    struct slot *slots;
    unsigned n_slots;

    /* The reader's state. */
    struct wharf_bgzf_splitter splitter;
    const struct slot *before; /* the slot that was filled last */
    uint64_t offset;           /* how far the input was read */
    bool at_end;

    /* The writer's state. */
    uint64_t end; /* everything up to here is written */
    uint32_t kind;
    bool is_broken; /* a block did not decode as promised */
    int status;
};

/* ---- reading --------------------------------------------------------------------------- */

/* Begins a slot with the bytes that the slot before read but did not use. */
static void begin_slot(struct bgzf_pipe *pipe, struct slot *slot)
{
    const struct slot *before = pipe->before;
    size_t nbytes = before ? before->in_nbytes - before->taken_nbytes : 0;

    wharf_cli_load_clear(&slot->load);
    if (nbytes)
        memmove(slot->load.in, before->load.in + before->taken_nbytes, nbytes);
    slot->in_offset = pipe->offset - nbytes;
    slot->in_nbytes = nbytes;
    slot->taken_nbytes = 0;
    slot->out_nbytes = 0;
    pipe->before = slot;
}

static void end_reading(struct slot *slot, uint32_t kind, int read_error)
{
    slot->is_last = true;
    slot->kind = kind;
    slot->read_error = read_error;
}

static void read_more(struct bgzf_pipe *pipe, struct slot *slot)
{
    int64_t n =
        wharf_cli_input_read_some(pipe->task->input, pipe->offset, slot->load.in + slot->in_nbytes,
                                  SLOT_IN_NBYTES - slot->in_nbytes);

    if (n < 0) {
        end_reading(slot, WHARF_BGZF_MORE, (int)n);
        return;
    }
    pipe->at_end = n == 0;
    pipe->offset += (uint64_t)n;
    slot->in_nbytes += (size_t)n;
}

static bool has_room(const struct slot *slot, const struct wharf_bgzf_piece *block)
{
    return wharf_cli_load_has_room(&slot->load, WHARF_CODEC_GZIP, 0) &&
           slot->out_nbytes + block->out_nbytes <= SLOT_OUT_NBYTES;
}

/* Takes the next block or reads more.  False when the slot is full or the blocks end. */
static bool take_piece(struct bgzf_pipe *pipe, struct slot *slot)
{
    struct wharf_bgzf_splitter splitter = pipe->splitter;
    const uint8_t *in = slot->load.in + slot->taken_nbytes;
    struct wharf_bgzf_piece piece;
    struct wharf_decode_job job;

    wharf_bgzf_next(&splitter, in, slot->in_nbytes - slot->taken_nbytes, pipe->at_end, &piece);
    switch (piece.kind) {
    case WHARF_BGZF_BLOCK:
        if (!has_room(slot, &piece))
            return false;
        pipe->splitter = splitter;
        job = wharf_bgzf_block_job(&piece, in, slot->load.out + slot->out_nbytes);
        wharf_cli_load_add(&slot->load, &job);
        slot->taken_nbytes += piece.nbytes;
        slot->out_nbytes += piece.out_nbytes;
        return true;
    case WHARF_BGZF_MORE:
        if (slot->load.n_jobs)
            return false;
        read_more(pipe, slot);
        return true;
    default:
        end_reading(slot, piece.kind, 0);
        return false;
    }
}

static bool fill(void *context, void *slot_memory)
{
    struct bgzf_pipe *pipe = context;
    struct slot *slot = slot_memory;

    if (pipe->before && pipe->before->is_last)
        return false;
    begin_slot(pipe, slot);
    while (!slot->is_last && take_piece(pipe, slot))
        ;
    if (pipe->task->service->wharf)
        wharf_cli_load_send(pipe->task->service, &slot->load);
    return true;
}

/* ---- decoding -------------------------------------------------------------------------- */

static void work(void *context, void *slot_memory, unsigned worker)
{
    const struct bgzf_pipe *pipe = context;
    struct slot *slot = slot_memory;

    (void)worker;
    wharf_cli_load_run(pipe->task->service, &slot->load);
}

/* ---- writing --------------------------------------------------------------------------- */

static int write_blocks(struct bgzf_pipe *pipe, const struct slot *slot)
{
    size_t in_nbytes = 0;
    size_t out_nbytes = 0;

    for (unsigned i = 0; i < slot->load.n_good; i++) {
        in_nbytes += slot->load.jobs[i].in_nbytes;
        out_nbytes += slot->load.jobs[i].out_avail;
    }
    pipe->end += in_nbytes;
    pipe->task->tally->in_nbytes += in_nbytes;
    pipe->task->tally->n_chunks += slot->load.n_good;
    return wharf_cli_task_write(pipe->task, pipe->end, slot->load.out, out_nbytes);
}

static bool drain(void *context, void *slot_memory)
{
    struct bgzf_pipe *pipe = context;
    struct slot *slot = slot_memory;

    pipe->status = wharf_cli_load_await(pipe->task, &slot->load);
    if (pipe->status == WHARF_CLI_GOOD)
        pipe->status = write_blocks(pipe, slot);
    if (pipe->status != WHARF_CLI_GOOD)
        return false;
    pipe->is_broken = slot->load.n_good < slot->load.n_jobs;
    pipe->kind = slot->kind;
    if (slot->read_error && !pipe->is_broken)
        pipe->status = wharf_cli_task_read_error(pipe->task, slot->read_error);
    /* The rest of a range need not be read: each block is verified by itself. */
    return pipe->status == WHARF_CLI_GOOD && !pipe->is_broken &&
           !wharf_cli_output_is_full(pipe->task->output);
}

/* ---- all together ---------------------------------------------------------------------- */

static void stop(void *context)
{
    struct bgzf_pipe *pipe = context;

    wharf_cli_input_stop(pipe->task->input);
}

/* The slot that holds the most bytes from `offset` on, or NULL. */
static const struct slot *slot_with(const struct bgzf_pipe *pipe, uint64_t offset)
{
    const struct slot *best = NULL;

    for (unsigned i = 0; i < pipe->n_slots; i++) {
        const struct slot *slot = &pipe->slots[i];
        uint64_t end = slot->in_offset + slot->in_nbytes;

        if (slot->in_offset <= offset && offset < end &&
            (!best || end > best->in_offset + best->in_nbytes))
            best = slot;
    }
    return best;
}

/* Returns everything that was read from pipe->end on to the input. */
static int unread(struct bgzf_pipe *pipe)
{
    size_t nbytes = (size_t)(pipe->offset - pipe->end);
    uint8_t *bytes = malloc(nbytes + 1);
    const struct slot *slot;
    size_t done = 0;
    int r = -ENOMEM;

    while (bytes && (slot = slot_with(pipe, pipe->end + done))) {
        size_t from = (size_t)(pipe->end + done - slot->in_offset);

        memcpy(bytes + done, slot->load.in + from, slot->in_nbytes - from);
        done += slot->in_nbytes - from;
    }
    if (bytes)
        r = wharf_cli_input_unread(pipe->task->input, pipe->end, bytes, done);
    free(bytes);
    return r < 0 ? wharf_cli_task_error(pipe->task, "cannot decode", r) : WHARF_CLI_GOOD;
}

void wharf_cli_bgzf_mention_no_marker(const struct wharf_cli_task *task)
{
    if (!task->options->quiet)
        wharf_cli_say("%s: has no end-of-file block: it may be cut off behind a block",
                      task->input->name);
}

static enum wharf_cli_bgzf_next what_is_next(const struct bgzf_pipe *pipe)
{
    if (pipe->is_broken || pipe->kind == WHARF_BGZF_STREAM)
        return WHARF_CLI_BGZF_GZIP;
    if (pipe->kind == WHARF_BGZF_REST && !pipe->splitter.ends_with_marker)
        return WHARF_CLI_BGZF_OTHER;
    return WHARF_CLI_BGZF_END;
}

static int run_slots(struct bgzf_pipe *pipe)
{
    const struct wharf_cli_options *options = pipe->task->options;
    struct wharf_cli_stages stages = {fill, work, drain, stop, pipe};
    unsigned n_workers = options->n_threads;
    int r = wharf_cli_loads_init(pipe->task->service, pipe->slots, sizeof(*pipe->slots),
                                 &pipe->n_slots, SLOT_IN_NBYTES, SLOT_OUT_NBYTES);

    if (pipe->task->service->wharf) {
        stages.work = NULL;
        n_workers = 0;
    }
    if (r < 0)
        return wharf_cli_loads_say_error(pipe->task, "cannot decode", r);
    r = wharf_cli_pipeline_run(&stages, pipe->slots, sizeof(*pipe->slots), pipe->n_slots,
                               n_workers);
    if (r < 0)
        return wharf_cli_task_error(pipe->task, "cannot decode", r);
    if (pipe->status != WHARF_CLI_GOOD)
        return pipe->status;
    wharf_cli_input_resume(pipe->task->input);
    if (!pipe->is_broken && pipe->kind == WHARF_BGZF_END && !pipe->splitter.ends_with_marker)
        wharf_cli_bgzf_mention_no_marker(pipe->task);
    return unread(pipe);
}

int wharf_cli_bgzf_pipe(struct wharf_cli_task *task, uint64_t offset, uint64_t *ret_end,
                        enum wharf_cli_bgzf_next *ret_next)
{
    unsigned n_slots = wharf_cli_pipeline_n_slots(task->options->n_threads);
    struct bgzf_pipe pipe = {
        .task = task,
        .slots = calloc(n_slots, sizeof(*pipe.slots)),
        .n_slots = n_slots,
        .offset = offset,
        .end = offset,
    };
    int status;

    if (!pipe.slots)
        return wharf_cli_task_error(task, "cannot decode", -ENOMEM);
    status = run_slots(&pipe);
    wharf_cli_loads_deinit(task->service, pipe.slots, sizeof(*pipe.slots), pipe.n_slots);
    free(pipe.slots);
    if (status != WHARF_CLI_GOOD)
        return status;
    *ret_end = pipe.end;
    *ret_next = what_is_next(&pipe);
    return WHARF_CLI_GOOD;
}
