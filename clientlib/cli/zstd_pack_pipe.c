/* SPDX-License-Identifier: Apache-2.0 */
/* A slot is a frame; the writer notes the frames' sizes for the seek table. */
#include "clientlib/cli/zstd_pack_pipe.h"

#include <errno.h>
#include <stdlib.h>

#include "clientlib/cli/pipeline.h"
#include "encoders/zstd/zstd.h"
#include "encoders/zstd/zstd_encode.h"
#include "encoders/zstd/zstd_seek.h"

enum { FIRST_ENTRIES = 1024, TABLE_PART_ENTRIES = 512 };

struct slot {
    uint8_t *raw;
    size_t raw_nbytes;
    uint8_t *out;
    size_t out_nbytes;
    bool is_first;
    bool is_last;
    int read_error;
    uint64_t in_offset;
    int pack_error;
};

struct zstd_pack_pipe {
    struct wharf_cli_task *task;
    const struct wharf_cli_zstd_pack_settings *settings;
    size_t out_avail;
    struct wharf_encoder **encoders; /* one for each worker */

    /* The reader's. */
    bool was_last;
    uint64_t offset; /* how far the input was read */

    /* The writer's. */
    struct wharf_zstd_seek_entry *entries;
    size_t n_entries;
    size_t entries_avail;
    int status;
};

/* ---- reading, packing ---------------------------------------------------------------------- */

static bool fill(void *context, void *slot_memory)
{
    struct zstd_pack_pipe *pipe = context;
    struct slot *slot = slot_memory;
    int64_t n;

    if (pipe->was_last)
        return false;
    n = wharf_cli_input_read_at(pipe->task->input, pipe->offset, slot->raw,
                                pipe->settings->frame_nbytes);
    slot->is_first = pipe->offset == 0;
    slot->read_error = n < 0 ? (int)n : 0;
    slot->raw_nbytes = n < 0 ? 0 : (size_t)n;
    slot->is_last = pipe->was_last = slot->raw_nbytes < pipe->settings->frame_nbytes;
    pipe->offset += slot->raw_nbytes;
    slot->in_offset = pipe->offset;
    return true;
}

/* No input is a frame of nothing, but behind others it is none. */
static void work(void *context, void *slot_memory, unsigned worker)
{
    const struct zstd_pack_pipe *pipe = context;
    struct slot *slot = slot_memory;

    slot->out_nbytes = 0;
    slot->pack_error = 0;
    if (slot->raw_nbytes || slot->is_first)
        slot->pack_error =
            wharf_zstd_encoder.encode(pipe->encoders[worker], slot->raw, slot->raw_nbytes,
                                      slot->out, pipe->out_avail, &slot->out_nbytes);
}

/* ---- writing ------------------------------------------------------------------------------- */

static int add_entry(struct zstd_pack_pipe *pipe, const struct slot *slot)
{
    struct wharf_zstd_seek_entry *entries = pipe->entries;

    if (slot->out_nbytes == 0)
        return 0;
    if (pipe->n_entries == pipe->entries_avail) {
        size_t avail = pipe->entries_avail ? 2 * pipe->entries_avail : FIRST_ENTRIES;

        entries = realloc(entries, avail * sizeof(*entries));
        if (!entries)
            return -ENOMEM;
        pipe->entries = entries;
        pipe->entries_avail = avail;
    }
    entries[pipe->n_entries++] =
        (struct wharf_zstd_seek_entry){(uint32_t)slot->out_nbytes, (uint32_t)slot->raw_nbytes};
    return 0;
}

static bool drain(void *context, void *slot_memory)
{
    struct zstd_pack_pipe *pipe = context;
    struct slot *slot = slot_memory;
    int r = slot->pack_error ? slot->pack_error : add_entry(pipe, slot);

    if (r < 0)
        pipe->status = wharf_cli_task_error(pipe->task, "cannot pack", r);
    else if (slot->read_error)
        pipe->status = wharf_cli_task_read_error(pipe->task, slot->read_error);
    else
        pipe->status =
            wharf_cli_task_write(pipe->task, slot->in_offset, slot->out, slot->out_nbytes);
    pipe->task->tally->in_nbytes += slot->raw_nbytes;
    return pipe->status == WHARF_CLI_GOOD;
}

static void stop(void *context)
{
    struct zstd_pack_pipe *pipe = context;

    wharf_cli_input_stop(pipe->task->input);
}

