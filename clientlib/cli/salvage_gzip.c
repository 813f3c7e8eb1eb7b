/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage_gzip.c: decodes damaged gzip, member by member.
 *
 * Blocks of BGZF are decoded by all cores as long as they are good.  Of a bad member what decodes
 * is written, and then the next one is searched for.  Where the damage is, nobody knows: a decoder
 * often runs on behind it, over the next member's beginning.  So the search begins some way before
 * the error, though not before the bad member's own beginning, nor before the last error: else many
 * beginnings that share one end would all be decoded to there.
 */
#include "clientlib/cli/salvage_gzip.h"

#include "clientlib/cli/bgzf_pipe.h"
#include "clientlib/cli/salvage_find.h"
#include "clientlib/cli/stream_pipe.h"
#include "encoders/deflate/inflate_stream.h"

enum {
    /* Errors are mostly found within some hundred bytes, and in BGZF within a block. */
    BACK_NBYTES = 64 << 10,
    /* All cores begin anew so many times, and once more for so much input: where every other block
     * is bad, what they had decoded ahead would be for nothing. */
    FREE_STARTS = 16,
    START_NBYTES = 16 << 20,
};

struct gzip {
    struct wharf_cli_salvage *salvage;
    unsigned wanted;
    uint64_t at;         /* here a member begins */
    uint64_t n_starts;   /* of all cores */
    uint64_t last_error; /* where one was met */
    bool is_done;
};

/* From a bad place on: the next member.  Without one it is done. */
static int find_next(struct gzip *gzip, uint64_t from, struct wharf_cli_salvage_found *ret_found)
{
    int status = wharf_cli_salvage_find(gzip->salvage, from, gzip->wanted, NULL, ret_found);

    gzip->at = ret_found->offset;
    gzip->is_done = status != WHARF_CLI_GOOD || !ret_found->kind;
    return status;
}

/* Behind the last member, as gzip would have it, may stand members whose beginning is damaged; or
 * `is_bad` says that what stands there has to be one. */
static int look_behind(struct gzip *gzip, uint64_t end, bool is_bad)
{
    struct wharf_cli_task *task = gzip->salvage->task;
    struct wharf_cli_salvage_found found;
    struct wharf_cli_fault fault = {
        .result = WHARF_BAD_DATA,
        .reason = WHARF_REASON_GZIP_MAGIC,
        .bit_offset = 8 * end,
        .chunk = WHARF_CLI_NO_CHUNK,
    };
    int status = find_next(gzip, end, &found);

    if (status != WHARF_CLI_GOOD)
        return status;
    if (found.kind || (is_bad && found.has_bytes))
        wharf_cli_salvage_note(gzip->salvage, &fault, 0, 0);
    else if (found.has_bytes)
        wharf_cli_say_rest(task, end);
    return WHARF_CLI_GOOD;
}

/* Writes blocks until something else comes; *ret_go_on: which is to be decoded as gzip. */
static int decode_blocks(struct gzip *gzip, bool *ret_go_on)
{
    struct wharf_cli_task *task = gzip->salvage->task;
    enum wharf_cli_bgzf_next next;
    int status;

    *ret_go_on = true;
    if (gzip->wanted != WHARF_CLI_WANTS_BLOCK ||
        gzip->n_starts > FREE_STARTS + gzip->at / START_NBYTES)
        return WHARF_CLI_GOOD;
    gzip->n_starts++;
    status = wharf_cli_bgzf_pipe(task, gzip->at, &gzip->at, &next);
    gzip->is_done = status == WHARF_CLI_GOOD && wharf_cli_output_is_full(task->output);
    if (status != WHARF_CLI_GOOD || gzip->is_done)
        return status;
    *ret_go_on = next == WHARF_CLI_BGZF_GZIP;
    return *ret_go_on ? status : look_behind(gzip, gzip->at, next == WHARF_CLI_BGZF_OTHER);
}

static int decode_member(struct gzip *gzip)
{
    struct wharf_cli_stream_rescue rescue;
    struct wharf_cli_salvage_found found;
    struct wharf_cli_fault fault = {.chunk = WHARF_CLI_NO_CHUNK};
    uint64_t error_at, from;
    int status = wharf_cli_stream_rescue(
        gzip->salvage->task, wharf_inflate_stream_new(WHARF_INFLATE_GZIP), gzip->at, &rescue);

    if (status != WHARF_CLI_GOOD)
        return status;
    if (rescue.outcome.result == WHARF_OK)
        return look_behind(gzip, rescue.end, false);
    fault.result = rescue.outcome.result;
    fault.reason = rescue.outcome.reason;
    fault.bit_offset = 8 * gzip->at + rescue.outcome.bit_offset;
    wharf_cli_salvage_note(gzip->salvage, &fault, rescue.n_doubtful, 0);
    error_at = fault.bit_offset / 8;
    from = error_at > BACK_NBYTES ? error_at - BACK_NBYTES : 0;
    if (from <= rescue.member_start)
        from = rescue.member_start + 1;
    if (from < gzip->last_error)
        from = gzip->last_error;
    gzip->last_error = error_at;
    return find_next(gzip, from, &found);
}

int wharf_cli_salvage_gzip(struct wharf_cli_salvage *salvage, uint64_t offset, bool is_bgzf)
{
    struct gzip gzip = {
        .salvage = salvage,
        .wanted = is_bgzf ? WHARF_CLI_WANTS_BLOCK : WHARF_CLI_WANTS_MEMBER,
        .at = offset,
    };
    int status = WHARF_CLI_GOOD;

    while (status == WHARF_CLI_GOOD && !gzip.is_done) {
        bool go_on;

        status = decode_blocks(&gzip, &go_on);
        if (status == WHARF_CLI_GOOD && !gzip.is_done && go_on)
            status = decode_member(&gzip);
    }
    return status;
}
