/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cpu_here.h"

#include "daemon/clock.h"
#include "daemon/front.h"
#include "encoders/decode_poll.h"

/* The longest estimate, and when to give up: 64 KiB take at most some 110 us of ordinary data, and
 * a wake-up is some 15 us.  Decoders ask at least every 2 ms. */
#define LONGEST_NS 150000u
#define LIMIT_NS 300000u

/* Parts of time for listening, for one for decoding. */
#define REST_PARTS 2

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

/* Whether it is all that there is to do, and short. */
static bool is_lone(struct wharf_front *front)
{
    if (front->n_workers == 0 || front->n_sleeping < front->n_workers ||
        wharf_place_n_for_cpu(front) != 1)
        return false;
    const struct wharf_job *job = wharf_place_first_for_cpu(front, LONGEST_NS);
    return job && job->submission.opcode == WHARF_OP_DECODE &&
           job->session->engine != WHARF_ENGINE_REFERENCE;
}

void wharf_cpu_here_run(struct wharf_front *front, struct wharf_cpu_here *here)
{
    uint64_t now_ns = wharf_now_ns();
    struct wharf_piece piece;

    if (now_ns < here->rest_until_ns || !is_lone(front) ||
        !wharf_front_next(front, LONGEST_NS, &piece))
        return;
    struct running running = {.poll.ask = ask, .until_ns = now_ns + LIMIT_NS};
    wharf_front_leave(front);
    wharf_cpu_run(front, &here->buffer, &piece, &running.poll);
    wharf_front_enter(front);
    here->rest_until_ns = piece.ended_ns + REST_PARTS * (piece.ended_ns - now_ns);
    if (running.has_given_up) {
        wharf_front_going_on(front, &piece, piece.ended_ns);
        /* What it has used stays charged. */
        piece.charged_ns = 0;
        wharf_front_put_back(front, &piece);
    } else {
        piece.job->begun_ns = piece.begun_ns;
        wharf_front_done(front, &piece);
    }
}
