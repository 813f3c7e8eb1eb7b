/* SPDX-License-Identifier: Apache-2.0 */
/* why_file.c: the format of a file, and how large its chunks are. */
#include <errno.h>
#include <stdlib.h>

#include "clientlib/cli/any_detect.h"
#include "clientlib/cli/cpu_format.h"
#include "clientlib/cli/file_walk.h"
#include "clientlib/cli/why.h"
#include "encoders/container_read.h"

/* ---- chunks -------------------------------------------------------------------------------- */

/* Keeps every other one of those that are kept. */
static void thin_out(struct wharf_cli_why_chunks *chunks)
{
    for (size_t i = 0; 2 * i < chunks->n_kept; i++)
        chunks->kept[i] = chunks->kept[2 * i];
    chunks->n_kept = (chunks->n_kept + 1) / 2;
    chunks->shift++;
}

static void add_chunk(struct wharf_cli_why *why, const struct wharf_cli_why_chunk *chunk)
{
    struct wharf_cli_why_chunks *chunks = &why->chunks;
    bool is_known = chunk->out_nbytes != WHARF_CLI_WHY_UNKNOWN;

    why->codecs |= UINT64_C(1) << chunk->codec % 64;
    if ((chunks->n & ((UINT64_C(1) << chunks->shift) - 1)) == 0) {
        if (chunks->n_kept == WHARF_CLI_WHY_MAX_CHUNKS)
            thin_out(chunks);
        if ((chunks->n & ((UINT64_C(1) << chunks->shift) - 1)) == 0)
            chunks->kept[chunks->n_kept++] = *chunk;
    }
    chunks->n++;
    chunks->in_nbytes += chunk->in_nbytes;
    chunks->n_over_gpu +=
        is_known && why->gpu_chunk_nbytes &&
        (chunk->out_nbytes > why->gpu_chunk_nbytes || chunk->in_nbytes > why->gpu_chunk_nbytes);
    chunks->n_over_job +=
        is_known && why->task->service->wharf &&
        chunk->out_nbytes + chunk->in_nbytes > why->task->service->info.max_job_nbytes;
    if (!is_known || chunks->out_nbytes == WHARF_CLI_WHY_UNKNOWN) {
        chunks->out_nbytes = WHARF_CLI_WHY_UNKNOWN;
        return;
    }
    chunks->out_nbytes += chunk->out_nbytes;
    if (chunks->n == 1 || chunk->out_nbytes < chunks->least)
        chunks->least = chunk->out_nbytes;
    if (chunk->out_nbytes > chunks->most)
        chunks->most = chunk->out_nbytes;
}

/* By the job that decodes it. */
static void add_job(struct wharf_cli_why *why, uint64_t offset, struct wharf_decode_job job)
{
    const struct wharf_cli_why_chunk chunk = {
        .offset = offset,
        .out_nbytes = job.out_avail,
        .in_nbytes = (uint32_t)job.in_nbytes,
        .codec = job.codec,
        .parameter = job.setting.parameter,
        .flags = job.flags,
        .checksum = job.checksum,
    };

    add_chunk(why, &chunk);
}

static int compare_sizes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

/* Sizes in between, of those that are kept. */
static int rank_sizes(struct wharf_cli_why *why)
{
    struct wharf_cli_why_chunks *chunks = &why->chunks;
    size_t n = chunks->n_kept;

    if (n == 0 || chunks->out_nbytes == WHARF_CLI_WHY_UNKNOWN)
        return WHARF_CLI_GOOD;
    uint64_t *sizes = malloc(n * sizeof(*sizes));
    if (!sizes)
        return wharf_cli_task_error(why->task, "cannot look at it", -ENOMEM);
    for (size_t i = 0; i < n; i++)
        sizes[i] = chunks->kept[i].out_nbytes;
    qsort(sizes, n, sizeof(*sizes), compare_sizes);
    chunks->tenth = sizes[n / 10];
    chunks->median = sizes[n / 2];
    chunks->nine_tenths = sizes[n - 1 - n / 10];
    free(sizes);
    return WHARF_CLI_GOOD;
}

/* ---- formats ------------------------------------------------------------------------------- */

static int64_t read_input(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    return wharf_cli_input_read_at(context, offset, buf, nbytes);
}

