/* SPDX-License-Identifier: Apache-2.0 */
/* runs_decode.c: decodes one long stream of ORC's run lengths in pieces. */
#include "clientlib/cli/runs_decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/load.h"
#include "clientlib/cli/pipeline.h"
#include "encoders/outcome.h"
#include "encoders/run_scan.h"

enum {
    /* A piece's output: as many bytes as a chunk of a container has, which all engines are good
     * at. */
    PIECE_OUT_NBYTES = 128 << 10,
    /* A slot's: enough that handing it on costs nothing beside decoding it. */
    SLOT_OUT_NBYTES = 1 << 20,
    /* Runs with more bytes than values are rare. */
    PIECE_IN_NBYTES = 256 << 10,
    SLOT_IN_NBYTES = SLOT_OUT_NBYTES + PIECE_IN_NBYTES + WHARF_RUN_SCAN_MOST_NBYTES,
};

struct slot {
    struct wharf_cli_load load;
    size_t in_offset; /* of the first piece in the stream */
    size_t out_offset;
    size_t in_nbytes;
    size_t out_nbytes;
};

struct runs_pipe {
    struct wharf_cli_task *task;
    const struct wharf_cli_runs *runs;
    unsigned unit_nbytes;

    /* The reader's. */
    struct wharf_run_place place;
    bool was_last;

    /* The writer's. */
    struct wharf_outcome *outcome;
    size_t out_nbytes;
    int status;
};

/* ---- cutting --------------------------------------------------------------------------- */

/* What the next piece takes of the stream and of the output. */
struct piece {
    size_t in_nbytes;
    size_t out_nbytes;
};

/*
 * The next piece.  The last one has what is left of a stream that is broken, or goes on where there
 * is no more room: it does not decode, for the reason that the whole stream does not.
 */
static struct piece next_piece(struct runs_pipe *pipe)
{
    const struct wharf_cli_runs *runs = pipe->runs;
    const struct wharf_run_limits limits = {PIECE_OUT_NBYTES / pipe->unit_nbytes, PIECE_IN_NBYTES};
    struct wharf_run_place from = pipe->place;
    uint64_t room = runs->out_avail / pipe->unit_nbytes - from.n_values;
    enum wharf_run_scan_state state =
        wharf_run_scan_pass(runs->codec, runs->in, runs->in_nbytes, &limits, &pipe->place);
    uint64_t n = pipe->place.n_values - from.n_values;
    bool is_stuck = pipe->place.in_offset == from.in_offset;

    if (is_stuck)
        pipe->place.in_offset = runs->in_nbytes;
    pipe->was_last = is_stuck || n > room || state == WHARF_RUN_SCAN_END;
    return (struct piece){
        .in_nbytes = pipe->place.in_offset - from.in_offset,
        .out_nbytes = (size_t)(n < room ? n : room) * pipe->unit_nbytes,
    };
}

static void add_piece(struct runs_pipe *pipe, struct slot *slot)
{
    const struct wharf_cli_runs *runs = pipe->runs;
    size_t in_offset = pipe->place.in_offset;
    size_t out_offset = (size_t)pipe->place.n_values * pipe->unit_nbytes;
    struct piece piece = next_piece(pipe);
    struct wharf_decode_job job = {
        .codec = runs->codec,
        .flags = WHARF_JOB_EXACT_OUTPUT,
        .setting.parameter = runs->parameter,
        .in = runs->in + in_offset,
        .in_nbytes = piece.in_nbytes,
        .out = runs->out + out_offset,
        .out_avail = piece.out_nbytes,
    };

    if (pipe->task->service->wharf) {
        /* Of a broken stream's rest no more than the run that does not end matters. */
        size_t avail = slot->load.in_avail - slot->in_nbytes;

        job.in_nbytes = piece.in_nbytes < avail ? piece.in_nbytes : avail;
        job.in = memcpy(slot->load.in + slot->in_nbytes, job.in, job.in_nbytes);
        job.out = slot->load.out + slot->out_nbytes;
    }
    wharf_cli_load_add(&slot->load, &job);
    slot->in_nbytes += job.in_nbytes;
    slot->out_nbytes += piece.out_nbytes;
}

/* Whether one more piece of the usual size fits. */
static bool has_room(const struct runs_pipe *pipe, const struct slot *slot)
{
    return slot->in_nbytes + PIECE_IN_NBYTES + WHARF_RUN_SCAN_MOST_NBYTES <= SLOT_IN_NBYTES &&
           slot->out_nbytes + PIECE_OUT_NBYTES <= SLOT_OUT_NBYTES &&
           wharf_cli_load_has_room(&slot->load, pipe->runs->codec, pipe->runs->parameter);
}

