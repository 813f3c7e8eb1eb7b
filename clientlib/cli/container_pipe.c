/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_pipe.c: unpacks a wharf container, in a pipeline of slots (pipeline.h).
 *
 * The reader fills a slot with chunks, workers or the daemon decode them, and the writer writes
 * slots in order.  Three cases need more:
 * - A chunk larger than a slot ends the pipeline, which starts again with larger slots.
 * - A part of a range that begins or ends within a chunk of lines can be read without the rest.
 * - With files that were handed over, the daemon reads and writes them itself.  If it fails for a
 *   reason other than data, the slot is decoded again through memory.
 */
#include "clientlib/cli/container_pipe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "clientlib/cli/handover.h"
#include "clientlib/cli/load.h"
#include "clientlib/cli/pipeline.h"
#include "encoders/container_read.h"
#include "encoders/line/line.h"

enum {
    /* Output that a slot holds: enough that the cost of passing a slot on is small beside decoding
     * it (about 1 ms), and little enough for a core's cache. */
    SLOT_OUT_NBYTES = 1 << 20,
    SLOT_MAX_CHUNKS = 128,
};

struct slot {
    struct wharf_cli_load load; /* payloads, padded as in the file, and their output */
    struct wharf_container_chunk chunks[SLOT_MAX_CHUNKS];
    size_t payload_nbytes;
    size_t out_nbytes;
    bool is_written; /* the daemon writes the output, to a file that was handed over */

    /* How reading continued after these chunks. */
    bool is_last;
    int read_error;                     /* or 0 */
    struct wharf_container_fault fault; /* or WHARF_OK */
    uint64_t in_offset;
    uint64_t out_end; /* offset of the output after all chunks so far */
};

struct container_pipe {
    struct wharf_cli_task *task;
    struct wharf_container_source source;
    struct wharf_container_reader reader;
    struct wharf_container_item item; /* read, but in no slot yet */
    bool has_item;
    bool was_last;
    bool is_too_large; /* the present chunk does not fit a slot */
    size_t slot_out_nbytes;
    struct wharf_cli_handover files;
    uint64_t out_begin; /* offset of this input's output */
    uint64_t out_end;   /* end of the last chunk's output */
    uint64_t start;     /* start of the range */
    uint64_t end;       /* end of the range; UINT64_MAX: of the output */
    bool is_direct;     /* read only the lines that the range needs of a chunk */
    uint64_t n_direct;
    int status;
};

/* Reads the input.  If it was handed over, only headers and padding are read here. */
static int64_t read_input(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    struct container_pipe *pipe = context;

    if (wharf_cli_handover_is_on(&pipe->files))
        return wharf_cli_input_read_bare(pipe->task->input, offset, buf, nbytes);
    return wharf_cli_input_read_at(pipe->task->input, offset, buf, nbytes);
}

/* ---- reading --------------------------------------------------------------------------- */

