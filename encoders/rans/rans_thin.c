/* SPDX-License-Identifier: Apache-2.0 */
/* rans_thin.c: takes splits out of a stream: its words, and so its output, stay as they are. */
#include "encoders/rans/rans_thin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/rans/rans_mark.h"

static size_t words_nbytes(const struct wharf_rans_body *body)
{
    return (size_t)body->n_words * WHARF_RANS_WORD_NBYTES;
}

size_t wharf_rans_thin_front_bound(const struct wharf_rans_stream *stream, uint32_t max_splits)
{
    const struct wharf_rans_body *body = &stream->body;
    size_t kept = max_splits < body->n_splits ? max_splits : body->n_splits;

    return stream->body_at + (size_t)(body->words - body->in) + 9 * kept + 16;
}

size_t wharf_rans_thin_bound(const struct wharf_rans_stream *stream, uint32_t max_splits)
{
    return wharf_rans_thin_front_bound(stream, max_splits) + words_nbytes(&stream->body);
}

static uint32_t count_kept(const struct wharf_rans_body *body, uint32_t max_splits)
{
    if (!wharf_rans_can_have_marks(body))
        return 1;
    return max_splits < body->n_splits ? max_splits : body->n_splits;
}

/* Split s of M is kept when s * kept / M steps up: kept - 1 times, evenly. */
static void choose_marks(const struct wharf_rans_body *body, uint32_t kept,
                         struct wharf_rans_mark *marks)
{
    struct wharf_rans_cursor cursor = wharf_rans_first_split(body);
    struct wharf_rans_split split;
    uint32_t n = 0;

    for (uint64_t s = 1; s < body->n_splits; s++) {
        if (s * kept / body->n_splits == (s - 1) * kept / body->n_splits) {
            wharf_rans_skip_split(body, &cursor);
            continue;
        }
        wharf_rans_next_split(body, &cursor, &split);
        marks[n++] = wharf_rans_mark_of(&split);
    }
}

static int write_front(const struct wharf_rans_stream *stream, const uint8_t *in,
                       const struct wharf_rans_plan *plan, uint8_t *out, size_t out_avail,
                       size_t *ret_nbytes)
{
    size_t nbytes = stream->body_at + wharf_rans_fields_nbytes(plan);

    if (nbytes > out_avail)
        return -ENOSPC;
    memcpy(out, in, stream->body_at);
    wharf_rans_write_fields(plan, out + stream->body_at);
    *ret_nbytes = nbytes;
    return 0;
}

int wharf_rans_thin_front(const struct wharf_rans_stream *stream, const uint8_t *in,
                          uint32_t max_splits, uint8_t *out, size_t out_avail, size_t *ret_nbytes)
{
    const struct wharf_rans_body *body = &stream->body;
    uint32_t kept = count_kept(body, max_splits);
    struct wharf_rans_mark *marks;
    struct wharf_rans_plan plan;
    int rc;

    if (max_splits == 0)
        return -EINVAL;
    marks = malloc(kept * sizeof(*marks));
    if (!marks)
        return -ENOMEM;
    choose_marks(body, kept, marks);
    plan = wharf_rans_plan_of(body, marks, kept);
    rc = write_front(stream, in, &plan, out, out_avail, ret_nbytes);
    free(marks);
    return rc;
}

int wharf_rans_thin(const struct wharf_rans_stream *stream, const uint8_t *in, uint32_t max_splits,
                    uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    size_t rest_nbytes = words_nbytes(&stream->body);
    size_t front_nbytes;
    int rc = wharf_rans_thin_front(stream, in, max_splits, out, out_avail, &front_nbytes);

    if (rc < 0)
        return rc;
    if (rest_nbytes > out_avail - front_nbytes)
        return -ENOSPC;
    if (rest_nbytes > 0)
        memcpy(out + front_nbytes, stream->body.words, rest_nbytes);
    *ret_out_nbytes = front_nbytes + rest_nbytes;
    return 0;
}