static int look_at_container(struct wharf_cli_why *why)
{
    struct wharf_cli_task *task = why->task;
    const struct wharf_container_source source = {read_input, task->input, task->input->nbytes};
    struct wharf_container_reader reader;
    struct wharf_container_item item;

    wharf_container_reader_init(&reader, &source);
    for (;;) {
        int r = wharf_container_next(&reader, &item);

        if (r < 0)
            return wharf_cli_task_read_error(task, r);
        if (item.kind != WHARF_CONTAINER_CHUNK)
            break;
        add_job(why, item.chunk.payload_offset, wharf_container_chunk_job(&item.chunk, NULL, NULL));
    }
    if (item.kind == WHARF_CONTAINER_FAULT) {
        const struct wharf_cli_fault fault = {item.fault.result, item.fault.reason,
                                              8 * item.fault.file_offset + item.fault.bit_offset,
                                              item.fault.chunk, NULL};

        return wharf_cli_task_fault(task, &fault, 0);
    }
    why->out_nbytes = why->chunks.out_nbytes;
    return WHARF_CLI_GOOD;
}

static void add_block(void *context, const struct wharf_bgzf_piece *block)
{
    if (block->out_nbytes > 0) /* the marker at the end has none */
        add_job(context, block->file_offset, wharf_bgzf_block_job(block, NULL, NULL));
}

static int look_at_bgzf(struct wharf_cli_why *why)
{
    bool is_whole;
    int status = wharf_cli_walk_bgzf(why->task, add_block, why, &is_whole);

    why->is_cut = !is_whole;
    if (is_whole)
        why->out_nbytes = why->chunks.out_nbytes;
    return status;
}

static void add_frame(void *context, const struct wharf_zstd_scan *scan, uint64_t offset)
{
    const struct wharf_cli_why_chunk chunk = {
        .offset = offset,
        .out_nbytes =
            scan->frame.has_content_size ? scan->frame.content_nbytes : WHARF_CLI_WHY_UNKNOWN,
        .in_nbytes = scan->nbytes < UINT32_MAX ? (uint32_t)scan->nbytes : UINT32_MAX,
        .codec = WHARF_CODEC_ZSTD,
    };

    add_chunk(context, &chunk);
}

static int look_at_zstd(struct wharf_cli_why *why)
{
    bool is_whole;
    int status = wharf_cli_walk_zstd(why->task, add_frame, why, &is_whole);

    why->is_cut = !is_whole;
    if (is_whole)
        why->out_nbytes = why->chunks.out_nbytes;
    return status;
}

static int look_at_kind(struct wharf_cli_why *why)
{
    const struct wharf_cli_cpu_format *format = wharf_cli_cpu_format_find(why->kind);

    if (format) {
        why->format = format->title;
        why->codecs = format->codecs;
        return WHARF_CLI_GOOD;
    }
    switch (why->kind) {
    case WHARF_SOURCE_CONTAINER:
        why->format = "a wharf container";
        why->is_chunked = true;
        return look_at_container(why);
    case WHARF_SOURCE_BGZF:
        why->format = "BGZF";
        why->codecs = UINT64_C(1) << WHARF_CODEC_GZIP;
        why->is_chunked = true;
        return look_at_bgzf(why);
    case WHARF_SOURCE_ZSTD:
        why->format = "zstd";
        why->codecs = UINT64_C(1) << WHARF_CODEC_ZSTD;
        return look_at_zstd(why);
    case WHARF_SOURCE_GZIP:
        why->format = "gzip";
        why->codecs = UINT64_C(1) << WHARF_CODEC_GZIP;
        return WHARF_CLI_GOOD;
    case WHARF_SOURCE_ZLIB:
        why->format = "zlib";
        why->codecs = UINT64_C(1) << WHARF_CODEC_ZLIB;
        return WHARF_CLI_GOOD;
    default:
        return wharf_cli_any_tell_unknown(why->task, why->kind);
    }
}

int wharf_cli_why_look(struct wharf_cli_why *why)
{
    int status;

    why->out_nbytes = WHARF_CLI_WHY_UNKNOWN;
    why->chunks.kept = malloc(WHARF_CLI_WHY_MAX_CHUNKS * sizeof(*why->chunks.kept));
    if (!why->chunks.kept)
        return wharf_cli_task_error(why->task, "cannot look at it", -ENOMEM);
    status = wharf_cli_any_detect(why->task, &why->kind);
    if (status == WHARF_CLI_GOOD)
        status = look_at_kind(why);
    return status == WHARF_CLI_GOOD ? rank_sizes(why) : status;
}

void wharf_cli_why_deinit(struct wharf_cli_why *why)
{
    free(why->chunks.kept);
    if (why->has_metrics)
        wharf_cli_metrics_free(&why->metrics);
}
