/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_stage.c: the places of pieces in their sessions' staging areas (core/file_staging.h).
 *
 * A piece has a place from its read to its end.  If it ends before the read, because its job was
 * stopped, the place is left to the read: `left` has it until the answer, the end of the process or
 * the time limit, and pins the session meanwhile.
 */
#include "daemon/gpu/gpu_stage.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/file_io.h"
#include "daemon/core/file_staging.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/placement/place.h"

/* Places that are looked at under one hold of the core lock. */
#define MOST_LOOKS 64

void wharf_gpu_stage_init(struct wharf_gpu_backend *backend)
{
    wharf_list_init(&backend->files.fresh);
    wharf_list_init(&backend->files.reading);
    wharf_list_init(&backend->files.read);
    wharf_list_init(&backend->files.ready);
    wharf_list_init(&backend->files.waiting);
    wharf_list_init(&backend->files.left);
}

/* Jobs that waited for room are placed anew. */
void wharf_gpu_stage_tell_of_room(struct wharf_gpu_backend *backend, struct wharf_session *session)
{
    if (wharf_file_staging_has_room_again(session->file_io->staging) &&
        session->state != WHARF_SESSION_DEAD)
        wharf_place_look_again(backend->core, session);
}

/* Leaves a place to its read.  There are as many entries as unanswered reads. */
static void leave(struct wharf_gpu_backend *backend, struct wharf_session *session,
                  const struct wharf_gpu_stage *stage)
{
    struct wharf_file_left *left = session->file_io->staging->left;

    while (wharf_list_is_linked(&left->link))
        left++;
    left->session = session;
    left->place = stage->place;
    left->patience = stage->patience;
    session->n_pins++;
    wharf_list_append(&backend->files.left, &left->link);
}

void wharf_gpu_stage_release(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    struct wharf_session *session = piece->piece.job->session;

    if (!piece->stage.is_there)
        return;
    piece->stage.is_there = false;
    if (!piece->stage.is_answered) {
        leave(backend, session, &piece->stage);
        return;
    }
    wharf_file_staging_give_back(session->file_io->staging, piece->stage.place);
    wharf_gpu_stage_tell_of_room(backend, session);
}

static void let_go(struct wharf_gpu_backend *backend, struct wharf_file_left *left)
{
    struct wharf_session *session = left->session;

    wharf_list_remove(&left->link);
    session->n_pins--;
    if (wharf_file_io_is_lost(session->file_io))
        wharf_core_tell_loop(backend->core, session);
    wharf_core_release(backend->core, session);
}

void wharf_gpu_stage_see_to_left(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    for (unsigned n = 0; n < MOST_LOOKS && !wharf_list_is_empty(&backend->files.left); n++) {
        struct wharf_file_left *left =
            WHARF_LIST_FIRST(&backend->files.left, struct wharf_file_left, link);
        struct wharf_file_io *io = left->session->file_io;
        struct wharf_file_end end;
        bool is_over = wharf_file_io_is_staged(io, left->place, &left->patience, now_ns, 0, &end);
        if (is_over && end.how == WHARF_FILE_DONE) {
            wharf_file_staging_answered(io->staging);
            wharf_file_staging_give_back(io->staging, left->place);
            wharf_gpu_stage_tell_of_room(backend, left->session);
        }
        if (is_over || backend->stop)
            let_go(backend, left);
        else
            wharf_list_rotate(&backend->files.left);
    }
}

void wharf_gpu_stage_await(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    piece->is_faulting = false;
    backend->flight.n_without_places++;
    wharf_list_append(&backend->files.waiting, &piece->link);
}
