/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/container_pipe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/number.h"
#include "clientlib/cli/pipeline.h"
#include "encoders/container_read.h"

enum {
    /* Output that a slot gathers: enough that handing a slot on costs nothing beside decoding it
     * (about 1 ms), little enough to stay in a core's cache. */
    SLOT_OUT_NBYTES = 1 << 20,
    SLOT_MAX_CHUNKS = 128,
};

struct buffer {
    uint8_t *bytes;
    size_t nbytes;
    size_t avail;
};

struct slot {
    struct wharf_container_chunk chunks[SLOT_MAX_CHUNKS];
    unsigned n_chunks;
    struct buffer payload; /* theirs, each at a multiple of 16 */
    struct buffer out;

    /* How the reading went on behind them. */
    bool is_last;
    int read_error;                     /* or 0 */
    struct wharf_container_fault fault; /* or WHARF_OK */
    uint64_t in_offset;
    uint64_t out_end; /* where the output stands behind all chunks up to here */

    /* Written by the worker: how many chunks were good, and what was wrong with the next. */
    unsigned n_good;
    struct wharf_container_fault chunk_fault;
};

struct container_pipe {
    struct wharf_cli_task *task;
    struct wharf_container_source source;
    struct wharf_container_reader reader;
    struct wharf_container_item item; /* read, and in no slot yet */
    bool has_item;
    bool was_last;
    uint64_t out_end; /* the last chunk's */
    uint64_t start;   /* of the range */
    uint64_t end;     /* UINT64_MAX: of the output */
    int status;
};

bool wharf_cli_is_container(const uint8_t *bytes, size_t nbytes)
{
    return nbytes >= WHARF_CONTAINER_MAGIC_NBYTES &&
           memcmp(bytes, WHARF_CONTAINER_MAGIC, WHARF_CONTAINER_MAGIC_NBYTES) == 0;
}

static int64_t read_input(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    return wharf_cli_input_read_at(context, offset, buf, nbytes);
}

/* ---- reading --------------------------------------------------------------------------- */

/* Makes room for nbytes more.  0 or -ENOMEM. */
static int reserve(struct buffer *buffer, size_t nbytes)
{
    size_t avail = buffer->nbytes + nbytes;
    uint8_t *bytes;

    if (avail <= buffer->avail)
        return 0;
    if (avail < SLOT_OUT_NBYTES)
        avail = SLOT_OUT_NBYTES; /* costs nothing while it is not touched */
    bytes = realloc(buffer->bytes, avail);
    if (!bytes)
        return -ENOMEM;
    buffer->bytes = bytes;
    buffer->avail = avail;
    return 0;
}

static bool has_room(const struct slot *slot, const struct wharf_container_chunk *chunk)
{
    if (slot->n_chunks == 0)
        return true;
    return slot->n_chunks < SLOT_MAX_CHUNKS &&
           slot->out.nbytes + chunk->raw_nbytes <= SLOT_OUT_NBYTES;
}

static void end_reading(struct container_pipe *pipe, struct slot *slot, int read_error,
                        const struct wharf_container_fault *fault)
{
    pipe->was_last = true;
    slot->is_last = true;
    slot->read_error = read_error;
    if (fault)
        slot->fault = *fault;
}

/* Takes the chunk in pipe->item into the slot. */
static void take_chunk(struct container_pipe *pipe, struct slot *slot)
{
    const struct wharf_container_chunk *chunk = &pipe->item.chunk;
    struct wharf_container_fault fault;
    int r = reserve(&slot->payload, chunk->payload_avail);

    if (r == 0)
        r = reserve(&slot->out, chunk->raw_nbytes);
    if (r == 0)
        r = wharf_container_read_payload(&pipe->source, chunk,
                                         slot->payload.bytes + slot->payload.nbytes, &fault);
    if (r < 0 || fault.result != WHARF_OK) {
        end_reading(pipe, slot, r, r < 0 ? NULL : &fault);
        return;
    }
    slot->payload.nbytes += chunk->payload_avail;
    slot->out.nbytes += chunk->raw_nbytes;
    slot->in_offset = chunk->payload_offset + chunk->payload_avail;
    slot->chunks[slot->n_chunks++] = *chunk;
    pipe->has_item = false;
}

/* Chunks before the range are passed over, the first one behind it is the end. */
static void look_at_chunk(struct container_pipe *pipe, struct slot *slot)
{
    const struct wharf_container_chunk *chunk = &pipe->item.chunk;

    pipe->has_item = chunk->out_offset + chunk->raw_nbytes > pipe->start;
    if (pipe->has_item && chunk->out_offset >= pipe->end)
        end_reading(pipe, slot, 0, NULL);
    else
        pipe->out_end = chunk->out_offset + chunk->raw_nbytes;
}

