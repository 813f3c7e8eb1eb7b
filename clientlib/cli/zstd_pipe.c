/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader finds where frames end by their headers (zstd_scan.h) and gives each slot one or some
 * of them.  What it cannot give to a slot ends the pipe, and so does a slot that does not decode:
 * from there on the input is given back.
 */
#include "clientlib/cli/zstd_pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/pipeline.h"
#include "encoders/zstd/zstd.h"
#include "encoders/zstd/zstd_scan.h"

enum {
    /* Small frames share a slot, so that handing it on costs nothing beside decoding it. */
    SLOT_IN_NBYTES = 1 << 20,
    SLOT_OUT_NBYTES = 4 << 20,
    /* A frame of more is not for a slot.  Data that does not compress is a little longer. */
    MAX_OUT_NBYTES = 16 << 20,
    MAX_IN_NBYTES = MAX_OUT_NBYTES + (1 << 20),
};

struct slot {
    uint8_t *in; /* frames, and what the next slot begins with */
    size_t in_avail;
    size_t in_nbytes;
    size_t taken_nbytes; /* the frames */
    uint64_t in_offset;  /* of the first in the input */
    unsigned n_frames;   /* but for skippable ones */
    uint64_t most_nbytes;
    uint64_t table_nbytes; /* of output, as the seek table has it */

    uint8_t *out;
    size_t out_avail;
    struct wharf_outcome outcome;

    /* Why this is the last slot, if it is. */
    bool is_last;
    bool is_lie;    /* the seek table is wrong about the frame behind */
    int read_error; /* or 0 */
};

struct zstd_pipe {
    struct wharf_cli_task *task;
    struct wharf_cli_zstd_seek *seek; /* the reader's */
    struct slot *slots;
    unsigned n_slots;

    /* The reader's. */
    const struct slot *before;   /* the slot filled last */
    struct wharf_zstd_scan scan; /* of what follows the frames that are taken */
    enum wharf_zstd_scan_state state;
    uint64_t offset; /* how far the input was read */
    bool at_end;

    /* The writer's. */
    uint64_t end; /* up to here all is written */
    bool is_broken;
    int status;
};

/* ---- reading --------------------------------------------------------------------------- */

static bool make_room(uint8_t **buf, size_t *avail, size_t nbytes)
{
    uint8_t *grown;

    if (nbytes <= *avail)
        return true;
    grown = realloc(*buf, nbytes);
    if (!grown)
        return false;
    *buf = grown;
    *avail = nbytes;
    return true;
}

static void end_reading(struct slot *slot, int read_error)
{
    slot->is_last = true;
    slot->read_error = read_error;
}

/* Begins a slot with what the one before had read and not taken. */
static void begin_slot(struct zstd_pipe *pipe, struct slot *slot)
{
    const struct slot *before = pipe->before;
    size_t nbytes = before ? before->in_nbytes - before->taken_nbytes : 0;

    slot->in_nbytes = slot->taken_nbytes = 0;
    slot->n_frames = 0;
    slot->most_nbytes = slot->table_nbytes = 0;
    slot->in_offset = pipe->offset - nbytes;
    if (!make_room(&slot->in, &slot->in_avail, nbytes > SLOT_IN_NBYTES ? nbytes : SLOT_IN_NBYTES)) {
        end_reading(slot, -ENOMEM);
        return;
    }
    if (nbytes)
        memcpy(slot->in, before->in + before->taken_nbytes, nbytes);
    slot->in_nbytes = nbytes;
    pipe->before = slot;
}

static void read_more(struct zstd_pipe *pipe, struct slot *slot)
{
    int64_t n;

    if (slot->in_nbytes == slot->in_avail &&
        !make_room(&slot->in, &slot->in_avail, 2 * slot->in_avail)) {
        end_reading(slot, -ENOMEM);
        return;
    }
    n = wharf_cli_input_read_some(pipe->task->input, pipe->offset, slot->in + slot->in_nbytes,
                                  slot->in_avail - slot->in_nbytes);
    if (n < 0) {
        end_reading(slot, (int)n);
        return;
    }
    pipe->at_end = n == 0;
    pipe->offset += (uint64_t)n;
    slot->in_nbytes += (size_t)n;
}

