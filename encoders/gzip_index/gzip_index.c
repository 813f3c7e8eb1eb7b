/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_index.c: points and windows in memory. */
#include "encoders/gzip_index/gzip_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/decode_job.h"
#include "encoders/deflate/deflate_encode.h"

void wharf_gzip_index_deinit(struct wharf_gzip_index *index)
{
    free(index->points);
    free(index->windows);
    index->points = NULL;
    index->windows = NULL;
    index->n_points = index->points_avail = 0;
    index->windows_nbytes = index->windows_avail = 0;
}

static int reserve_point(struct wharf_gzip_index *index)
{
    uint32_t avail = index->points_avail ? index->points_avail : 64;
    struct wharf_gzip_point *points;

    if (index->n_points < index->points_avail)
        return 0;
    if (index->points_avail > UINT32_MAX / 2)
        return -EFBIG;
    avail = index->points_avail ? 2 * avail : avail;
    points = realloc(index->points, avail * sizeof(*points));
    if (!points)
        return -ENOMEM;
    index->points = points;
    index->points_avail = avail;
    return 0;
}

static int reserve_window(struct wharf_gzip_index *index, size_t nbytes)
{
    size_t avail = 2 * index->windows_avail + nbytes;
    uint8_t *windows;

    if (index->windows_avail - index->windows_nbytes >= nbytes)
        return 0;
    windows = realloc(index->windows, avail);
    if (!windows)
        return -ENOMEM;
    index->windows = windows;
    index->windows_avail = avail;
    return 0;
}

/* Compresses a window.  Returns its new size, or nbytes, with nothing written, if that would not be
 * smaller. */
static size_t pack_window(const uint8_t *window, size_t nbytes, uint8_t *out)
{
    struct wharf_encoder *encoder;
    size_t out_nbytes = nbytes;

    if (nbytes < 2 || wharf_deflate_encoder_new(WHARF_DEFLATE_FRAMING_RAW, NULL, &encoder) < 0)
        return nbytes;
    if (wharf_deflate_encoder_encode(encoder, window, nbytes, out, nbytes - 1, &out_nbytes) < 0)
        out_nbytes = nbytes;
    wharf_deflate_encoder_free(encoder);
    return out_nbytes;
}

int wharf_gzip_index_add(struct wharf_gzip_index *index, const struct wharf_gzip_point *point,
                         const uint8_t *window, bool packs)
{
    struct wharf_gzip_point *added;
    size_t nbytes = point->window_nbytes;
    int r = reserve_point(index);

    if (r == 0)
        r = reserve_window(index, nbytes);
    if (r < 0)
        return r;
    added = &index->points[index->n_points];
    *added = *point;
    added->window_at = index->windows_nbytes;
    added->stored_nbytes = (uint32_t)nbytes;
    if (packs)
        added->stored_nbytes =
            (uint32_t)pack_window(window, nbytes, index->windows + index->windows_nbytes);
    if (nbytes && added->stored_nbytes == nbytes)
        memcpy(index->windows + index->windows_nbytes, window, nbytes);
    index->windows_nbytes += added->stored_nbytes;
    index->n_points++;
    return 0;
}

uint32_t wharf_gzip_index_find(const struct wharf_gzip_index *index, uint64_t out_offset)
{
    uint32_t low = 0;
    uint32_t high = index->n_points;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (index->points[middle].out_offset <= out_offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t wharf_gzip_index_span_nbytes(const struct wharf_gzip_index *index, uint32_t span)
{
    uint64_t begin = index->points[span].out_offset;

    if (span + 1 < index->n_points)
        return index->points[span + 1].out_offset - begin;
    return index->out_nbytes == WHARF_GZIP_INDEX_UNKNOWN ? WHARF_GZIP_INDEX_UNKNOWN
                                                         : index->out_nbytes - begin;
}

bool wharf_gzip_index_window(const struct wharf_gzip_index *index,
                             const struct wharf_gzip_point *point,
                             uint8_t window[WHARF_DEFLATE_WINDOW_NBYTES])
{
    const struct wharf_decode_job job = {
        .codec = WHARF_CODEC_DEFLATE,
        .flags = WHARF_JOB_EXACT_OUTPUT,
        .in = index->windows + point->window_at,
        .in_nbytes = point->stored_nbytes,
        .out = window,
        .out_avail = point->window_nbytes,
    };
    struct wharf_outcome outcome;

    if (point->window_nbytes == 0)
        return true;
    if (point->stored_nbytes == point->window_nbytes) {
        memcpy(window, job.in, point->window_nbytes);
        return true;
    }
    wharf_decode_job_run(&job, 0, &outcome);
    return outcome.result == WHARF_OK && outcome.out_nbytes == point->window_nbytes;
}