static void read_item(struct container_pipe *pipe, struct slot *slot)
{
    int r = wharf_container_next(&pipe->reader, &pipe->item);

    if (r < 0)
        end_reading(pipe, slot, r, NULL);
    else if (pipe->item.kind == WHARF_CONTAINER_CHUNK)
        look_at_chunk(pipe, slot);
    else if (pipe->item.kind == WHARF_CONTAINER_FAULT)
        end_reading(pipe, slot, 0, &pipe->item.fault);
    else {
        end_reading(pipe, slot, 0, NULL);
        slot->in_offset = pipe->reader.offset;
    }
}

static bool fill(void *context, void *slot_memory)
{
    struct container_pipe *pipe = context;
    struct slot *slot = slot_memory;

    if (pipe->was_last)
        return false;
    slot->n_chunks = 0;
    slot->payload.nbytes = 0;
    slot->out.nbytes = 0;
    while (!slot->is_last) {
        if (!pipe->has_item)
            read_item(pipe, slot);
        if (!pipe->has_item || slot->is_last)
            continue;
        if (!has_room(slot, &pipe->item.chunk))
            break;
        take_chunk(pipe, slot);
    }
    slot->out_end = pipe->out_end;
    return true;
}

/* ---- decoding -------------------------------------------------------------------------- */

static void work(void *context, void *slot_memory, unsigned worker)
{
    const struct container_pipe *pipe = context;
    int reference = pipe->task->options->engine == WHARF_ENGINE_REFERENCE;
    struct slot *slot = slot_memory;
    const uint8_t *payload = slot->payload.bytes;
    uint8_t *out = slot->out.bytes;

    (void)worker;
    for (slot->n_good = 0; slot->n_good < slot->n_chunks; slot->n_good++) {
        const struct wharf_container_chunk *chunk = &slot->chunks[slot->n_good];

        wharf_container_decode(chunk, reference, payload, out, &slot->chunk_fault);
        if (slot->chunk_fault.result != WHARF_OK)
            return;
        payload += chunk->payload_avail;
        out += chunk->raw_nbytes;
    }
}

/* ---- writing --------------------------------------------------------------------------- */

static int tell_fault(struct container_pipe *pipe, const struct wharf_container_fault *from)
{
    struct wharf_cli_fault fault = {
        .result = from->result,
        .reason = from->reason,
        .bit_offset = 8 * from->file_offset + from->bit_offset,
        .chunk = from->chunk,
    };

    return wharf_cli_task_fault(pipe->task, &fault, 0);
}

static int tell_short(struct container_pipe *pipe, uint64_t out_nbytes)
{
    wharf_cli_say("%s: the range is not within it: it unpacks to %" PRIu64 " bytes",
                  pipe->task->input->name, out_nbytes);
    wharf_cli_tally_outcome(pipe->task->tally, pipe->task->input->name, WHARF_BAD_REQUEST,
                            WHARF_REASON_REQUEST_RANGE, 0);
    return WHARF_CLI_USAGE;
}

/* Writes the part of the good chunks that lies in the range. */
static int write_chunks(struct container_pipe *pipe, const struct slot *slot)
{
    uint64_t first;
    uint64_t behind;
    uint64_t from;
    uint64_t to;
    int r;

    if (slot->n_good == 0)
        return WHARF_CLI_GOOD;
    first = slot->chunks[0].out_offset;
    behind = slot->chunks[slot->n_good - 1].out_offset + slot->chunks[slot->n_good - 1].raw_nbytes;
    from = first < pipe->start ? pipe->start : first;
    to = behind > pipe->end ? pipe->end : behind;
    if (from >= to)
        return WHARF_CLI_GOOD;
    r = wharf_cli_output_write(pipe->task->output, slot->out.bytes + (from - first), to - from);
    if (r < 0)
        return wharf_cli_task_write_error(pipe->task, r);
    wharf_cli_task_move(pipe->task, slot->in_offset, to - from);
    return WHARF_CLI_GOOD;
}

static void count(struct container_pipe *pipe, const struct slot *slot)
{
    struct wharf_cli_tally *tally = pipe->task->tally;

    for (unsigned i = 0; i < slot->n_good; i++)
        tally->in_nbytes +=
            WHARF_CONTAINER_FRAME_HEADER_NBYTES + (uint64_t)slot->chunks[i].payload_avail;
    tally->n_chunks += slot->n_good;
}

