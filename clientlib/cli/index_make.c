/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parallel decoder tells where blocks begin; of these places those far enough apart become
 * points, each with the output before it as its window.
 */
#include "clientlib/cli/index_make.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/index_file.h"
#include "clientlib/cli/parallel_stream.h"
#include "clientlib/cli/progress.h"
#include "clientlib/cli/stream_pipe.h"
#include "encoders/checksum.h"
#include "encoders/gzip/bgzf.h"
#include "encoders/gzip/gzip_header.h"

enum { WINDOW = WHARF_DEFLATE_WINDOW_NBYTES };

struct maker {
    struct wharf_cli_task *task;
    struct wharf_gzip_index *index;
    uint64_t spacing_nbytes;
    uint64_t out_nbytes;
    uint32_t checksum; /* of the last point's span so far */
    uint8_t tail[WINDOW];
};

/* ---- from the decoder --------------------------------------------------------------------- */

/* Keeps the last 32 KiB of output at the end of `tail`. */
static void keep_tail(struct maker *maker, const uint8_t *bytes, size_t nbytes)
{
    if (nbytes >= WINDOW) {
        memcpy(maker->tail, bytes + nbytes - WINDOW, WINDOW);
        return;
    }
    memmove(maker->tail, maker->tail + nbytes, WINDOW - nbytes);
    memcpy(maker->tail + WINDOW - nbytes, bytes, nbytes);
}

static struct wharf_gzip_point *last_point(const struct maker *maker)
{
    return &maker->index->points[maker->index->n_points - 1];
}

static int add_first(struct maker *maker)
{
    const struct wharf_gzip_point first = {.is_member = true};

    return wharf_gzip_index_add(maker->index, &first, NULL, false);
}

static int add_point(struct maker *maker, const struct wharf_parallel_point *place)
{
    struct wharf_gzip_point point = {
        .out_offset = maker->out_nbytes,
        .bit_offset = place->bit_offset,
        .window_nbytes = place->member_nbytes < WINDOW ? (uint32_t)place->member_nbytes : WINDOW,
    };

    last_point(maker)->checksum = maker->checksum;
    maker->checksum = WHARF_CRC32_INIT;
    return wharf_gzip_index_add(maker->index, &point, maker->tail + WINDOW - point.window_nbytes,
                                true);
}

static int take_span(struct maker *maker, const struct wharf_parallel_inflate *stream,
                     const uint8_t *span, size_t nbytes)
{
    struct wharf_parallel_point place;
    int r = 0;

    if (wharf_parallel_inflate_point(stream, &place) &&
        maker->out_nbytes - last_point(maker)->out_offset >= maker->spacing_nbytes)
        r = add_point(maker, &place);
    maker->checksum = wharf_crc32(maker->checksum, span, nbytes);
    maker->out_nbytes += nbytes;
    keep_tail(maker, span, nbytes);
    return r;
}

static int take_all(struct maker *maker, struct wharf_parallel_inflate *stream)
{
    const uint8_t *span;
    size_t nbytes;
    int r = add_first(maker);

    while (r == 0 && (r = wharf_parallel_inflate_next(stream, &span, &nbytes)) > 0) {
        r = take_span(maker, stream, span, nbytes);
        wharf_cli_task_move(maker->task, wharf_parallel_inflate_n_read(stream), 0);
    }
    if (r == 0)
        last_point(maker)->checksum = maker->checksum;
    return r;
}

/* What became of the stream. */
static int report_end(struct maker *maker, const struct wharf_parallel_inflate *stream, int error,
                      uint64_t *ret_end)
{
    struct wharf_cli_task *task = maker->task;
    struct wharf_outcome outcome;
    struct wharf_cli_fault fault = {.chunk = WHARF_CLI_NO_CHUNK};

    if (error)
        return wharf_cli_task_read_error(task, error);
    wharf_parallel_inflate_outcome(stream, &outcome);
    *ret_end = outcome.in_nbytes;
    task->tally->in_nbytes += outcome.in_nbytes;
    task->tally->n_chunks++;
    task->tally->engines |= 1u << WHARF_ENGINE_CPU;
    if (outcome.result == WHARF_OK)
        return WHARF_CLI_GOOD;
    fault.result = outcome.result;
    fault.reason = outcome.reason;
    fault.bit_offset = outcome.bit_offset;
    return wharf_cli_task_fault(task, &fault, 0);
}

static int decode(struct maker *maker, uint64_t *ret_end)
{
    struct wharf_cli_parallel *parallel;
    int status;
    int r = wharf_cli_parallel_start(maker->task, maker->index->format, 0, true, &parallel);

    if (r < 0)
        return wharf_cli_task_error(maker->task, "cannot decode", r);
    r = take_all(maker, wharf_cli_parallel_stream(parallel));
    wharf_cli_parallel_join(parallel);
    status = report_end(maker, wharf_cli_parallel_stream(parallel), r, ret_end);
    wharf_cli_parallel_free(parallel);
    return status;
}