static bool fill(void *context, void *slot_memory)
{
    struct runs_pipe *pipe = context;
    struct slot *slot = slot_memory;

    if (pipe->was_last)
        return false;
    wharf_cli_load_clear(&slot->load);
    slot->in_offset = pipe->place.in_offset;
    slot->out_offset = (size_t)pipe->place.n_values * pipe->unit_nbytes;
    slot->in_nbytes = 0;
    slot->out_nbytes = 0;
    while (!pipe->was_last && has_room(pipe, slot))
        add_piece(pipe, slot);
    if (pipe->task->service->wharf)
        wharf_cli_load_send(pipe->task->service, &slot->load);
    return true;
}

/* ---- decoding and gathering ------------------------------------------------------------ */

static void work(void *context, void *slot_memory, unsigned worker)
{
    const struct runs_pipe *pipe = context;
    struct slot *slot = slot_memory;

    (void)worker;
    wharf_cli_load_run(pipe->task->service, &slot->load);
}

/* The outcome of a stream whose first bad piece is in this slot. */
static void fail(struct runs_pipe *pipe, const struct slot *slot)
{
    uint64_t bit_offset = 8 * (uint64_t)slot->in_offset;

    for (unsigned i = 0; i < slot->load.n_good; i++)
        bit_offset += 8 * (uint64_t)slot->load.jobs[i].in_nbytes;
    wharf_outcome_fail(pipe->outcome, slot->load.outcome.result, slot->load.outcome.reason,
                       bit_offset + slot->load.outcome.bit_offset);
}

static bool drain(void *context, void *slot_memory)
{
    struct runs_pipe *pipe = context;
    struct slot *slot = slot_memory;

    pipe->status = wharf_cli_load_await(pipe->task, &slot->load);
    if (pipe->status != WHARF_CLI_GOOD)
        return false;
    if (slot->load.n_good < slot->load.n_jobs) {
        fail(pipe, slot);
        return false;
    }
    if (pipe->task->service->wharf && slot->out_nbytes)
        memcpy(pipe->runs->out + slot->out_offset, slot->load.out, slot->out_nbytes);
    pipe->out_nbytes += slot->out_nbytes;
    return true;
}

/* The scan waits for nothing. */
static void stop(void *context)
{
    (void)context;
}

static void settle(struct runs_pipe *pipe)
{
    const struct wharf_cli_runs *runs = pipe->runs;

    if (pipe->outcome->result != WHARF_OK)
        return;
    wharf_outcome_ok(pipe->outcome, runs->in_nbytes, pipe->out_nbytes);
    if (runs->is_exact && pipe->out_nbytes != runs->out_avail)
        wharf_outcome_fail(pipe->outcome, WHARF_OUTPUT_SHORT, WHARF_REASON_OUTPUT_MISSING,
                           8 * (uint64_t)runs->in_nbytes);
}

static int run_slots(struct runs_pipe *pipe, struct slot *slots, unsigned n_slots)
{
    struct wharf_cli_stages stages = {fill, work, drain, stop, pipe};
    unsigned n_workers = pipe->task->options->n_threads;
    int r = wharf_cli_loads_init(pipe->task->service, slots, sizeof(*slots), &n_slots,
                                 SLOT_IN_NBYTES, SLOT_OUT_NBYTES);

    if (pipe->task->service->wharf) {
        stages.work = NULL;
        n_workers = 0;
    }
    if (r < 0) {
        pipe->status = wharf_cli_loads_say_error(pipe->task, "cannot decode", r);
    } else {
        r = wharf_cli_pipeline_run(&stages, slots, sizeof(*slots), n_slots, n_workers);
        if (r < 0)
            pipe->status = wharf_cli_task_error(pipe->task, "cannot decode", r);
    }
    wharf_cli_loads_deinit(pipe->task->service, slots, sizeof(*slots), n_slots);
    return pipe->status;
}

int wharf_cli_runs_decode(struct wharf_cli_task *task, const struct wharf_cli_runs *runs,
                          struct wharf_outcome *ret_outcome)
{
    unsigned n_slots = wharf_cli_pipeline_n_slots(task->options->n_threads);
    struct slot *slots = calloc(n_slots, sizeof(*slots));
    struct runs_pipe pipe = {
        .task = task,
        .runs = runs,
        .unit_nbytes = wharf_codec_unit_nbytes(wharf_codec_find(runs->codec)->ops, runs->parameter),
        .outcome = ret_outcome,
    };
    int status;

    if (!slots)
        return wharf_cli_task_error(task, "cannot decode", -ENOMEM);
    wharf_outcome_ok(ret_outcome, 0, 0);
    status = run_slots(&pipe, slots, n_slots);
    free(slots);
    if (status == WHARF_CLI_GOOD)
        settle(&pipe);
    return status;
}