static int write_entries(struct zstd_pack_pipe *pipe)
{
    uint8_t part[TABLE_PART_ENTRIES * WHARF_ZSTD_SEEK_ENTRY_NBYTES];
    int status = WHARF_CLI_GOOD;

    for (size_t i = 0; i < pipe->n_entries && status == WHARF_CLI_GOOD;) {
        size_t n = 0;

        for (; n < TABLE_PART_ENTRIES && i < pipe->n_entries; n++, i++)
            wharf_zstd_seek_write_entry(&pipe->entries[i], part + n * WHARF_ZSTD_SEEK_ENTRY_NBYTES);
        status =
            wharf_cli_task_write(pipe->task, pipe->offset, part, n * WHARF_ZSTD_SEEK_ENTRY_NBYTES);
    }
    return status;
}

/* Of more frames than a table may have there is none. */
static int write_table(struct zstd_pack_pipe *pipe)
{
    uint8_t header[WHARF_ZSTD_SEEK_HEADER_NBYTES];
    uint8_t footer[WHARF_ZSTD_SEEK_FOOTER_NBYTES];
    int status;

    pipe->task->tally->n_chunks += pipe->n_entries;
    if (pipe->n_entries > WHARF_ZSTD_SEEK_MAX_FRAMES) {
        wharf_cli_say("%s: too many frames for a seek table; a larger --chunk makes fewer",
                      pipe->task->output->name);
        return WHARF_CLI_GOOD;
    }
    wharf_zstd_seek_write_header((uint32_t)pipe->n_entries, header);
    wharf_zstd_seek_write_footer((uint32_t)pipe->n_entries, footer);
    status = wharf_cli_task_write(pipe->task, pipe->offset, header, sizeof(header));
    if (status == WHARF_CLI_GOOD)
        status = write_entries(pipe);
    if (status == WHARF_CLI_GOOD)
        status = wharf_cli_task_write(pipe->task, pipe->offset, footer, sizeof(footer));
    return status;
}

/* ---- all together -------------------------------------------------------------------------- */

static int run_slots(struct zstd_pack_pipe *pipe, struct slot *slots, unsigned n_slots)
{
    const struct wharf_cli_stages stages = {fill, work, drain, stop, pipe};
    int r;

    pipe->out_avail = wharf_zstd_encoder.bound(pipe->encoders[0], pipe->settings->frame_nbytes);
    for (unsigned i = 0; i < n_slots; i++) {
        slots[i].raw = malloc(pipe->settings->frame_nbytes);
        slots[i].out = malloc(pipe->out_avail);
        if (!slots[i].raw || !slots[i].out)
            return wharf_cli_task_error(pipe->task, "cannot pack", -ENOMEM);
    }
    r = wharf_cli_pipeline_run(&stages, slots, sizeof(*slots), n_slots,
                               pipe->task->options->n_threads);
    return r < 0 ? wharf_cli_task_error(pipe->task, "cannot pack", r) : pipe->status;
}

static int with_slots(struct zstd_pack_pipe *pipe)
{
    unsigned n_slots = wharf_cli_pipeline_n_slots(pipe->task->options->n_threads);
    struct slot *slots = calloc(n_slots, sizeof(*slots));
    int status;

    if (!slots)
        return wharf_cli_task_error(pipe->task, "cannot pack", -ENOMEM);
    status = run_slots(pipe, slots, n_slots);
    for (unsigned i = 0; i < n_slots; i++) {
        free(slots[i].raw);
        free(slots[i].out);
    }
    free(slots);
    return status == WHARF_CLI_GOOD ? write_table(pipe) : status;
}

static int make_encoders(struct zstd_pack_pipe *pipe)
{
    for (unsigned i = 0; i < pipe->task->options->n_threads; i++) {
        int r = wharf_zstd_encoder.new(&pipe->settings->encoder, &pipe->encoders[i]);

        if (r < 0)
            return wharf_cli_task_error(pipe->task, "cannot pack", r);
        wharf_zstd_encode_checksums(pipe->encoders[i]);
    }
    return WHARF_CLI_GOOD;
}

int wharf_cli_zstd_pack_pipe(struct wharf_cli_task *task,
                             const struct wharf_cli_zstd_pack_settings *settings)
{
    unsigned n_encoders = task->options->n_threads;
    struct zstd_pack_pipe pipe = {
        .task = task,
        .settings = settings,
        .encoders = calloc(n_encoders, sizeof(struct wharf_encoder *)),
    };
    int status;

    if (!pipe.encoders)
        return wharf_cli_task_error(task, "cannot pack", -ENOMEM);
    status = make_encoders(&pipe);
    if (status == WHARF_CLI_GOOD)
        status = with_slots(&pipe);
    for (unsigned i = 0; i < n_encoders; i++)
        wharf_zstd_encoder.free(pipe.encoders[i]);
    free(pipe.encoders);
    free(pipe.entries);
    return status;
}
