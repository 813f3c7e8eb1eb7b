/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_events.h: changes of sessions that the loop thread has to handle.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_CORE_SESSION_EVENTS_H
#define WHARF_DAEMON_CORE_SESSION_EVENTS_H

struct wharf_core;
struct wharf_session;

/* What happened to a session. */
enum wharf_session_news {
    WHARF_SESSION_IS_BROKEN,   /* the client broke the order of indices */
    WHARF_SESSION_IS_DRAINED,  /* all accepted jobs are published */
    WHARF_SESSION_LOST_FILES,  /* the process for its files has ended, or hangs */
    WHARF_SESSION_HAS_DECIDED, /* an import of GPU memory has a result; can repeat */
    WHARF_SESSION_IS_FREE,     /* dead and unused */
};

/* Adds a session, armed: its ring is not polled before wharf_core_doorbell. */
void wharf_core_add_session(struct wharf_core *core, struct wharf_session *session);

/* Sets or clears the flag CPU_ONLY in its ring: whether its jobs have a GPU at present. */
void wharf_core_tell_cpu_only(struct wharf_core *core, struct wharf_session *session);

/* Tells the loop thread that an import of the session's GPU memory has a result. */
void wharf_core_tell_decided(struct wharf_core *core, struct wharf_session *session);

/* The next session with news, and the news; NULL: no more. */
struct wharf_session *wharf_core_next_news(struct wharf_core *core,
                                           enum wharf_session_news *ret_news);

/* The client broke the order of indices. */
void wharf_core_set_broken(struct wharf_core *core, struct wharf_session *session);

/* Tells the loop thread of a session that is dead and unused. */
void wharf_core_release(struct wharf_core *core, struct wharf_session *session);

/* Puts the session on the loop thread's list. */
void wharf_core_tell_loop(struct wharf_core *core, struct wharf_session *session);

#endif