/* Holds the frame against the seek table.  Its own frame is no entry's. */
static bool check_entry(struct zstd_pipe *pipe, struct slot *slot)
{
    struct wharf_zstd_seek_entry entry;
    int r;

    if (!pipe->seek || slot->in_offset + slot->taken_nbytes >= pipe->seek->table.offset)
        return true;
    r = wharf_cli_zstd_seek_next(pipe->seek, &entry);
    if (r < 0) {
        end_reading(slot, r);
        return false;
    }
    if (r == 0 || entry.in_nbytes != pipe->scan.nbytes) {
        slot->is_lie = slot->is_last = true;
        return false;
    }
    slot->table_nbytes += entry.out_nbytes;
    return true;
}

/* Takes the scanned frame, which is there; false when the slot is to be handed on without it. */
static bool take_frame(struct zstd_pipe *pipe, struct slot *slot)
{
    uint64_t most = slot->most_nbytes + wharf_zstd_scan_most(&pipe->scan);

    if ((slot->most_nbytes && most > SLOT_OUT_NBYTES) || !check_entry(pipe, slot))
        return false;
    slot->most_nbytes = most;
    slot->taken_nbytes += (size_t)pipe->scan.nbytes;
    slot->n_frames += !pipe->scan.frame.is_skippable;
    pipe->scan = (struct wharf_zstd_scan){0};
    pipe->state = WHARF_ZSTD_SCAN_GOES_ON;
    return true;
}

/* What is there of the frame: it is scanned as far as it goes. */
static void scan(struct zstd_pipe *pipe, const struct slot *slot)
{
    const uint8_t *in = slot->in + slot->taken_nbytes;
    size_t in_nbytes = slot->in_nbytes - slot->taken_nbytes;

    while (pipe->state == WHARF_ZSTD_SCAN_GOES_ON || pipe->state == WHARF_ZSTD_SCAN_NEEDS) {
        size_t at = pipe->scan.nbytes < in_nbytes ? (size_t)pipe->scan.nbytes : in_nbytes;

        pipe->state = wharf_zstd_scan_step(&pipe->scan, in + at, in_nbytes - at);
        if (pipe->state == WHARF_ZSTD_SCAN_NEEDS)
            return;
        if (pipe->scan.nbytes > MAX_IN_NBYTES || wharf_zstd_scan_most(&pipe->scan) > MAX_OUT_NBYTES)
            pipe->state = WHARF_ZSTD_SCAN_OTHER;
    }
}

/* Looks at what comes next; false when the slot is to be handed on as it is. */
static bool take_next(struct zstd_pipe *pipe, struct slot *slot)
{
    size_t left = slot->in_nbytes - slot->taken_nbytes;

    scan(pipe, slot);
    if (pipe->state == WHARF_ZSTD_SCAN_FRAME && pipe->scan.nbytes <= left)
        return take_frame(pipe, slot);
    if (pipe->state == WHARF_ZSTD_SCAN_OTHER || pipe->at_end) {
        end_reading(slot, 0);
        return false;
    }
    if (slot->taken_nbytes)
        return false;
    read_more(pipe, slot);
    return true;
}

static bool fill(void *context, void *slot_memory)
{
    struct zstd_pipe *pipe = context;
    struct slot *slot = slot_memory;

    if (pipe->before && pipe->before->is_last)
        return false;
    begin_slot(pipe, slot);
    while (!slot->is_last && take_next(pipe, slot))
        ;
    return true;
}

/* ---- decoding -------------------------------------------------------------------------- */

static void work(void *context, void *slot_memory, unsigned worker)
{
    struct slot *slot = slot_memory;

    (void)context;
    (void)worker;
    slot->outcome = (struct wharf_outcome){.result = WHARF_OK};
    if (slot->taken_nbytes == 0)
        return;
    if (!make_room(&slot->out, &slot->out_avail, (size_t)slot->most_nbytes))
        slot->outcome.result = WHARF_NO_MEMORY;
    else
        wharf_zstd_decode(slot->in, slot->taken_nbytes, slot->out, (size_t)slot->most_nbytes, NULL,
                          &slot->outcome);
}

/* ---- writing --------------------------------------------------------------------------- */