static bool has_room(const struct slot *slot, const struct wharf_container_chunk *chunk)
{
    const struct wharf_cli_load *load = &slot->load;

    return load->n_jobs < SLOT_MAX_CHUNKS &&
           wharf_cli_load_has_room(load, chunk->codec, chunk->parameter) &&
           slot->payload_nbytes + chunk->payload_avail <= load->in_avail &&
           slot->out_nbytes + chunk->raw_nbytes <= load->out_avail;
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

/* Finds the payload: in the handed-over file, or in the slot, into which it is read. */
static int place_payload(struct container_pipe *pipe, struct slot *slot,
                         const struct wharf_container_chunk *chunk, const uint8_t **ret_payload,
                         struct wharf_container_fault *ret_fault)
{
    uint8_t *payload = slot->load.in + slot->payload_nbytes;

    *ret_payload = slot->load.is_in_files ? pipe->files.in + chunk->payload_offset : payload;
    return slot->load.is_in_files
               ? wharf_container_read_padding(&pipe->source, chunk, ret_fault)
               : wharf_container_read_payload(&pipe->source, chunk, payload, ret_fault);
}

/* Adds the chunk in pipe->item to the slot. */
static void take_chunk(struct container_pipe *pipe, struct slot *slot)
{
    const struct wharf_container_chunk *chunk = &pipe->item.chunk;
    uint8_t *out =
        slot->is_written ? pipe->files.out + chunk->out_offset : slot->load.out + slot->out_nbytes;
    const uint8_t *payload;
    struct wharf_container_fault fault;
    struct wharf_decode_job job;
    int r = place_payload(pipe, slot, chunk, &payload, &fault);

    if (r < 0 || fault.result != WHARF_OK) {
        end_reading(pipe, slot, r, r < 0 ? NULL : &fault);
        return;
    }
    job = wharf_container_chunk_job(chunk, payload, out);
    slot->chunks[slot->load.n_jobs] = *chunk;
    wharf_cli_load_add(&slot->load, &job);
    slot->payload_nbytes += chunk->payload_avail;
    slot->out_nbytes += chunk->raw_nbytes;
    slot->in_offset = chunk->payload_offset + chunk->payload_avail;
    pipe->has_item = false;
    /* What follows the range is not read. */
    if (pipe->out_end >= pipe->end)
        end_reading(pipe, slot, 0, NULL);
}

/* ---- lines of a chunk ---------------------------------------------------------------------- */

/* The part of the chunk that is in the range. */
static uint64_t wanted_first(const struct container_pipe *pipe,
                             const struct wharf_container_chunk *chunk)
{
    return pipe->start > chunk->out_offset ? pipe->start - chunk->out_offset : 0;
}

static uint64_t wanted_end(const struct container_pipe *pipe,
                           const struct wharf_container_chunk *chunk)
{
    uint64_t left = pipe->end - chunk->out_offset;

    return left < chunk->raw_nbytes ? left : chunk->raw_nbytes;
}

static bool is_direct(const struct container_pipe *pipe, const struct wharf_container_chunk *chunk)
{
    return pipe->is_direct && chunk->ops->decode_range &&
           (wanted_first(pipe, chunk) > 0 || wanted_end(pipe, chunk) < chunk->raw_nbytes);
}

/* Reads the parts of the payload that hold the lines.  Returns their size, or -errno. */
static int64_t read_parts(struct container_pipe *pipe, const struct wharf_container_chunk *chunk,
                          uint64_t first, uint64_t nbytes, uint8_t *payload)
{
    struct wharf_line_parts parts = {chunk->codec, chunk->payload_nbytes, first, nbytes, 0};
    uint64_t offset, part_nbytes;
    int64_t taken = 0;

    while (wharf_line_parts_next(&parts, payload, &offset, &part_nbytes)) {
        int64_t n = wharf_cli_input_read_bare(pipe->task->input, chunk->payload_offset + offset,
                                              payload + offset, part_nbytes);

        if (n < 0)
            return n;
        if ((uint64_t)n < part_nbytes)
            return -EIO; /* the file became shorter */
        taken += n;
    }
    return taken;
}

/* Decodes the lines at once; the slot gets an empty job for the chunk. */
static void take_lines(struct container_pipe *pipe, struct slot *slot)
{
    struct wharf_container_chunk *chunk = &slot->chunks[slot->load.n_jobs];
    uint8_t *payload = slot->load.in + slot->payload_nbytes;
    uint8_t *out = slot->load.out + slot->out_nbytes;
    struct wharf_decode_job nothing = {.codec = WHARF_CODEC_STORED, .in = payload, .out = out};
    struct wharf_outcome outcome;

    *chunk = pipe->item.chunk;
    uint64_t first = wanted_first(pipe, chunk), nbytes = wanted_end(pipe, chunk) - first;
    int64_t taken = read_parts(pipe, chunk, first, nbytes, payload);
    if (taken < 0) {
        end_reading(pipe, slot, (int)taken, NULL);
        return;
    }
    const struct wharf_decode_job job = {
        .codec = chunk->codec,
        .is_range = true,
        .setting = {.parameter = chunk->parameter},
        .first = first,
        .in = payload,
        .in_nbytes = chunk->payload_nbytes,
        .out = out,
        .out_avail = nbytes,
    };
    wharf_decode_job_run(&job, pipe->task->options->engine == WHARF_ENGINE_REFERENCE, &outcome);
    if (outcome.result != WHARF_OK) {
        struct wharf_container_fault fault = wharf_container_chunk_fault(chunk, &outcome);
        end_reading(pipe, slot, 0, &fault);
        return;
    }
    wharf_cli_load_add(&slot->load, &nothing);
    slot->payload_nbytes += chunk->payload_avail;
    slot->out_nbytes += nbytes;
    slot->in_offset = chunk->payload_offset + chunk->payload_avail;
    chunk->out_offset += first;
    chunk->raw_nbytes = (uint32_t)nbytes;
    chunk->payload_avail = (uint32_t)taken;
    pipe->has_item = false;
    pipe->n_direct++;
    if (pipe->out_end >= pipe->end)
        end_reading(pipe, slot, 0, NULL);
}

/* Skips a chunk outside the range. */
static void pass_chunk(struct container_pipe *pipe, struct slot *slot)
{
    struct wharf_container_fault fault;
    int r = wharf_container_pass_payload(&pipe->source, &pipe->item.chunk, &fault);

    if (r < 0 || fault.result != WHARF_OK)
        end_reading(pipe, slot, r, r < 0 ? NULL : &fault);
}

/* Skips chunks before the range.  A chunk after it occurs only if the range is empty. */
static void look_at_chunk(struct container_pipe *pipe, struct slot *slot)
{
    const struct wharf_container_chunk *chunk = &pipe->item.chunk;
    uint64_t out_end = chunk->out_offset + chunk->raw_nbytes;

    pipe->has_item = out_end > pipe->start && chunk->out_offset < pipe->end;
    if (!pipe->has_item)
        pass_chunk(pipe, slot);
    if (chunk->out_offset < pipe->end)
        pipe->out_end = out_end;
    else if (!slot->is_last)
        end_reading(pipe, slot, 0, NULL);
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

    if (pipe->was_last || pipe->is_too_large)
        return false;
    wharf_cli_load_clear(&slot->load);
    slot->payload_nbytes = 0;
    slot->out_nbytes = 0;
    slot->load.is_in_files = wharf_cli_handover_is_on(&pipe->files);
    slot->is_written = slot->load.is_in_files && pipe->files.out;
    while (!slot->is_last) {
        if (!pipe->has_item)
            read_item(pipe, slot);
        if (!pipe->has_item || slot->is_last)
            continue;
        if (!has_room(slot, &pipe->item.chunk))
            break;
        if (is_direct(pipe, &pipe->item.chunk))
            take_lines(pipe, slot);
        else
            take_chunk(pipe, slot);
    }
    slot->out_end = pipe->out_end;
    pipe->is_too_large = pipe->has_item && pipe->item.chunk.raw_nbytes > pipe->slot_out_nbytes;
    if (pipe->task->service->wharf)
        wharf_cli_load_send(pipe->task->service, &slot->load);
    return true;
}

/* ---- decoding -------------------------------------------------------------------------- */

static void work(void *context, void *slot_memory, unsigned worker)
{
    const struct container_pipe *pipe = context;
    struct slot *slot = slot_memory;

    (void)worker;
    wharf_cli_load_run(pipe->task->service, &slot->load);
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

/* Writes the part of the good chunks that is in the range. */
static int write_chunks(struct container_pipe *pipe, const struct slot *slot)
{
    uint64_t first;
    uint64_t behind;
    uint64_t from;
    uint64_t to;
    int r;

    if (slot->load.n_good == 0)
        return WHARF_CLI_GOOD;
    first = slot->chunks[0].out_offset;
    behind = slot->chunks[slot->load.n_good - 1].out_offset +
             slot->chunks[slot->load.n_good - 1].raw_nbytes;
    from = first < pipe->start ? pipe->start : first;
    to = behind > pipe->end ? pipe->end : behind;
    if (from >= to)
        return WHARF_CLI_GOOD;
    if (slot->is_written)
        wharf_cli_output_move(pipe->task->output, to - from);
    r = slot->is_written ? 0
                         : wharf_cli_output_write(pipe->task->output,
                                                  slot->load.out + (from - first), to - from);
    if (r < 0)
        return wharf_cli_task_write_error(pipe->task, r);
    wharf_cli_task_move(pipe->task, slot->in_offset, to - from);
    return WHARF_CLI_GOOD;
}

static void count(struct container_pipe *pipe, const struct slot *slot)
{
    struct wharf_cli_tally *tally = pipe->task->tally;

    for (unsigned i = 0; i < slot->load.n_good; i++)
        tally->in_nbytes +=
            WHARF_CONTAINER_FRAME_HEADER_NBYTES + (uint64_t)slot->chunks[i].payload_avail;
    tally->n_chunks += slot->load.n_good;
}

static int tell_end(struct container_pipe *pipe, const struct slot *slot)
{
    if (slot->read_error)
        return wharf_cli_task_read_error(pipe->task, slot->read_error);
    if (slot->fault.result != WHARF_OK)
        return tell_fault(pipe, &slot->fault);
    if (slot->out_end < pipe->start || (pipe->end != UINT64_MAX && slot->out_end < pipe->end))
        return wharf_cli_task_range_outside(pipe->task, slot->out_end);
    return WHARF_CLI_GOOD;
}

/* Reports the error of the chunk after the good ones. */
static int tell_chunk_fault(struct container_pipe *pipe, const struct slot *slot)
{
    struct wharf_container_fault fault =
        wharf_container_chunk_fault(&slot->chunks[slot->load.n_good], &slot->load.outcome);

    return tell_fault(pipe, &fault);
}

/* ---- again through memory ------------------------------------------------------------------ */

/* Whether a slot in files has failed for a reason other than data. */
static bool has_failed_in_files(const struct slot *slot)
{
    return slot->load.is_in_files && slot->load.n_good < slot->load.n_jobs &&
           !wharf_cli_is_verdict(slot->load.outcome.result);
}

static int64_t read_again(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    const struct container_pipe *pipe = context;

    return wharf_cli_input_read_bare(pipe->task->input, offset, buf, nbytes);
}

/* Reads the payloads of the slot's n chunks, for which there is room, into memory.  Stops at one
 * that can no longer be read, which becomes the slot's error. */
static void take_again(struct container_pipe *pipe, struct slot *slot, unsigned n)
{
    const struct wharf_container_source source = {read_again, pipe, pipe->source.nbytes};

    slot->payload_nbytes = slot->out_nbytes = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct wharf_container_chunk *chunk = &slot->chunks[i];
        uint8_t *payload = slot->load.in + slot->payload_nbytes;
        struct wharf_container_fault fault = {.result = WHARF_OK};
        int r = wharf_container_read_payload(&source, chunk, payload, &fault);
        if (r < 0 || fault.result != WHARF_OK) {
            slot->is_last = true;
            slot->read_error = r;
            slot->fault = fault;
            return;
        }
        struct wharf_decode_job job =
            wharf_container_chunk_job(chunk, payload, slot->load.out + slot->out_nbytes);
        wharf_cli_load_add(&slot->load, &job);
        slot->payload_nbytes += chunk->payload_avail;
        slot->out_nbytes += chunk->raw_nbytes;
    }
}

/* Decodes the slot again as if the files had not been handed over. */
static int do_again(struct container_pipe *pipe, struct slot *slot)
{
    unsigned n = slot->load.n_jobs;

    wharf_cli_handover_stop(&pipe->files);
    wharf_cli_load_clear(&slot->load);
    slot->is_written = false;
    take_again(pipe, slot, n);
    wharf_cli_load_send(pipe->task->service, &slot->load);
    return wharf_cli_load_await(pipe->task, &slot->load);
}

static bool drain(void *context, void *slot_memory)
{
    struct container_pipe *pipe = context;
    struct slot *slot = slot_memory;

    pipe->status = wharf_cli_load_await(pipe->task, &slot->load);
    if (pipe->status == WHARF_CLI_GOOD && has_failed_in_files(slot))
        pipe->status = do_again(pipe, slot);
    if (pipe->status != WHARF_CLI_GOOD)
        return false;
    pipe->status = write_chunks(pipe, slot);
    count(pipe, slot);
    if (pipe->status == WHARF_CLI_GOOD && slot->load.n_good < slot->load.n_jobs)
        pipe->status = tell_chunk_fault(pipe, slot);
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

/* Hands the files over.  Not if lines are read, since this process reads them itself. */
static void hand_over(struct container_pipe *pipe)
{
    bool is_whole = pipe->start == 0 && pipe->end == UINT64_MAX;

    if (!pipe->is_direct)
        wharf_cli_handover_begin(&pipe->files, pipe->task, is_whole ? pipe->out_begin : UINT64_MAX);
}

/* Runs until the end, or until a chunk does not fit a slot. */
static int run_slots(struct container_pipe *pipe, struct slot *slots, unsigned n_slots)
{
    const struct wharf_cli_options *options = pipe->task->options;
    struct wharf_cli_stages stages = {fill, work, drain, stop, pipe};
    unsigned n_workers = options->n_threads;
    int r = wharf_cli_loads_init(pipe->task->service, slots, sizeof(*slots), &n_slots,
                                 pipe->slot_out_nbytes + SLOT_MAX_CHUNKS * WHARF_CONTAINER_ALIGN,
                                 pipe->slot_out_nbytes);

    if (pipe->task->service->wharf) {
        stages.work = NULL;
        n_workers = 0;
    }
    if (r < 0) {
        pipe->status = wharf_cli_loads_say_error(pipe->task, "cannot unpack", r);
    } else {
        hand_over(pipe);
        r = wharf_cli_pipeline_run(&stages, slots, sizeof(*slots), n_slots, n_workers);
        if (r < 0)
            pipe->status = wharf_cli_task_error(pipe->task, "cannot unpack", r);
    }
    wharf_cli_loads_deinit(pipe->task->service, slots, sizeof(*slots), n_slots);
    wharf_cli_handover_end(&pipe->files);
    return pipe->status;
}

/* The size that the member announces, which none of its chunks exceeds. */
static size_t largest_chunk(const struct container_pipe *pipe)
{
    uint32_t announced = pipe->reader.chunk_max_nbytes;
    uint32_t found = pipe->item.chunk.raw_nbytes;

    return announced > found ? announced : found;
}

static int run_all(struct container_pipe *pipe)
{
    unsigned n_slots = wharf_cli_pipeline_n_slots(pipe->task->options->n_threads);
    int status = WHARF_CLI_GOOD;

    pipe->slot_out_nbytes = SLOT_OUT_NBYTES;
    do {
        struct slot *slots = calloc(n_slots, sizeof(*slots));
        if (!slots)
            return wharf_cli_task_error(pipe->task, "cannot unpack", -ENOMEM);
        if (pipe->is_too_large)
            pipe->slot_out_nbytes = largest_chunk(pipe);
        pipe->is_too_large = false;
        status = run_slots(pipe, slots, n_slots);
        free(slots);
    } while (status == WHARF_CLI_GOOD && pipe->is_too_large);
    return status;
}

/* Checks the range against the size at the end of the file, so that a bad one fails without
 * reading. */
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
        return wharf_cli_task_range_outside(pipe->task, totals.raw_nbytes);
    return WHARF_CLI_GOOD;
}

/* Moves to the beginning of the range.  A damaged index causes only a warning. */
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

    /* From a pipe, chunks before the range are read and skipped. */
    if (!pipe->task->input->is_seekable)
        return WHARF_CLI_GOOD;
    status = check_range(pipe);
    return status == WHARF_CLI_GOOD ? seek(pipe) : status;
}

/* Warns that lines alone are not verified: a chunk's checksum covers all of its output. */
static void tell_unverified(struct wharf_cli_task *task)
{
    task->tally->is_unverified = true;
    if (!task->options->quiet)
        wharf_cli_say("%s: by --direct: chunks that are partly in the range are not verified",
                      task->input->name);
}

int wharf_cli_container_pipe(struct wharf_cli_task *task, struct wharf_cli_range range)
{
    struct container_pipe pipe = {
        .task = task,
        .source = {read_input, &pipe, task->input->nbytes},
        .files.service = task->service,
        .out_begin = task->output->nbytes,
        .start = range.offset,
        .end = range.nbytes > UINT64_MAX - range.offset ? UINT64_MAX : range.offset + range.nbytes,
        .is_direct = range.is_direct && task->input->is_seekable,
    };
    int status = WHARF_CLI_GOOD;

    wharf_container_reader_init(&pipe.reader, &pipe.source);
    if (range.offset || range.nbytes != UINT64_MAX)
        status = prepare_range(&pipe);
    if (status == WHARF_CLI_GOOD)
        status = run_all(&pipe);
    if (pipe.n_direct)
        tell_unverified(task);
    return status;
}
