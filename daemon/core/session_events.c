/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_events.c: the list of sessions with news for the loop thread; each news is reported once.
 */
#include "daemon/core/session_events.h"

#include "daemon/base/list.h"
#include "daemon/core/activity.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/file_io.h"
#include "daemon/core/session.h"

void wharf_core_tell_loop(struct wharf_core *core, struct wharf_session *session)
{
    if (!wharf_list_is_linked(&session->event_link))
        wharf_list_append(&core->events, &session->event_link);
    core->wake_loop = true;
}

void wharf_core_add_session(struct wharf_core *core, struct wharf_session *session)
{
    wharf_list_append(&core->sessions, &session->session_link);
    session->tenant->stats.n_sessions++;
    wharf_core_tell_cpu_only(core, session);
}

void wharf_core_tell_cpu_only(struct wharf_core *core, struct wharf_session *session)
{
    session->ring_flags &= ~(uint32_t)WHARF_RING_CPU_ONLY;
    if (!wharf_place_has_gpu(core, session->engine))
        session->ring_flags |= WHARF_RING_CPU_ONLY;
    wharf_ring_store_flags(&session->ring.d->flags, session->ring_flags);
}

void wharf_core_set_broken(struct wharf_core *core, struct wharf_session *session)
{
    session->is_broken = true;
    session->state = WHARF_SESSION_DRAINING;
    wharf_list_remove(&session->publish_link);
    wharf_core_unwatch(core, session);
    wharf_core_tell_loop(core, session);
}

void wharf_core_release(struct wharf_core *core, struct wharf_session *session)
{
    if (wharf_session_is_unused(session))
        wharf_core_tell_loop(core, session);
}

void wharf_core_tell_decided(struct wharf_core *core, struct wharf_session *session)
{
    session->has_decided = true;
    wharf_core_tell_loop(core, session);
}

static bool is_news(struct wharf_session *session, enum wharf_session_news news)
{
    if (session->told & 1u << news)
        return false;
    switch (news) {
    case WHARF_SESSION_IS_BROKEN:
        return session->is_broken && session->state != WHARF_SESSION_DEAD;
    case WHARF_SESSION_IS_DRAINED:
        return session->state == WHARF_SESSION_DRAINING && !session->is_broken &&
               session->n_in_flight == 0;
    case WHARF_SESSION_LOST_FILES:
        return session->file_io && wharf_file_io_is_lost(session->file_io) &&
               session->state != WHARF_SESSION_DEAD;
    case WHARF_SESSION_HAS_DECIDED:
        return session->has_decided && session->state != WHARF_SESSION_DEAD;
    default:
        return wharf_session_is_unused(session);
    }
}

struct wharf_session *wharf_core_next_news(struct wharf_core *core,
                                           enum wharf_session_news *ret_news)
{
    struct wharf_session *session;

    while ((session = WHARF_LIST_FIRST(&core->events, struct wharf_session, event_link))) {
        wharf_list_remove(&session->event_link);
        for (enum wharf_session_news news = 0; news <= WHARF_SESSION_IS_FREE; news++) {
            if (!is_news(session, news))
                continue;
            if (news == WHARF_SESSION_HAS_DECIDED)
                session->has_decided = false;
            else
                session->told |= (uint8_t)(1u << news);
            if (news == WHARF_SESSION_IS_FREE)
                wharf_list_remove(&session->session_link);
            *ret_news = news;
            return session;
        }
    }
    return NULL;
}