static int write_frames(struct zstd_pipe *pipe, const struct slot *slot)
{
    struct wharf_cli_tally *tally = pipe->task->tally;

    if (pipe->seek && slot->taken_nbytes && slot->outcome.out_nbytes != slot->table_nbytes)
        return wharf_cli_zstd_seek_tell(pipe->task, slot->in_offset);
    pipe->end += slot->taken_nbytes;
    tally->in_nbytes += slot->taken_nbytes;
    tally->n_chunks += slot->n_frames;
    tally->engines |= slot->n_frames ? 1u << WHARF_ENGINE_CPU : 0;
    return wharf_cli_task_write(pipe->task, pipe->end, slot->out, slot->outcome.out_nbytes);
}

static bool drain(void *context, void *slot_memory)
{
    struct zstd_pipe *pipe = context;
    struct slot *slot = slot_memory;

    pipe->is_broken = slot->outcome.result != WHARF_OK;
    if (pipe->is_broken)
        return false;
    pipe->status = write_frames(pipe, slot);
    if (pipe->status == WHARF_CLI_GOOD && slot->read_error)
        pipe->status = wharf_cli_task_read_error(pipe->task, slot->read_error);
    else if (pipe->status == WHARF_CLI_GOOD && slot->is_lie &&
             !wharf_cli_output_is_full(pipe->task->output))
        pipe->status = wharf_cli_zstd_seek_tell(pipe->task, pipe->end);
    /* Of a range the rest need not be read: each frame was verified by itself. */
    return pipe->status == WHARF_CLI_GOOD && !wharf_cli_output_is_full(pipe->task->output);
}

/* ---- all together ---------------------------------------------------------------------- */

static void stop(void *context)
{
    struct zstd_pipe *pipe = context;

    wharf_cli_input_stop(pipe->task->input);
}

/* The slot that holds the most of what begins at `offset`, or NULL. */
static const struct slot *slot_with(const struct zstd_pipe *pipe, uint64_t offset)
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

/* Gives back all that was read from pipe->end on. */
static int unread(struct zstd_pipe *pipe)
{
    size_t nbytes = (size_t)(pipe->offset - pipe->end);
    uint8_t *bytes;
    const struct slot *slot;
    size_t done = 0;
    int r = -ENOMEM;

    if (pipe->task->input->is_seekable)
        return WHARF_CLI_GOOD;
    bytes = malloc(nbytes + 1);
    while (bytes && (slot = slot_with(pipe, pipe->end + done))) {
        size_t from = (size_t)(pipe->end + done - slot->in_offset);

        memcpy(bytes + done, slot->in + from, slot->in_nbytes - from);
        done += slot->in_nbytes - from;
    }
    if (bytes)
        r = wharf_cli_input_unread(pipe->task->input, pipe->end, bytes, done);
    free(bytes);
    return r < 0 ? wharf_cli_task_error(pipe->task, "cannot decode", r) : WHARF_CLI_GOOD;
}

static int run_slots(struct zstd_pipe *pipe)
{
    const struct wharf_cli_stages stages = {fill, work, drain, stop, pipe};
    int r = wharf_cli_pipeline_run(&stages, pipe->slots, sizeof(*pipe->slots), pipe->n_slots,
                                   pipe->task->options->n_threads);

    if (r < 0)
        return wharf_cli_task_error(pipe->task, "cannot decode", r);
    if (pipe->status != WHARF_CLI_GOOD)
        return pipe->status;
    wharf_cli_input_resume(pipe->task->input);
    return unread(pipe);
}

int wharf_cli_zstd_pipe(struct wharf_cli_task *task, struct wharf_cli_zstd_seek *seek,
                        uint64_t offset, uint64_t *ret_end, enum wharf_cli_zstd_then *ret_then)
{
    unsigned n_slots = wharf_cli_pipeline_n_slots(task->options->n_threads);
    struct zstd_pipe pipe = {
        .task = task,
        .seek = seek,
        .slots = calloc(n_slots, sizeof(*pipe.slots)),
        .n_slots = n_slots,
        .offset = offset,
        .end = offset,
    };
    int status;

    if (!pipe.slots)
        return wharf_cli_task_error(task, "cannot decode", -ENOMEM);
    status = run_slots(&pipe);
    for (unsigned i = 0; i < n_slots; i++) {
        free(pipe.slots[i].in);
        free(pipe.slots[i].out);
    }
    free(pipe.slots);
    *ret_end = pipe.end;
    *ret_then = pipe.is_broken                           ? WHARF_CLI_ZSTD_BAD
                : pipe.at_end && pipe.end == pipe.offset ? WHARF_CLI_ZSTD_END
                                                         : WHARF_CLI_ZSTD_OTHER;
    return status;
}