/* ---- around it ---------------------------------------------------------------------------- */

/* Where the first member's header ends. */
static int find_first_block(struct wharf_cli_task *task, uint64_t *ret_bit)
{
    struct wharf_gzip_header header;
    uint8_t buf[4096];
    uint64_t offset = 0;
    uint32_t reason = WHARF_REASON_INPUT_TRUNCATED;
    size_t taken;

    wharf_gzip_header_init(&header);
    while (reason == WHARF_REASON_INPUT_TRUNCATED) {
        int64_t n = wharf_cli_input_read_at(task->input, offset, buf, sizeof(buf));

        if (n <= 0)
            return wharf_cli_task_read_error(task, n < 0 ? (int)n : -ENODATA);
        reason = wharf_gzip_header_read(&header, buf, (size_t)n, &taken);
        offset += taken;
    }
    *ret_bit = 8 * offset;
    return WHARF_CLI_GOOD;
}

static int identify(struct wharf_cli_task *task, struct wharf_gzip_index *index)
{
    int r = wharf_cli_index_identify(task->input, &index->identity);

    return r < 0 ? wharf_cli_task_read_error(task, r) : WHARF_CLI_GOOD;
}

int wharf_cli_index_make(struct wharf_cli_task *task, uint64_t spacing_nbytes, bool is_gzidx,
                         struct wharf_gzip_index *index)
{
    struct maker *maker = calloc(1, sizeof(*maker));
    uint64_t end = 0;
    int status;

    if (!maker)
        return wharf_cli_task_error(task, "cannot make an index", -ENOMEM);
    maker->task = task;
    maker->index = index;
    maker->spacing_nbytes = spacing_nbytes;
    /* Before and not after: a file that changes meanwhile is another one. */
    status = identify(task, index);
    if (status == WHARF_CLI_GOOD)
        status = decode(maker, &end);
    if (status == WHARF_CLI_GOOD)
        status = wharf_cli_mention_rest(task, end);
    index->in_nbytes = task->input->nbytes;
    index->out_nbytes = maker->out_nbytes;
    index->is_own = true;
    if (status == WHARF_CLI_GOOD && is_gzidx)
        status = find_first_block(task, &index->points[0].bit_offset);
    free(maker);
    return status;
}

/* ---- .gzi --------------------------------------------------------------------------------- */

/* Takes all blocks in buf.  1: there can be more, 0: there are none, or -errno. */
static int take_blocks(struct wharf_gzip_index *index, struct wharf_bgzf_splitter *splitter,
                       const uint8_t *buf, size_t nbytes, size_t *ret_taken)
{
    struct wharf_bgzf_piece piece;
    size_t at = 0;
    int r = 0;

    for (; r == 0; at += piece.nbytes) {
        struct wharf_gzip_point point = {.is_member = true};

        wharf_bgzf_next(splitter, buf + at, nbytes - at, false, &piece);
        if (piece.kind != WHARF_BGZF_BLOCK)
            break;
        point.bit_offset = 8 * piece.file_offset;
        point.out_offset = piece.out_offset;
        /* Empty ones, the end-of-file block above all, are not in bgzip's. */
        if (piece.out_nbytes || index->n_points == 0)
            r = wharf_gzip_index_add(index, &point, NULL, false);
    }
    *ret_taken = at;
    return r < 0 ? r : piece.kind == WHARF_BGZF_MORE;
}

static int scan_blocks(struct wharf_cli_task *task, struct wharf_gzip_index *index, uint8_t *buf)
{
    struct wharf_bgzf_splitter splitter = {0};
    size_t taken;
    int r = 1;

    while (r > 0) {
        int64_t n = wharf_cli_input_read_at(task->input, splitter.file_offset, buf,
                                            2 * WHARF_BGZF_MAX_NBYTES);

        if (n < 0)
            return wharf_cli_task_read_error(task, (int)n);
        r = take_blocks(index, &splitter, buf, (size_t)n, &taken);
        if (taken == 0)
            break;
    }
    return r < 0 ? wharf_cli_task_error(task, "cannot make an index", r) : WHARF_CLI_GOOD;
}

int wharf_cli_index_make_gzi(struct wharf_cli_task *task, struct wharf_gzip_index *index)
{
    uint8_t *buf = malloc(2 * WHARF_BGZF_MAX_NBYTES);
    struct wharf_gzip_index scratch = {.format = WHARF_INFLATE_GZIP};
    int status;

    if (!buf)
        return wharf_cli_task_error(task, "cannot make an index", -ENOMEM);
    /* For its verdict: places of blocks that nobody decoded are promises. */
    status = wharf_cli_index_make(task, UINT64_MAX, false, &scratch);
    if (status == WHARF_CLI_GOOD)
        status = scan_blocks(task, index, buf);
    index->in_nbytes = scratch.in_nbytes;
    index->out_nbytes = scratch.out_nbytes;
    wharf_gzip_index_deinit(&scratch);
    free(buf);
    return status;
}
