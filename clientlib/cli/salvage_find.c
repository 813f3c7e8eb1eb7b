/* SPDX-License-Identifier: Apache-2.0 */
/* salvage_find.c: searches a damaged file for where decoding can begin again. */
#include "clientlib/cli/salvage_find.h"

#include <errno.h>

#include "encoders/deflate/inflate_stream.h"
#include "encoders/gzip/bgzf.h"
#include "encoders/gzip/gzip_format.h"

enum {
    /* As much of a candidate is looked at before it is tried. */
    LOOK_NBYTES = WHARF_CONTAINER_LOOK_NBYTES,

    /* So much output, or input, without an error is no accident: of random bits a Deflate decoder
     * takes some hundred bytes. */
    TRIAL_OUT_NBYTES = 32 << 10,
    TRIAL_IN_NBYTES = 256 << 10,
    TRIAL_READ_NBYTES = 4 << 10,

    /* Candidates that fail may cost so many times what was searched, and this.  Beyond that the
     * search goes on behind what they took, where else it would at their second byte. */
    TRIAL_FACTOR = 8,
    TRIAL_FREE_NBYTES = 64 << 20,
    TRIAL_OUT_PER_IN = 16, /* bytes of output that cost as much as one of input */

    /* What it costs to decode one that is bad too. */
    BAD_NBYTES = 64 << 10,
};
_Static_assert(2 * (TRIAL_IN_NBYTES + WHARF_CLI_SALVAGE_SEARCH_NBYTES) <=
                   WHARF_CLI_SALVAGE_KEEP_NBYTES,
               "what a candidate took can be searched again, from a pipe too");

/* ---- gzip members ---------------------------------------------------------------------------- */

/* Gives a trial more input; -errno. */
static int feed(struct wharf_cli_salvage *salvage, struct wharf_stream *stream, uint64_t offset,
                uint64_t *ret_nbytes)
{
    size_t avail;
    uint8_t *space = wharf_stream_space(stream, &avail);
    int64_t n = wharf_cli_input_read_at(salvage->task->input, offset, space,
                                        avail < TRIAL_READ_NBYTES ? avail : TRIAL_READ_NBYTES);

    if (n < 0)
        return (int)n;
    wharf_stream_fill(stream, (size_t)n, n == 0);
    salvage->n_tried += (uint64_t)n;
    *ret_nbytes += (uint64_t)n;
    return 0;
}

enum verdict { IS_NOTHING, IS_BAD_MEMBER, IS_MEMBER };

/* A member that only its trailer denies is one.  So is one of BGZF, whose header is no accident, if
 * it gives anything. */
static int verify(const struct wharf_stream *stream, bool is_block, uint64_t out_nbytes)
{
    struct wharf_outcome outcome;

    wharf_stream_outcome(stream, &outcome);
    if (outcome.result == WHARF_OK || wharf_stream_verified(stream) > 0)
        return IS_MEMBER;
    return outcome.reason == WHARF_REASON_GZIP_CHECKSUM ||
                   outcome.reason == WHARF_REASON_GZIP_LENGTH || (is_block && out_nbytes)
               ? IS_BAD_MEMBER
               : IS_NOTHING;
}

/* What begins there, enum verdict, or -errno. */
static int try_stream(struct wharf_cli_salvage *salvage, struct wharf_stream *stream,
                      uint64_t offset, bool is_block, uint64_t *ret_nbytes)
{
    uint64_t out_nbytes = 0;

    salvage->n_tried += TRIAL_READ_NBYTES;

    while (out_nbytes < TRIAL_OUT_NBYTES && *ret_nbytes < TRIAL_IN_NBYTES) {
        const uint8_t *span;
        size_t nbytes;
        int r;

        switch (wharf_stream_next(stream, &span, &nbytes)) {
        case WHARF_STREAM_INPUT:
            r = feed(salvage, stream, offset + *ret_nbytes, ret_nbytes);
            if (r < 0)
                return r;
            break;
        case WHARF_STREAM_OUTPUT:
            out_nbytes += nbytes;
            salvage->n_tried += nbytes / TRIAL_OUT_PER_IN;
            break;
        default:
            return verify(stream, is_block, out_nbytes);
        }
    }
    return IS_MEMBER;
}

/* The same; *ret_nbytes is what it took. */
static int try_member(struct wharf_cli_salvage *salvage, uint64_t offset, bool is_block,
                      uint64_t *ret_nbytes)
{
    struct wharf_stream *stream = wharf_inflate_stream_new(WHARF_INFLATE_GZIP);
    int r;

    *ret_nbytes = 0;
    if (!stream)
        return -ENOMEM;
    r = try_stream(salvage, stream, offset, is_block, ret_nbytes);
    wharf_stream_free(stream);
    return r;
}

