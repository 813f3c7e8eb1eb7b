/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_here.c: decodes a lone chunk in the loop thread.
 *
 * The chunk is taken as by a worker, under the core lock, and decoded without it.  A poll gives it
 * up after a limit.  Three bounds protect other clients: the estimate, the share of the loop's
 * time, and the exclusion of tenants whose memory blocked the thread.
 */
#include "daemon/cpu/cpu_here.h"

#include "daemon/base/clock.h"
#include "daemon/base/thread_waits.h"
#include "daemon/core/core.h"
#include "daemon/core/done_word.h"
#include "daemon/core/engine_status.h"
#include "daemon/cpu/cpu_run.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/job_pieces.h"
#include "encoders/decode_poll.h"

/* The longest estimate, and when to give up: 64 KiB of text take 60 to 150 us, and a wake-up 13 to
 * 35 us.  Decoders ask at least every 2 ms. */
#define LONGEST_NS 150000u
#define LIMIT_NS 300000u

/* How many times the decode's duration the thread then spends on other work. */
#define REST_PARTS 2

/*
 * A page of a client's memory can take as long as the client likes: while the client gives memory
 * back to the system, which takes 0.4 s for 512 MiB, every access waits, and the loop serves
 * nobody.  So a tenant whose memory blocked this thread for longer than a decoder takes between two
 * polls is excluded for this many times as long.
 */
#define SLOW_NS (3 * (uint64_t)WHARF_NS_PER_MS)
#define BARRED_PARTS 1000

struct running {
    struct wharf_decode_poll poll;
    uint64_t until_ns;
    bool has_given_up;
};

static uint32_t ask(struct wharf_decode_poll *poll)
{
    struct running *running = (struct running *)poll;

    if (wharf_now_ns() < running->until_ns)
        return WHARF_OK;
    running->has_given_up = true;
    return WHARF_CANCELLED;
}

/* The only job, if there is exactly one and it is short; else NULL. */
static struct wharf_job *lone_job(struct wharf_core *core, uint64_t now_ns)
{
    if (core->workers.n_workers == 0 || core->workers.n_sleeping < core->workers.n_workers ||
        wharf_place_n_for_cpu(core) != 1)
        return NULL;
    struct wharf_job *job = wharf_core_first(core, LONGEST_NS);
    /* Encoders do not poll. */
    bool is_for_here = job && job->submission.opcode == WHARF_OP_DECODE &&
                       !wharf_job_is_owed_word(job) && !wharf_job_compresses(job) &&
                       !wharf_job_discards(job) && job->session->engine != WHARF_ENGINE_REFERENCE &&
                       !wharf_regions_have_file(job->source, job->destination) &&
                       now_ns >= job->session->tenant->not_here_until_ns;
    return is_for_here ? job : NULL;
}

void wharf_cpu_here_run(struct wharf_core *core, struct wharf_cpu_here *here)
{
    uint64_t now_ns = wharf_now_ns();
    struct wharf_job *job = now_ns < here->rest_until_ns ? NULL : lone_job(core, now_ns);
    struct wharf_piece piece;

    if (!job)
        return;
    struct running running = {.poll.ask = ask, .until_ns = now_ns + LIMIT_NS};
    struct wharf_tenant *tenant = job->session->tenant;
    wharf_core_take(core, job, &piece);
    wharf_core_leave(core);
    long n_waits_before = wharf_thread_waits();
    wharf_cpu_run(core, &here->buffer, &piece,
                  &(struct wharf_cpu_others){&running.poll, NULL, NULL});
    if (!running.has_given_up)
        wharf_done_word_tell(&piece);
    uint64_t took_ns = wharf_now_ns() - piece.begun_ns;
    bool has_waited = took_ns > SLOW_NS && wharf_thread_waits() != n_waits_before;
    wharf_core_enter(core);
    if (has_waited)
        tenant->not_here_until_ns = piece.ended_ns + BARRED_PARTS * took_ns;
    here->rest_until_ns = piece.ended_ns + REST_PARTS * (piece.ended_ns - now_ns);
    if (running.has_given_up) {
        wharf_core_going_on(core, &piece, piece.ended_ns);
        /* The used time stays charged. */
        piece.charged_ns = 0;
        wharf_core_put_back(core, &piece);
    } else {
        job->begun_ns = piece.begun_ns;
        wharf_core_done(core, &piece);
    }
}
