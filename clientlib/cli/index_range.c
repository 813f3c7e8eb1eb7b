/* SPDX-License-Identifier: Apache-2.0 */
/* index_range.c: decodes a range of a gzip or zlib file by its index. */
#include "clientlib/cli/index_range.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/any_decode.h"
#include "clientlib/cli/any_detect.h"
#include "clientlib/cli/index_file.h"
#include "clientlib/cli/pipeline.h"
#include "encoders/gzip_index/gzip_span.h"

/* Longer spans are not held in memory. */
enum { MAX_HELD_NBYTES = 16 << 20 };

struct slot {
    uint32_t span;
    uint8_t *out;
    size_t avail;
    size_t nbytes;
    int error; /* -errno, or 0 */
    struct wharf_outcome outcome;
};

struct index_range {
    struct wharf_cli_task *task;
    const struct wharf_gzip_index *index;
    uint32_t next; /* span to fill a slot with */
    uint32_t last;
    int status; /* GO_ON: the index is not true */
};

/* ---- spans -------------------------------------------------------------------------------- */

static int64_t read_input(const struct wharf_cli_input *input, uint64_t offset, void *buf,
                          size_t nbytes)
{
    ssize_t n;

    do
        n = pread(input->fd, buf, nbytes, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* A span that goes into a slot. */
struct held {
    const struct index_range *range;
    struct slot *slot;
};

static int64_t read_held(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    const struct held *held = context;

    return read_input(held->range->task->input, offset, buf, nbytes);
}

static int put_held(void *context, const uint8_t *bytes, size_t nbytes)
{
    struct slot *slot = ((struct held *)context)->slot;

    memcpy(slot->out + slot->nbytes, bytes, nbytes);
    slot->nbytes += nbytes;
    return 0;
}

static int reserve(struct slot *slot, size_t nbytes)
{
    if (slot->avail >= nbytes)
        return 0;
    free(slot->out);
    slot->out = malloc(nbytes);
    slot->avail = slot->out ? nbytes : 0;
    return slot->out ? 0 : -ENOMEM;
}

static bool is_held(const struct index_range *range, uint32_t span)
{
    return wharf_gzip_index_span_nbytes(range->index, span) <= MAX_HELD_NBYTES;
}

static void work(void *context, void *slot_memory, unsigned worker)
{
    struct index_range *range = context;
    struct slot *slot = slot_memory;
    struct held held = {range, slot};
    const struct wharf_gzip_span_io io = {read_held, put_held, &held};

    (void)worker;
    slot->nbytes = 0;
    if (!is_held(range, slot->span))
        return;
    slot->error = reserve(slot, (size_t)wharf_gzip_index_span_nbytes(range->index, slot->span));
    if (slot->error == 0)
        slot->error = wharf_gzip_span_decode(range->index, slot->span, &io, &slot->outcome);
}

static bool fill(void *context, void *slot_memory)
{
    struct index_range *range = context;
    struct slot *slot = slot_memory;

    if (range->next > range->last)
        return false;
    slot->span = range->next++;
    slot->error = 0;
    return true;
}

/* ---- writing ------------------------------------------------------------------------------ */

/* A span that is written as it is decoded. */
struct passed {
    struct index_range *range;
    uint64_t offset; /* how far the input has been read */
    uint64_t n_written;
    bool was_read_error;
};

static int64_t read_passed(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    struct passed *passed = context;
    int64_t n = read_input(passed->range->task->input, offset, buf, nbytes);

    passed->offset = offset + (n > 0 ? (uint64_t)n : 0);
    return n;
}

/* 1 when the rest of the span is not asked for, or cannot be written. */
static int put_passed(void *context, const uint8_t *bytes, size_t nbytes)
{
    struct passed *passed = context;
    struct wharf_cli_task *task = passed->range->task;
    uint64_t before = task->output->nbytes;

    passed->range->status = wharf_cli_task_write(task, passed->offset, bytes, nbytes);
    passed->n_written += task->output->nbytes - before;
    return passed->range->status != WHARF_CLI_GOOD;
}

static int tell_fault(const struct index_range *range, const struct wharf_outcome *outcome,
                      uint64_t n_unverified)
{
    const struct wharf_cli_fault fault = {
        .result = outcome->result,
        .reason = outcome->reason,
        .bit_offset = outcome->bit_offset,
        .chunk = WHARF_CLI_NO_CHUNK,
        .advice = "it is damaged, or its index is not true: wharf test FILE says which",
    };

    return wharf_cli_task_fault(range->task, &fault, n_unverified);
}

static void count_span(const struct index_range *range, const struct wharf_outcome *outcome)
{
    struct wharf_cli_tally *tally = range->task->tally;

    tally->in_nbytes += outcome->in_nbytes;
    tally->n_chunks++;
    tally->engines |= 1u << WHARF_ENGINE_CPU;
}

static int pass_span(struct index_range *range, uint32_t span)
{
    struct passed passed = {.range = range};
    const struct wharf_gzip_span_io io = {read_passed, put_passed, &passed};
    struct wharf_outcome outcome;
    int r = wharf_gzip_span_decode(range->index, span, &io, &outcome);

    if (r > 0)
        return range->status;
    if (r < 0)
        return wharf_cli_task_read_error(range->task, r);
    count_span(range, &outcome);
    return outcome.result == WHARF_OK ? WHARF_CLI_GOOD
                                      : tell_fault(range, &outcome, passed.n_written);
}

/* The result of a span in memory.  One that is bad by an index of our own has not been written, and
 * none before it was: the file itself is to say what is wrong. */
static int write_held(struct index_range *range, const struct slot *slot)
{
    if (slot->error)
        return wharf_cli_task_read_error(range->task, slot->error);
    if (slot->outcome.result != WHARF_OK)
        return range->index->is_own ? WHARF_CLI_GO_ON : tell_fault(range, &slot->outcome, 0);
    count_span(range, &slot->outcome);
    return wharf_cli_task_write(
        range->task, range->index->points[slot->span].bit_offset / 8 + slot->outcome.in_nbytes,
        slot->out, slot->nbytes);
}

static bool drain(void *context, void *slot_memory)
{
    struct index_range *range = context;
    const struct slot *slot = slot_memory;

    range->status =
        is_held(range, slot->span) ? write_held(range, slot) : pass_span(range, slot->span);
    return range->status == WHARF_CLI_GOOD;
}

static void stop(void *context)
{
    (void)context; /* filling waits for nothing */
}

/* ---- all together ------------------------------------------------------------------------- */

static int run_spans(struct index_range *range)
{
    const struct wharf_cli_stages stages = {fill, work, drain, stop, range};
    uint32_t n_spans = range->last - range->next + 1;
    unsigned n_workers = range->task->options->n_threads;
    unsigned n_slots;
    struct slot *slots;
    int r = -ENOMEM;

    if (n_workers > n_spans)
        n_workers = n_spans;
    n_slots = wharf_cli_pipeline_n_slots(n_workers);
    slots = calloc(n_slots, sizeof(*slots));
    range->status = WHARF_CLI_GOOD;
    if (slots)
        r = wharf_cli_pipeline_run(&stages, slots, sizeof(*slots), n_slots, n_workers);
    for (unsigned i = 0; slots && i < n_slots; i++)
        free(slots[i].out);
    free(slots);
    return r < 0 ? wharf_cli_task_error(range->task, "cannot decode", r) : range->status;
}

/* Which spans hold the range.  False: none does. */
static bool choose_spans(struct index_range *range, const struct wharf_cli_range *wanted)
{
    const struct wharf_gzip_index *index = range->index;
    uint64_t end =
        wanted->nbytes > UINT64_MAX - wanted->offset ? UINT64_MAX : wanted->offset + wanted->nbytes;

    if (wanted->offset >= index->out_nbytes || (wanted->nbytes == 0 && wanted->offset == 0))
        return false;
    range->next = wharf_gzip_index_find(index, wanted->offset);
    range->last = wharf_gzip_index_find(index, end > wanted->offset ? end - 1 : end);
    return true;
}

static int decode(struct wharf_cli_task *task, const struct wharf_gzip_index *index,
                  struct wharf_cli_range *wanted)
{
    struct index_range range = {.task = task, .index = index};
    uint64_t before = task->output->nbytes;
    int status;

    wharf_cli_output_keep(task->output, wanted->offset, wanted->nbytes);
    if (!choose_spans(&range, wanted)) {
        wharf_cli_output_pass(task->output, index->out_nbytes < wanted->offset ? index->out_nbytes
                                                                               : wanted->offset);
        return WHARF_CLI_GOOD;
    }
    wharf_cli_output_pass(task->output, index->points[range.next].out_offset);
    status = run_spans(&range);
    if (status != WHARF_CLI_GO_ON)
        return status;
    if (!task->options->quiet)
        wharf_cli_say("%s: does not decode as its index says: all of it is decoded",
                      task->input->name);
    wanted->offset += task->output->nbytes - before;
    if (wanted->nbytes != UINT64_MAX)
        wanted->nbytes -= task->output->nbytes - before;
    return WHARF_CLI_GO_ON;
}

static void tell_unverified(struct wharf_cli_task *task)
{
    task->tally->is_unverified = true;
    if (!task->options->quiet)
        wharf_cli_say("%s: by an index without checksums: the output is not verified",
                      task->input->name);
}

/* An index that was asked for has to be there and to fit; one that was found may be passed over. */
static int tell_no_index(struct wharf_cli_task *task, const char *path, int error)
{
    return path ? wharf_cli_tally_error(task->tally, path, error) : WHARF_CLI_GO_ON;
}

static int decode_by_index(struct wharf_cli_task *task, struct wharf_cli_range *range)
{
    struct wharf_gzip_index index;
    struct stat file;
    int status;
    int r;

    if (!wharf_cli_index_is_for(task->input)) {
        if (range->index)
            wharf_cli_say("%s: an index is of files alone", task->input->name);
        return tell_no_index(task, range->index, -EINVAL);
    }
    r = wharf_cli_index_load(task->input, range->index, !range->index && task->options->quiet,
                             &file, &index);
    if (r < 0)
        return tell_no_index(task, range->index, r);
    if (wharf_cli_output_is_input(task->output, &file)) {
        wharf_gzip_index_deinit(&index);
        return wharf_cli_tally_error(task->tally, task->output->name, -EINVAL);
    }
    if (!index.is_own && index.in_nbytes == WHARF_GZIP_INDEX_UNKNOWN)
        index.in_nbytes = task->input->nbytes;
    status = decode(task, &index, range);
    if (status == WHARF_CLI_GOOD && !index.is_own)
        tell_unverified(task);
    wharf_gzip_index_deinit(&index);
    return status;
}

/* Whether the input could have an index that is of use. */
static bool may_have_index(const struct wharf_cli_task *task, const struct wharf_cli_range *range,
                           enum wharf_source_kind kind)
{
    bool is_all = range->offset == 0 && range->nbytes == UINT64_MAX;

    if (kind != WHARF_SOURCE_GZIP && kind != WHARF_SOURCE_BGZF && kind != WHARF_SOURCE_ZLIB)
        return false;
    return range->index || (!is_all && task->options->engine <= WHARF_ENGINE_CPU);
}

int wharf_cli_index_decode(struct wharf_cli_task *task, struct wharf_cli_range range)
{
    enum wharf_source_kind kind;
    uint64_t passed;
    int status;

    if (task->options->salvage)
        return wharf_cli_any_decode(task, range);
    status = wharf_cli_any_detect(task, &kind);
    if (status != WHARF_CLI_GOOD)
        return status;
    status = may_have_index(task, &range, kind) ? decode_by_index(task, &range) : WHARF_CLI_GO_ON;
    if (status == WHARF_CLI_GO_ON)
        return wharf_cli_any_decode(task, range);
    if (status == WHARF_CLI_GOOD && wharf_cli_output_lacks(task->output, &passed))
        return wharf_cli_task_range_outside(task, passed);
    return status;
}