static bool begins_as_gzip(const uint8_t *in, size_t in_nbytes)
{
    return in_nbytes >= WHARF_GZIP_FIXED_HEADER_NBYTES && in[0] == WHARF_GZIP_MAGIC_0 &&
           in[1] == WHARF_GZIP_MAGIC_1 && in[2] == WHARF_GZIP_METHOD_DEFLATE &&
           !(in[3] & WHARF_GZIP_FLAGS_RESERVED);
}

/* ---- all kinds ------------------------------------------------------------------------------- */

/* What a search is about. */
struct search {
    struct wharf_cli_salvage *salvage;
    unsigned wanted;
    const struct wharf_container_reader *const *readers;
    struct wharf_cli_salvage_found *found;
};

static bool is_over_budget(const struct wharf_cli_salvage *salvage)
{
    return salvage->n_tried > TRIAL_FREE_NBYTES + TRIAL_FACTOR * salvage->n_searched;
}

/* How far to go on from a place where nothing begins, or 0 where something does, or -errno. */
static int64_t look_for_member(const struct search *search, const uint8_t *in, size_t in_nbytes,
                               uint64_t offset)
{
    struct wharf_cli_salvage *salvage = search->salvage;
    bool is_block = !(search->wanted & WHARF_CLI_WANTS_MEMBER);
    uint32_t block_nbytes;
    uint64_t nbytes;
    int r;

    if (!begins_as_gzip(in, in_nbytes) ||
        (is_block && wharf_bgzf_look(in, in_nbytes, &block_nbytes) != 1))
        return 1;
    r = try_member(salvage, offset, is_block, &nbytes);
    if (r < 0)
        return r;
    if (r == IS_MEMBER || (r == IS_BAD_MEMBER && !is_over_budget(salvage))) {
        salvage->n_tried += r == IS_BAD_MEMBER ? BAD_NBYTES : 0;
        search->found->kind = search->wanted & (WHARF_CLI_WANTS_MEMBER | WHARF_CLI_WANTS_BLOCK);
        return 0;
    }
    return is_over_budget(salvage) && nbytes ? (int64_t)nbytes : 1;
}

static int64_t look_for_frame(const struct search *search, const uint8_t *in, size_t in_nbytes,
                              uint64_t offset)
{
    struct wharf_container_frame frame;

    if (!wharf_container_look(in, in_nbytes, offset, &frame))
        return 1;
    for (int i = 0; search->readers && i < 2 && !search->found->reader; i++)
        if (search->readers[i] && wharf_container_fits(search->readers[i], &frame))
            search->found->reader = search->readers[i];
    if (search->readers && !search->found->reader)
        return 1;
    search->found->frame = frame;
    search->found->kind = WHARF_CLI_WANTS_FRAME;
    return 0;
}

static int64_t look(const struct search *search, const uint8_t *in, size_t in_nbytes,
                    uint64_t offset)
{
    const unsigned gzip = WHARF_CLI_WANTS_MEMBER | WHARF_CLI_WANTS_BLOCK;

    if (in[0])
        search->found->has_bytes = true;
    if ((search->wanted & gzip) && in[0] == WHARF_GZIP_MAGIC_0)
        return look_for_member(search, in, in_nbytes, offset);
    if ((search->wanted & WHARF_CLI_WANTS_FRAME) &&
        (in[0] == 'W' || in[0] == (uint8_t)WHARF_CONTAINER_MAGIC[0]))
        return look_for_frame(search, in, in_nbytes, offset);
    return 1;
}

/* Looks at the places in a buffer, of which the last ones are for the next.  Returns how far it
 * came: where it is, if something was found; or -errno. */
static int64_t look_at_all(const struct search *search, const uint8_t *buf, size_t nbytes,
                           uint64_t offset)
{
    size_t end = nbytes < WHARF_CLI_SALVAGE_SEARCH_NBYTES ? nbytes : nbytes - LOOK_NBYTES;
    size_t at = 0;

    while (at < end) {
        int64_t n = look(search, buf + at, nbytes - at, offset + at);

        if (n < 0)
            return n;
        if (n == 0)
            break;
        at += (size_t)n;
    }
    return (int64_t)at;
}

int wharf_cli_salvage_find(struct wharf_cli_salvage *salvage, uint64_t offset, unsigned wanted,
                           const struct wharf_container_reader *const readers[2],
                           struct wharf_cli_salvage_found *ret_found)
{
    const struct search search = {salvage, wanted, readers, ret_found};
    int64_t n = 1;

    *ret_found = (struct wharf_cli_salvage_found){.kind = 0};
    while (n > 0 && !ret_found->kind) {
        n = wharf_cli_input_read_at(salvage->task->input, offset, salvage->buf,
                                    WHARF_CLI_SALVAGE_SEARCH_NBYTES);
        if (n > 0)
            n = look_at_all(&search, salvage->buf, (size_t)n, offset);
        if (n < 0)
            return wharf_cli_task_read_error(salvage->task, (int)n);
        offset += (uint64_t)n;
        salvage->n_searched += (uint64_t)n;
        if (ret_found->kind)
            break;
    }
    ret_found->offset = offset;
    return WHARF_CLI_GOOD;
}
