/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_pack_pipe.c: packs an input as gzip or BGZF, on all cores (gzip_pack_pipe.h). */
#include "clientlib/cli/gzip_pack_pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/pipeline.h"
#include "encoders/checksum.h"
#include "encoders/crc32_join.h"
#include "encoders/deflate/deflate_encode.h"
#include "encoders/gzip/bgzf_write.h"
#include "encoders/gzip/gzip_parts.h"

enum {
    SLOT_RAW_NBYTES = 1 << 20,
    WINDOW_NBYTES = WHARF_DEFLATE_WINDOW_NBYTES,
    /* No block is more than this larger than its content: header, trailer, a stored block's. */
    BLOCK_MORE_NBYTES = 32,
};

struct slot {
    uint8_t *memory; /* a window, which is the input's before `raw`, and `raw` */
    uint8_t *out;
    uint8_t *raw;
    size_t raw_nbytes;
    size_t window_nbytes;
    bool is_last;
    int read_error;
    uint64_t in_offset;

    size_t out_nbytes;
    uint32_t crc; /* of gzip: raw's */
    unsigned n_blocks;
    int pack_error;
};

/* What a worker packs with: one of the two. */
struct packer {
    struct wharf_encoder *encoder;  /* of BGZF */
    struct wharf_gzip_parts *parts; /* of gzip */
};

struct gzip_pack_pipe {
    struct wharf_cli_task *task;
    const struct wharf_cli_gzip_pack_settings *settings;
    size_t slot_nbytes; /* of BGZF a multiple of the block's size */
    size_t out_avail;
    struct packer *packers; /* one for each worker */

    /* The reader's. */
    const struct slot *before; /* the slot filled last */
    uint64_t offset;           /* how far the input was read */

    /* The writer's. */
    uint32_t crc;
    int status;
};

/* ---- reading ------------------------------------------------------------------------------- */

/* A part of gzip may refer to what stands before it. */
static void copy_window(const struct gzip_pack_pipe *pipe, struct slot *slot)
{
    const struct slot *before = pipe->before;

    slot->window_nbytes = 0;
    if (!before || pipe->settings->is_bgzf)
        return;
    slot->window_nbytes = before->raw_nbytes < WINDOW_NBYTES ? before->raw_nbytes : WINDOW_NBYTES;
    memcpy(slot->raw - slot->window_nbytes, before->raw + before->raw_nbytes - slot->window_nbytes,
           slot->window_nbytes);
}

static bool fill(void *context, void *slot_memory)
{
    struct gzip_pack_pipe *pipe = context;
    struct slot *slot = slot_memory;
    int64_t n;

    if (pipe->before && pipe->before->is_last)
        return false;
    copy_window(pipe, slot);
    n = wharf_cli_input_read_at(pipe->task->input, pipe->offset, slot->raw, pipe->slot_nbytes);
    slot->read_error = n < 0 ? (int)n : 0;
    slot->raw_nbytes = n < 0 ? 0 : (size_t)n;
    slot->is_last = slot->raw_nbytes < pipe->slot_nbytes;
    pipe->offset += slot->raw_nbytes;
    slot->in_offset = pipe->offset;
    pipe->before = slot;
    return true;
}

/* ---- packing ------------------------------------------------------------------------------- */

static int pack_blocks(const struct gzip_pack_pipe *pipe, struct slot *slot,
                       struct wharf_encoder *encoder)
{
    size_t block_nbytes = pipe->settings->block_nbytes;

    for (size_t at = 0; at < slot->raw_nbytes; at += block_nbytes) {
        size_t left = slot->raw_nbytes - at;
        size_t nbytes;
        int r = wharf_bgzf_pack(encoder, slot->raw + at, left < block_nbytes ? left : block_nbytes,
                                slot->out + slot->out_nbytes, &nbytes);

        if (r < 0)
            return r;
        slot->out_nbytes += nbytes;
        slot->n_blocks++;
    }
    return 0;
}

static int pack_part(const struct gzip_pack_pipe *pipe, struct slot *slot,
                     struct wharf_gzip_parts *parts)
{
    slot->crc = wharf_crc32(WHARF_CRC32_INIT, slot->raw, slot->raw_nbytes);
    return wharf_gzip_parts_encode(parts, slot->raw, slot->raw_nbytes, slot->window_nbytes,
                                   slot->is_last, slot->out, pipe->out_avail, &slot->out_nbytes);
}

static void work(void *context, void *slot_memory, unsigned worker)
{
    const struct gzip_pack_pipe *pipe = context;
    struct slot *slot = slot_memory;

    slot->out_nbytes = 0;
    slot->n_blocks = 0;
    slot->pack_error = pipe->settings->is_bgzf
                           ? pack_blocks(pipe, slot, pipe->packers[worker].encoder)
                           : pack_part(pipe, slot, pipe->packers[worker].parts);
}

/* ---- writing ------------------------------------------------------------------------------- */

