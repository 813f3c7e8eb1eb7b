/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_ops.h: the steps of both sides of a session's rings.
 *
 * wharfd uses struct wharf_ring_daemon, libwharf struct wharf_ring_client; the layout is in
 * wharf_ring.h, the rules are in PROTOCOL.md, and models/ has the same steps, under the same
 * names, for the model checker.
 *
 * The peer may be hostile and may write its words and entries at any moment.  So each shared
 * word is loaded once by an accessor of the first part, and what was loaded is looked at, never
 * the word again; every index, size and address that decides where memory is touched is a
 * private copy; and nothing that a side wrote itself is ever read back.
 *
 * One thread at a time uses a struct here.  Nothing blocks or allocates; functions that return
 * int return -EPROTO when the peer broke the order of indices: the session is over then, and
 * the struct is not to be used again (but for wharf_ring_reap, see there).
 */
#ifndef WHARF_RING_OPS_H
#define WHARF_RING_OPS_H

#include <errno.h>
#include <string.h>

#include "proto/wharf_ring.h"

#define WHARF_INDEX uint32_t
#define WHARF_INDEX_NAME(verb) wharf_index_##verb
#include "proto/ring_index.h"
#undef WHARF_INDEX
#undef WHARF_INDEX_NAME

/* ---- words: each with the order that it needs ---------------------------------------------- */

/* Client: orders the stores that filled the submissions before the store of sq_tail. */
static inline void wharf_ring_store_sq_tail(uint32_t *sq_tail, uint32_t value)
{
    __atomic_store_n(sq_tail, value, __ATOMIC_RELEASE);
}

/* Daemon: orders the load of sq_tail before the loads of the submissions, and of cq_head. */
static inline uint32_t wharf_ring_load_sq_tail(const uint32_t *sq_tail)
{
    return __atomic_load_n(sq_tail, __ATOMIC_ACQUIRE);
}

/* Daemon: orders the loads of the submissions before the store of sq_head. */
static inline void wharf_ring_store_sq_head(uint32_t *sq_head, uint32_t value)
{
    __atomic_store_n(sq_head, value, __ATOMIC_RELEASE);
}

/* Client: orders nothing: it tells how far the daemon is, and no memory is reused by it. */
static inline uint32_t wharf_ring_load_sq_head(const uint32_t *sq_head)
{
    return __atomic_load_n(sq_head, __ATOMIC_RELAXED);
}

/*
 * Daemon: orders the stores that filled the completions, the last stores to their jobs'
 * destinations, and the loads of every submission taken before, before the store of cq_tail.
 */
static inline void wharf_ring_store_cq_tail(uint32_t *cq_tail, uint32_t value)
{
    __atomic_store_n(cq_tail, value, __ATOMIC_RELEASE);
}

/*
 * Client: orders the load of cq_tail before the loads of the completions and of their jobs'
 * destinations, and before the stores to submissions whose places it set free.
 */
static inline uint32_t wharf_ring_load_cq_tail(const uint32_t *cq_tail)
{
    return __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE);
}

/* Client: orders the loads of the completions before the store of cq_head. */
static inline void wharf_ring_store_cq_head(uint32_t *cq_head, uint32_t value)
{
    __atomic_store_n(cq_head, value, __ATOMIC_RELEASE);
}

/* Daemon: orders the load of cq_head before the stores to completions whose places it set free. */
static inline uint32_t wharf_ring_load_cq_head(const uint32_t *cq_head)
{
    return __atomic_load_n(cq_head, __ATOMIC_ACQUIRE);
}

/* The sleeper's side of a wait word.  What orders it is the fence that follows. */
static inline void wharf_ring_store_wait(uint64_t *wait, uint64_t value)
{
    __atomic_store_n(wait, value, __ATOMIC_RELAXED);
}

/* The waker's side of a wait word.  What orders it is the fence before. */
static inline uint64_t wharf_ring_load_wait(const uint64_t *wait)
{
    return __atomic_load_n(wait, __ATOMIC_RELAXED);
}