static int tell_end(struct container_pipe *pipe, const struct slot *slot)
{
    if (slot->read_error)
        return wharf_cli_task_read_error(pipe->task, slot->read_error);
    if (slot->fault.result != WHARF_OK)
        return tell_fault(pipe, &slot->fault);
    if (slot->out_end < pipe->start || (pipe->end != UINT64_MAX && slot->out_end < pipe->end))
        return tell_short(pipe, slot->out_end);
    return WHARF_CLI_GOOD;
}

static bool drain(void *context, void *slot_memory)
{
    struct container_pipe *pipe = context;
    struct slot *slot = slot_memory;

    pipe->status = write_chunks(pipe, slot);
    count(pipe, slot);
    if (pipe->status == WHARF_CLI_GOOD && slot->n_good < slot->n_chunks)
        pipe->status = tell_fault(pipe, &slot->chunk_fault);
    else if (pipe->status == WHARF_CLI_GOOD && slot->is_last)
        pipe->status = tell_end(pipe, slot);
    return pipe->status == WHARF_CLI_GOOD;
}

/* ---- all together ---------------------------------------------------------------------- */

static void stop(void *context)
{
    struct container_pipe *pipe = context;

    wharf_cli_input_stop(pipe->task->input);
}

static int run_slots(struct container_pipe *pipe)
{
    const struct wharf_cli_stages stages = {fill, work, drain, stop, pipe};
    unsigned n_slots = wharf_cli_pipeline_n_slots(pipe->task->options->n_threads);
    struct slot *slots = calloc(n_slots, sizeof(*slots));
    int r = -ENOMEM;

    if (slots)
        r = wharf_cli_pipeline_run(&stages, slots, sizeof(*slots), n_slots,
                                   pipe->task->options->n_threads);
    for (unsigned i = 0; slots && i < n_slots; i++) {
        free(slots[i].payload.bytes);
        free(slots[i].out.bytes);
    }
    free(slots);
    if (r < 0)
        return wharf_cli_task_error(pipe->task, "cannot unpack", r);
    return pipe->status;
}

/* Looks at what the end of the file says of its size: a range outside it needs no reading. */
static int check_range(struct container_pipe *pipe)
{
    struct wharf_container_totals totals;
    struct wharf_container_fault fault;
    int r = wharf_container_read_totals(&pipe->source, &totals, &fault);

    if (r < 0)
        return wharf_cli_task_read_error(pipe->task, r);
    if (fault.result != WHARF_OK)
        return WHARF_CLI_GOOD; /* seek will say so */
    if (pipe->start > totals.raw_nbytes ||
        (pipe->end != UINT64_MAX && pipe->end > totals.raw_nbytes))
        return tell_short(pipe, totals.raw_nbytes);
    return WHARF_CLI_GOOD;
}

/* Goes to where the range begins.  A damaged index is worth a remark, no more. */
static int seek(struct container_pipe *pipe)
{
    struct wharf_container_fault fault;
    int r = wharf_container_seek(&pipe->reader, pipe->start, &fault);

    if (r < 0)
        return wharf_cli_task_read_error(pipe->task, r);
    if (fault.result != WHARF_OK && !pipe->task->options->quiet)
        wharf_cli_say("%s: %s at byte %" PRIu64 ": looking at every chunk's header instead",
                      pipe->task->input->name, wharf_reason_string(fault.reason),
                      fault.file_offset);
    pipe->out_end = pipe->start;
    return WHARF_CLI_GOOD;
}

static int prepare_range(struct container_pipe *pipe)
{
    int status;

    /* From a pipe, chunks before the range are read and passed over. */
    if (!pipe->task->input->is_seekable)
        return WHARF_CLI_GOOD;
    status = check_range(pipe);
    return status == WHARF_CLI_GOOD ? seek(pipe) : status;
}

int wharf_cli_container_pipe(struct wharf_cli_task *task, struct wharf_cli_range range)
{
    struct container_pipe pipe = {
        .task = task,
        .source = {read_input, task->input, task->input->nbytes},
        .start = range.offset,
        .end = range.nbytes > UINT64_MAX - range.offset ? UINT64_MAX : range.offset + range.nbytes,
    };
    int status = WHARF_CLI_GOOD;

    wharf_container_reader_init(&pipe.reader, &pipe.source);
    if (range.offset || range.nbytes != UINT64_MAX)
        status = prepare_range(&pipe);
    return status == WHARF_CLI_GOOD ? run_slots(&pipe) : status;
}