static bool drain(void *context, void *slot_memory)
{
    struct gzip_pack_pipe *pipe = context;
    struct slot *slot = slot_memory;

    if (slot->pack_error)
        pipe->status = wharf_cli_task_error(pipe->task, "cannot pack", slot->pack_error);
    else if (slot->read_error)
        pipe->status = wharf_cli_task_read_error(pipe->task, slot->read_error);
    else
        pipe->status =
            wharf_cli_task_write(pipe->task, slot->in_offset, slot->out, slot->out_nbytes);
    pipe->crc = wharf_crc32_join(pipe->crc, slot->crc, slot->raw_nbytes);
    pipe->task->tally->in_nbytes += slot->raw_nbytes;
    pipe->task->tally->n_chunks += slot->n_blocks;
    return pipe->status == WHARF_CLI_GOOD;
}

static void stop(void *context)
{
    struct gzip_pack_pipe *pipe = context;

    wharf_cli_input_stop(pipe->task->input);
}

/* ---- all together -------------------------------------------------------------------------- */

static int run_slots(struct gzip_pack_pipe *pipe, struct slot *slots, unsigned n_slots)
{
    const struct wharf_cli_stages stages = {fill, work, drain, stop, pipe};
    int r;

    for (unsigned i = 0; i < n_slots; i++) {
        slots[i].memory = malloc(WINDOW_NBYTES + pipe->slot_nbytes);
        slots[i].out = malloc(pipe->out_avail);
        if (!slots[i].memory || !slots[i].out)
            return wharf_cli_task_error(pipe->task, "cannot pack", -ENOMEM);
        slots[i].raw = slots[i].memory + WINDOW_NBYTES;
    }
    r = wharf_cli_pipeline_run(&stages, slots, sizeof(*slots), n_slots,
                               pipe->task->options->n_threads);
    return r < 0 ? wharf_cli_task_error(pipe->task, "cannot pack", r) : pipe->status;
}

static int with_slots(struct gzip_pack_pipe *pipe)
{
    unsigned n_slots = wharf_cli_pipeline_n_slots(pipe->task->options->n_threads);
    struct slot *slots = calloc(n_slots, sizeof(*slots));
    int status;

    if (!slots)
        return wharf_cli_task_error(pipe->task, "cannot pack", -ENOMEM);
    status = run_slots(pipe, slots, n_slots);
    for (unsigned i = 0; i < n_slots; i++) {
        free(slots[i].memory);
        free(slots[i].out);
    }
    free(slots);
    return status;
}

static int write_bgzf(struct gzip_pack_pipe *pipe)
{
    size_t n_blocks = SLOT_RAW_NBYTES / pipe->settings->block_nbytes;
    int status;

    pipe->slot_nbytes = n_blocks * pipe->settings->block_nbytes;
    pipe->out_avail = pipe->slot_nbytes + n_blocks * BLOCK_MORE_NBYTES + WHARF_BGZF_MAX_NBYTES;
    status = with_slots(pipe);
    if (status != WHARF_CLI_GOOD)
        return status;
    return wharf_cli_task_write(pipe->task, pipe->offset, wharf_bgzf_marker,
                                WHARF_BGZF_MARKER_NBYTES);
}

static int write_gzip(struct gzip_pack_pipe *pipe)
{
    uint8_t header[WHARF_GZIP_FIXED_HEADER_NBYTES];
    uint8_t trailer[WHARF_GZIP_TRAILER_NBYTES];
    int status;

    pipe->slot_nbytes = SLOT_RAW_NBYTES;
    pipe->out_avail = wharf_gzip_parts_bound(pipe->packers[0].parts, SLOT_RAW_NBYTES);
    wharf_gzip_write_header(pipe->settings->level, header);
    status = wharf_cli_task_write(pipe->task, 0, header, sizeof(header));
    if (status == WHARF_CLI_GOOD)
        status = with_slots(pipe);
    if (status != WHARF_CLI_GOOD)
        return status;
    pipe->task->tally->n_chunks++;
    wharf_gzip_write_trailer(pipe->crc, pipe->offset, trailer);
    return wharf_cli_task_write(pipe->task, pipe->offset, trailer, sizeof(trailer));
}

static int make_packers(struct gzip_pack_pipe *pipe)
{
    for (unsigned i = 0; i < pipe->task->options->n_threads; i++) {
        int r = pipe->settings->is_bgzf
                    ? wharf_deflate_encoder.new(&pipe->settings->encoder, &pipe->packers[i].encoder)
                    : wharf_gzip_parts_new(pipe->settings->level, &pipe->packers[i].parts);

        if (r < 0)
            return wharf_cli_task_error(pipe->task, "cannot pack", r);
    }
    return WHARF_CLI_GOOD;
}

int wharf_cli_gzip_pack_pipe(struct wharf_cli_task *task,
                             const struct wharf_cli_gzip_pack_settings *settings)
{
    unsigned n_packers = task->options->n_threads;
    struct gzip_pack_pipe pipe = {
        .task = task,
        .settings = settings,
        .packers = calloc(n_packers, sizeof(*pipe.packers)),
        .crc = WHARF_CRC32_INIT,
    };
    int status;

    if (!pipe.packers)
        return wharf_cli_task_error(task, "cannot pack", -ENOMEM);
    status = make_packers(&pipe);
    if (status == WHARF_CLI_GOOD)
        status = settings->is_bgzf ? write_bgzf(&pipe) : write_gzip(&pipe);
    for (unsigned i = 0; i < n_packers; i++) {
        wharf_deflate_encoder_free(pipe.packers[i].encoder);
        wharf_gzip_parts_free(pipe.packers[i].parts);
    }
    free(pipe.packers);
    return status;
}
