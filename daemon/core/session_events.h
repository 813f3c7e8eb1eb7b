/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_events.h: what becomes of sessions, and the loop thread hears of.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_CORE_SESSION_EVENTS_H
#define WHARF_DAEMON_CORE_SESSION_EVENTS_H

struct wharf_core;
struct wharf_session;

/* What became of a session, for the loop thread. */
enum wharf_session_news {
    WHARF_SESSION_IS_BROKEN,   /* the client broke the order of indices */
    WHARF_SESSION_IS_DRAINED,  /* all that it took is published */
    WHARF_SESSION_LOST_FILES,  /* the process for its files has ended, or hangs */
    WHARF_SESSION_HAS_DECIDED, /* it is known what becomes of GPU memory; again and again */
    WHARF_SESSION_IS_FREE,     /* dead, and nobody uses it any more */
};

/* Its ring is not looked at before wharf_core_doorbell: its client has been told to ring. */
void wharf_core_add_session(struct wharf_core *core, struct wharf_session *session);

/* Sets the flag CPU_ONLY in its ring, or takes it back: whether its jobs have a GPU at present. */
void wharf_core_tell_cpu_only(struct wharf_core *core, struct wharf_session *session);

/* The loop thread is to look at what became of GPU memory of the session. */
void wharf_core_tell_decided(struct wharf_core *core, struct wharf_session *session);

/* The next session that there is news of, and which; NULL: no more. */
struct wharf_session *wharf_core_next_news(struct wharf_core *core,
                                           enum wharf_session_news *ret_news);

/* The client broke the order of indices. */
void wharf_core_set_broken(struct wharf_core *core, struct wharf_session *session);

/* Tells the loop thread of a dead session that nobody uses any more. */
void wharf_core_release(struct wharf_core *core, struct wharf_session *session);

/* The loop thread is to hear of the session. */
void wharf_core_tell_loop(struct wharf_core *core, struct wharf_session *session);

#endif
