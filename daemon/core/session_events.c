/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/session_events.h"

#include "daemon/base/list.h"
#include "daemon/core/activity.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/file_io.h"
#include "daemon/core/front.h"
#include "daemon/core/session.h"

void wharf_front_tell_loop(struct wharf_front *front, struct wharf_session *session)
{
    if (!wharf_list_is_linked(&session->event_link))
        wharf_list_append(&front->events, &session->event_link);
    front->wake_loop = true;
}

void wharf_front_add_session(struct wharf_front *front, struct wharf_session *session)
{
    wharf_list_append(&front->sessions, &session->session_link);
    session->tenant->stats.n_sessions++;
    wharf_front_tell_cpu_only(front, session);
}

void wharf_front_tell_cpu_only(struct wharf_front *front, struct wharf_session *session)
{
    session->ring_flags &= ~(uint32_t)WHARF_RING_CPU_ONLY;
    if (!wharf_place_has_gpu(front, session->engine))
        session->ring_flags |= WHARF_RING_CPU_ONLY;
    wharf_ring_store_flags(&session->ring.d->flags, session->ring_flags);
}

void wharf_front_set_broken(struct wharf_front *front, struct wharf_session *session)
{
    session->is_broken = true;
    session->state = WHARF_SESSION_DRAINING;
    wharf_list_remove(&session->publish_link);
    wharf_front_unwatch(front, session);
    wharf_front_tell_loop(front, session);
}

void wharf_front_release(struct wharf_front *front, struct wharf_session *session)
{
    if (wharf_session_is_unused(session))
        wharf_front_tell_loop(front, session);
}

void wharf_front_tell_decided(struct wharf_front *front, struct wharf_session *session)
{
    session->has_decided = true;
    wharf_front_tell_loop(front, session);
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

struct wharf_session *wharf_front_next_news(struct wharf_front *front,
                                            enum wharf_session_news *ret_news)
{
    struct wharf_session *session;

    while ((session = WHARF_LIST_FIRST(&front->events, struct wharf_session, event_link))) {
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