/* Daemon: orders what it did for a session before the flag that says so. */
static inline void wharf_ring_store_flags(uint32_t *flags, uint32_t value)
{
    __atomic_store_n(flags, value, __ATOMIC_RELEASE);
}

static inline uint32_t wharf_ring_load_flags(const uint32_t *flags)
{
    return __atomic_load_n(flags, __ATOMIC_ACQUIRE);
}

/*
 * Daemon: stores a mark before it does what the mark tells of.  A process that dies in the middle
 * has done all its stores up to there: only the compiler must not move any.
 */
static inline void wharf_ring_store_mark(uint32_t *mark, uint32_t value)
{
    __atomic_store_n(mark, value, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Client: what orders it is the end of the connection, which it has seen before. */
static inline uint32_t wharf_ring_load_mark(const uint32_t *mark)
{
    return __atomic_load_n(mark, __ATOMIC_RELAXED);
}

/*
 * The waker: orders its store of a tail before its load of the peer's wait word.  Without it the
 * store may still be in this processor's store buffer when the wait word is loaded, while the
 * peer, which has stored the wait word, loads the old tail: both then think that the other one
 * acts.
 */
static inline void wharf_ring_fence_waker(void)
{
    __sync_synchronize();
}

/* The sleeper: orders its store of the wait word before its next load of the peer's tail. */
static inline void wharf_ring_fence_sleeper(void)
{
    __sync_synchronize();
}

/*
 * Whoever ends a job: orders the members of the record, the job's output and its results before the
 * word.  Of streams and kernels that wait for it, the last stores of a GPU's decoder were ordered
 * by its own fence of system scope before this side heard of its end.
 */
static inline void wharf_ring_store_done(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Client: orders the word before the members of the record. */
static inline uint64_t wharf_ring_load_done(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/*
 * Daemon: orders the start word before the loads of the job's source, of whose engine this side's
 * later stores tell.
 */
static inline uint64_t wharf_ring_load_start(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Client, where a processor plays the stream: orders what it did to the source before the word. */
static inline void wharf_ring_store_start(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* ---- entries and other shared bytes -------------------------------------------------------- */

#define WHARF_RING_ENTRY_WORDS (WHARF_RING_ENTRY_NBYTES / 8)

/* Shared entries are only ever seen as words of this type. */
typedef uint64_t __attribute__((may_alias)) wharf_ring_word;

/*
 * Copies one entry out of shared memory.  Atomic loads, since a compiler may load plain memory
 * again later in place of keeping the copy; relaxed, since the tail's load has ordered them.
 */
static inline void wharf_ring_load_entry(void *entry, const wharf_ring_word *shared)
{
    wharf_ring_word *words = (wharf_ring_word *)entry;

    for (unsigned i = 0; i < WHARF_RING_ENTRY_WORDS; i++)
        words[i] = __atomic_load_n(&shared[i], __ATOMIC_RELAXED);
}

/* The same of a submission's words. */
static inline void wharf_ring_load_words(struct wharf_submission_words *words,
                                         const wharf_ring_word *shared)
{
    wharf_ring_word *to = (wharf_ring_word *)words;

    for (unsigned i = 0; i < sizeof(*words) / sizeof(*to); i++)
        to[i] = __atomic_load_n(&shared[i], __ATOMIC_RELAXED);
}

/* What the word of this completion is. */
static inline uint64_t wharf_done_word(uint32_t serial, const struct wharf_completion *completion)
{
    return WHARF_DONE_VALUE(serial) | (uint64_t)completion->reason << 16 | completion->result;
}

/* Whether a done word says that the job of that serial number, or a later one, has ended. */
static inline int wharf_done_is_set(uint64_t word, uint32_t serial)
{
    return (int64_t)(word - WHARF_DONE_VALUE(serial)) >= 0;
}

/* Whether a start word says that the job of that serial number may begin. */
static inline int wharf_start_is_set(uint64_t word, uint32_t serial)
{
    return (int64_t)(word - WHARF_START_VALUE(serial)) >= 0;
}

/* Writes a completion to its done word, which nobody else writes meanwhile. */
static inline void wharf_ring_write_done(struct wharf_done *shared, uint32_t serial,
                                         const struct wharf_completion *completion)
{
    __atomic_store_n(&shared->bit_offset, completion->bit_offset, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->in_nbytes, completion->in_nbytes, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->out_nbytes, completion->out_nbytes, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->first_bad_chunk, completion->first_bad_chunk, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->flags, completion->flags, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->engine, completion->engine, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->attempt, completion->attempt, __ATOMIC_RELAXED);
    wharf_ring_store_done(&shared->word, wharf_done_word(serial, completion));
}

/*
 * The completion that a done word of that serial number tells of: 1 with *ret_completion, whose
 * user_data and times are 0, or 0: it does not.
 */
static inline int wharf_ring_read_done(const struct wharf_done *shared, uint32_t serial,
                                       struct wharf_completion *ret_completion)
{
    uint64_t word = wharf_ring_load_done(&shared->word);

    if (WHARF_DONE_SERIAL(word) != serial)
        return 0;
    memset(ret_completion, 0, sizeof(*ret_completion));
    ret_completion->result = (uint16_t)WHARF_DONE_RESULT(word);
    ret_completion->reason = (uint16_t)WHARF_DONE_REASON(word);
    ret_completion->bit_offset = __atomic_load_n(&shared->bit_offset, __ATOMIC_RELAXED);
    ret_completion->in_nbytes = __atomic_load_n(&shared->in_nbytes, __ATOMIC_RELAXED);
    ret_completion->out_nbytes = __atomic_load_n(&shared->out_nbytes, __ATOMIC_RELAXED);
    ret_completion->first_bad_chunk = __atomic_load_n(&shared->first_bad_chunk, __ATOMIC_RELAXED);
    ret_completion->flags = __atomic_load_n(&shared->flags, __ATOMIC_RELAXED);
    ret_completion->engine = __atomic_load_n(&shared->engine, __ATOMIC_RELAXED);
    ret_completion->attempt = __atomic_load_n(&shared->attempt, __ATOMIC_RELAXED);
    return 1;
}

/* Copies one entry into shared memory. */
static inline void wharf_ring_store_entry(wharf_ring_word *shared, const void *entry)
{
    const wharf_ring_word *words = (const wharf_ring_word *)entry;

    for (unsigned i = 0; i < WHARF_RING_ENTRY_WORDS; i++)
        __atomic_store_n(&shared[i], words[i], __ATOMIC_RELAXED);
}

/*
 * Copies a table or a source out of an arena or a region.  After it the compiler cannot take
 * bytes of the copy from where they came from: it must believe that all memory has changed.
 */
static inline void wharf_ring_copy_in(void *copy, const void *shared, size_t nbytes)
{
    if (nbytes)
        memcpy(copy, shared, nbytes);
    __asm__ volatile("" : : "r"(copy) : "memory");
}

/* Whether [offset, offset + nbytes) lies in a region of region_nbytes bytes. */
static inline int wharf_range_good(uint64_t offset, uint64_t nbytes, uint64_t region_nbytes)
{
    return offset <= region_nbytes && nbytes <= region_nbytes - offset;
}

/* The bits of WHARF_WAIT_* that a tail's move from `from` to `to` has to answer. */
static inline uint64_t wharf_ring_wanted(uint64_t wait, uint32_t from, uint32_t to)
{
    if (!wharf_index_crossed(from, to, (uint32_t)wait))
        return 0;
    return wait & (WHARF_WAIT_PACKET | WHARF_WAIT_FUTEX);
}

/* ---- the daemon's side --------------------------------------------------------------------- */

struct wharf_ring_daemon {
    const struct wharf_ring_c *c; /* for the addresses of words */
    struct wharf_ring_d *d;
    const wharf_ring_word *submissions;
    wharf_ring_word *completions;
    uint32_t n_entries;
    uint32_t cq_head;  /* as last loaded and found good */
    uint32_t cq_tail;  /* completions written; published up to cq_woken */
    uint32_t cq_woken; /* cq_tail when it was last published and the wait word looked at */
    uint32_t sq_head;  /* submissions taken */
    uint32_t sq_tail;  /* as last loaded and found good */
    uint32_t *marks;   /* n_entries of them, or NULL: D has none */
    const wharf_ring_word *words; /* of submissions, or NULL: C has none */
};

/*
 * wharf_ring_daemon_init: for segments that the caller has mapped, C readable and D writable, of
 * wharf_ring_segment_nbytes(n_entries) zeroed bytes each.  n_entries is good.  There are no marks.
 */
static inline void wharf_ring_daemon_init(struct wharf_ring_daemon *ring, const void *c, void *d,
                                          uint32_t n_entries)
{
    memset(ring, 0, sizeof(*ring));
    ring->c = (const struct wharf_ring_c *)c;
    ring->d = (struct wharf_ring_d *)d;
    ring->submissions = (const wharf_ring_word *)((const char *)c + WHARF_RING_ENTRIES_OFFSET);
    ring->completions = (wharf_ring_word *)((char *)d + WHARF_RING_ENTRIES_OFFSET);
    ring->n_entries = n_entries;
}

/* wharf_ring_daemon_use_marks: D has wharf_ring_d_nbytes(n_entries, 1) bytes. */
static inline void wharf_ring_daemon_use_marks(struct wharf_ring_daemon *ring)
{
    ring->marks = (uint32_t *)((char *)ring->d + wharf_ring_marks_offset(ring->n_entries));
}

/* wharf_ring_daemon_use_words: C has wharf_ring_c_nbytes(n_entries, 1) bytes. */
static inline void wharf_ring_daemon_use_words(struct wharf_ring_daemon *ring)
{
    ring->words =
        (const wharf_ring_word *)((const char *)ring->c + wharf_ring_words_offset(ring->n_entries));
}

/*
 * wharf_ring_mark_look: the submission of this index is looked at from now on; no other one of the
 * session is.
 */
static inline void wharf_ring_mark_look(struct wharf_ring_daemon *ring, uint32_t index)
{
    if (ring->marks)
        wharf_ring_store_mark(&ring->d->sq_looked, wharf_ring_mark_of(index));
}

/* wharf_ring_unmark_look: what is to be done with it is known, or done. */
static inline void wharf_ring_unmark_look(struct wharf_ring_daemon *ring)
{
    if (ring->marks)
        wharf_ring_store_mark(&ring->d->sq_looked, 0);
}

/*
 * wharf_ring_mark_begun: the job of this index is begun.  `place`, less than n_entries, is no
 * other's until it is completed; then the mark may stay.
 */
static inline void wharf_ring_mark_begun(struct wharf_ring_daemon *ring, uint32_t place,
                                         uint32_t index)
{
    if (ring->marks)
        wharf_ring_store_mark(&ring->marks[place], wharf_ring_mark_of(index));
}

/* wharf_ring_unmark_begun: it waits again, as if it had never been begun. */
static inline void wharf_ring_unmark_begun(struct wharf_ring_daemon *ring, uint32_t place)
{
    if (ring->marks)
        wharf_ring_store_mark(&ring->marks[place], 0);
}

/*
 * Loads the client's indices.  The client has stored cq_head before sq_tail, so a cq_head loaded
 * after sq_tail is at least the one by which the client found room for its submissions.
 * Returns 0 or -EPROTO.
 */
static inline int wharf_ring_look_submissions(struct wharf_ring_daemon *ring)
{
    uint32_t sq_tail = wharf_ring_load_sq_tail(&ring->c->sq_tail);

    if (wharf_index_may_advance(ring->sq_tail, sq_tail, ring->cq_head + ring->n_entries)) {
        ring->sq_tail = sq_tail;
        return 0;
    }
    uint32_t cq_head = wharf_ring_load_cq_head(&ring->c->cq_head);
    if (!wharf_index_may_advance(ring->cq_head, cq_head, ring->cq_woken))
        return -EPROTO;
    ring->cq_head = cq_head;
    if (!wharf_index_may_advance(ring->sq_tail, sq_tail, cq_head + ring->n_entries))
        return -EPROTO;
    ring->sq_tail = sq_tail;
    return 0;
}

/*
 * wharf_ring_take: copies the next submission.  Returns 1 with *ret_submission filled, 0 if there
 * is none, or -EPROTO.  Each one that was taken has to be completed once; there is room for that.
 * It is marked as looked at before it is, until the next one or wharf_ring_publish_taken.
 */
static inline int wharf_ring_take(struct wharf_ring_daemon *ring,
                                  struct wharf_submission *ret_submission)
{
    if (ring->sq_head == ring->sq_tail) {
        int r = wharf_ring_look_submissions(ring);
        if (r < 0)
            return r;
        if (ring->sq_head == ring->sq_tail)
            return 0;
    }
    uint32_t slot = ring->sq_head & (ring->n_entries - 1);
    wharf_ring_mark_look(ring, ring->sq_head);
    wharf_ring_load_entry(ret_submission, ring->submissions + slot * WHARF_RING_ENTRY_WORDS);
    ring->sq_head++;
    return 1;
}

/*
 * wharf_ring_take_words: copies the words of the submission that was taken last, until one of them
 * is completed.  There are words.
 */
static inline void wharf_ring_take_words(const struct wharf_ring_daemon *ring,
                                         struct wharf_submission_words *ret_words)
{
    uint32_t slot = (ring->sq_head - 1) & (ring->n_entries - 1);

    wharf_ring_load_words(ret_words, ring->words + slot * (sizeof(*ret_words) / 8));
}

/*
 * wharf_ring_publish_taken: tells the client how far the daemon has taken submissions, and that it
 * looks at none of them any more.
 */
static inline void wharf_ring_publish_taken(struct wharf_ring_daemon *ring)
{
    wharf_ring_store_sq_head(&ring->d->sq_head, ring->sq_head);
    wharf_ring_unmark_look(ring);
}

/*
 * wharf_ring_complete: writes the completion of one submission that was taken.  The client sees
 * it after wharf_ring_publish_completions.  Nobody may write the job's destination any more.
 * The place is free: completions written are at most submissions taken, which are at most
 * cq_head + n_entries by wharf_ring_look_submissions.
 */
static inline void wharf_ring_complete(struct wharf_ring_daemon *ring,
                                       const struct wharf_completion *completion)
{
    uint32_t slot = ring->cq_tail & (ring->n_entries - 1);

    wharf_ring_store_entry(ring->completions + slot * WHARF_RING_ENTRY_WORDS, completion);
    ring->cq_tail++;
}

/*
 * wharf_ring_publish_completions: publishes what was written, and says how the client wants to be
 * woken for it: 0, or WHARF_WAIT_FUTEX for FUTEX_WAKE (all waiters) on D's cq_tail, or
 * WHARF_WAIT_PACKET for a packet of one byte, or both.
 */
static inline uint64_t wharf_ring_publish_completions(struct wharf_ring_daemon *ring)
{
    uint32_t from = ring->cq_woken;

    if (ring->cq_tail == from)
        return 0;
    wharf_ring_store_sq_head(&ring->d->sq_head, ring->sq_head);
    wharf_ring_store_cq_tail(&ring->d->cq_tail, ring->cq_tail);
    ring->cq_woken = ring->cq_tail;
    wharf_ring_fence_waker();
    return wharf_ring_wanted(wharf_ring_load_wait(&ring->c->cq_wait), from, ring->cq_tail);
}

/* wharf_ring_daemon_await: asks to be woken for the next submission, and looks at nothing. */
static inline void wharf_ring_daemon_await(struct wharf_ring_daemon *ring)
{
    wharf_ring_store_wait(&ring->d->sq_wait, WHARF_WAIT_PACKET | ring->sq_tail);
}

/*
 * wharf_ring_daemon_arm: asks to be woken for the next submission, then looks again.  Returns 0 if
 * the daemon may sleep on this session, 1 if there is a submission after all, or -EPROTO.
 */
static inline int wharf_ring_daemon_arm(struct wharf_ring_daemon *ring)
{
    wharf_ring_daemon_await(ring);
    wharf_ring_fence_sleeper();
    int r = wharf_ring_look_submissions(ring);
    return r < 0 ? r : ring->sq_head != ring->sq_tail;
}

/* wharf_ring_daemon_disarm: the daemon looks by itself from now on.  Saves needless packets. */
static inline void wharf_ring_daemon_disarm(struct wharf_ring_daemon *ring)
{
    wharf_ring_store_wait(&ring->d->sq_wait, 0);
}

/* ---- the client's side --------------------------------------------------------------------- */

struct wharf_ring_client {
    struct wharf_ring_c *c;
    const struct wharf_ring_d *d; /* for the addresses of words */
    wharf_ring_word *submissions;
    const wharf_ring_word *completions;
    wharf_ring_word *words; /* of submissions, or NULL: C has none */
    uint32_t n_entries;
    uint32_t cq_head;  /* completions reaped */
    uint32_t cq_tail;  /* as last loaded and found good */
    uint32_t sq_tail;  /* submissions written; published up to sq_woken */
    uint32_t sq_woken; /* sq_tail when it was last published and the wait word looked at */
};

/*
 * wharf_ring_client_init: for a new session's segments, C mapped writable and D readable, of
 * wharf_ring_segment_nbytes(n_entries) bytes each.  n_entries is good.
 */
static inline void wharf_ring_client_init(struct wharf_ring_client *ring, void *c, const void *d,
                                          uint32_t n_entries)
{
    memset(ring, 0, sizeof(*ring));
    ring->c = (struct wharf_ring_c *)c;
    ring->d = (const struct wharf_ring_d *)d;
    ring->submissions = (wharf_ring_word *)((char *)c + WHARF_RING_ENTRIES_OFFSET);
    ring->completions = (const wharf_ring_word *)((const char *)d + WHARF_RING_ENTRIES_OFFSET);
    ring->n_entries = n_entries;
}

/* wharf_ring_client_use_words: C has wharf_ring_c_nbytes(n_entries, 1) bytes. */
static inline void wharf_ring_client_use_words(struct wharf_ring_client *ring)
{
    ring->words = (wharf_ring_word *)((char *)ring->c + wharf_ring_words_offset(ring->n_entries));
}

/*
 * wharf_ring_room: how many submissions can be written now.  A client that wants to be able to
 * cancel when all its jobs hang leaves the last place for that.
 */
static inline uint32_t wharf_ring_room(const struct wharf_ring_client *ring)
{
    return ring->n_entries - wharf_index_span(ring->cq_head, ring->sq_tail);
}

/*
 * wharf_ring_submit: writes one submission; there is room for it.  The daemon sees it after
 * wharf_ring_publish_submissions.
 */
static inline void wharf_ring_submit(struct wharf_ring_client *ring,
                                     const struct wharf_submission *submission)
{
    uint32_t slot = ring->sq_tail & (ring->n_entries - 1);

    wharf_ring_store_entry(ring->submissions + slot * WHARF_RING_ENTRY_WORDS, submission);
    ring->sq_tail++;
}

/* wharf_ring_submit_words: writes the words of the next submission, before that is written.  There
 * are words. */
static inline void wharf_ring_submit_words(struct wharf_ring_client *ring,
                                           const struct wharf_submission_words *words)
{
    const wharf_ring_word *from = (const wharf_ring_word *)words;
    uint32_t slot = ring->sq_tail & (ring->n_entries - 1);
    wharf_ring_word *shared = ring->words + slot * (sizeof(*words) / 8);

    for (unsigned i = 0; i < sizeof(*words) / 8; i++)
        __atomic_store_n(&shared[i], from[i], __ATOMIC_RELAXED);
}

/*
 * wharf_ring_publish_submissions: publishes what was written.  Returns WHARF_WAIT_PACKET if the
 * daemon wants a packet of one byte for it, or 0.  The daemon must know first of the places that
 * reaping set free, so cq_head goes before.
 */
static inline uint64_t wharf_ring_publish_submissions(struct wharf_ring_client *ring)
{
    uint32_t from = ring->sq_woken;

    if (ring->sq_tail == from)
        return 0;
    wharf_ring_store_cq_head(&ring->c->cq_head, ring->cq_head);
    wharf_ring_store_sq_tail(&ring->c->sq_tail, ring->sq_tail);
    ring->sq_woken = ring->sq_tail;
    wharf_ring_fence_waker();
    return wharf_ring_wanted(wharf_ring_load_wait(&ring->d->sq_wait), from, ring->sq_tail) &
           WHARF_WAIT_PACKET;
}

/* Loads the daemon's tail: never more completions than submissions.  Returns 0 or -EPROTO. */
static inline int wharf_ring_look_completions(struct wharf_ring_client *ring)
{
    uint32_t cq_tail = wharf_ring_load_cq_tail(&ring->d->cq_tail);

    if (!wharf_index_may_advance(ring->cq_tail, cq_tail, ring->sq_woken))
        return -EPROTO;
    ring->cq_tail = cq_tail;
    return 0;
}

/*
 * wharf_ring_reap: copies the next completion.  Returns 1 with *ret_completion filled, 0 if there
 * is none, or -EPROTO.  Once the daemon is gone, this drains what it left: reap until 0 (or
 * -EPROTO, which means the same then: what is left has to be submitted elsewhere).
 */
static inline int wharf_ring_reap(struct wharf_ring_client *ring,
                                  struct wharf_completion *ret_completion)
{
    if (ring->cq_head == ring->cq_tail) {
        int r = wharf_ring_look_completions(ring);
        if (r < 0)
            return r;
        if (ring->cq_head == ring->cq_tail)
            return 0;
    }
    uint32_t slot = ring->cq_head & (ring->n_entries - 1);
    wharf_ring_load_entry(ret_completion, ring->completions + slot * WHARF_RING_ENTRY_WORDS);
    ring->cq_head++;
    return 1;
}

/*
 * wharf_ring_client_arm: asks to be woken, in the way `kinds` says, when n_wanted completions
 * (at least 1, at most the number of those outstanding) are there to be reaped; then looks again.
 * Returns how many there are, or -EPROTO.  With fewer than n_wanted the client may sleep: on its
 * control socket, or by FUTEX_WAIT on D's cq_tail with ring->cq_tail as the expected value.  After
 * that it arms again or disarms.
 */
static inline int wharf_ring_client_arm(struct wharf_ring_client *ring, uint64_t kinds,
                                        uint32_t n_wanted)
{
    wharf_ring_store_wait(&ring->c->cq_wait, kinds | (uint32_t)(ring->cq_head + n_wanted - 1));
    wharf_ring_fence_sleeper();
    int r = wharf_ring_look_completions(ring);
    return r < 0 ? r : (int)wharf_index_span(ring->cq_head, ring->cq_tail);
}

/* wharf_ring_client_disarm: the client looks by itself from now on.  Saves needless wake-ups. */
static inline void wharf_ring_client_disarm(struct wharf_ring_client *ring)
{
    wharf_ring_store_wait(&ring->c->cq_wait, 0);
}

#endif
