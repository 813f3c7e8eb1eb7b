/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/done_word.h"

#include "daemon/base/touch.h"
#include "daemon/core/job.h"
#include "daemon/core/publish.h"
#include "daemon/core/session.h"
#include "proto/ring_ops.h"

struct telling {
    struct wharf_done *done;
    uint32_t serial;
    struct wharf_completion completion;
};

bool wharf_done_word_is_due(const struct wharf_job *job)
{
    return job->words && job->words->done && !job->words->is_told;
}

static void write_word(void *context)
{
    const struct telling *telling = context;

    wharf_ring_write_done(telling->done, telling->serial, &telling->completion);
}

/* The completion that is published later, without times: the word has none. */
static struct wharf_completion completion_of(const struct wharf_piece *piece)
{
    struct wharf_job_end end = {
        .outcome = piece->outcome,
        .engine = piece->engine,
        .ended_ns = piece->ended_ns,
    };
    struct wharf_completion completion;

    if (piece->kind == WHARF_PIECE_WORD)
        end = piece->job->words->end;
    completion = wharf_job_completion(piece->job, &end);
    if (piece->attempt > completion.attempt)
        completion.attempt = piece->attempt;
    return completion;
}

void wharf_done_word_tell(struct wharf_piece *piece)
{
    const struct wharf_job *job = piece->job;
    bool is_whole = piece->kind == WHARF_PIECE_CHUNK || piece->kind == WHARF_PIECE_WORD;

    if (!is_whole || piece->is_lost || !wharf_done_word_is_due(job))
        return;
    const struct wharf_job_words *words = job->words;
    struct telling telling = {
        .done = (struct wharf_done *)((char *)words->done->segment.address + words->done_offset),
        .serial = words->done_serial,
        .completion = completion_of(piece),
    };
    /* If its page is missing, the client has only the completion. */
    (void)wharf_touch(write_word, &telling);
    piece->is_told = true;
}
