/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_life.h: the memory that a test, the watcher and the daemon of test_daemon.h share, and the
 * steps of the daemon's life.
 */
#ifndef WHARF_TESTS_TEST_LIFE_H
#define WHARF_TESTS_TEST_LIFE_H

#include <stdint.h>
#include <sys/types.h>

/* What a hostile or broken daemon may do; the names say when. */
#define TEST_MISDEED_LIST(X)                                                                       \
    X(HELLO_SILENT)       /* never answers Hello */                                                \
    X(HELLO_HANG_UP)      /* closes instead */                                                     \
    X(HELLO_REFUSED)      /* EDQUOT, with a text of unprintable bytes */                           \
    X(HELLO_BAD_CODE)     /* an Error with no errno value */                                       \
    X(HELLO_VERSION)      /* chooses version 2 */                                                  \
    X(HELLO_FEATURES)     /* chooses features that were not offered */                             \
    X(HELLO_NO_LIMITS)    /* leaves the limits out */                                              \
    X(HELLO_GARBAGE)      /* answers with bytes that are no message */                             \
    X(HELLO_TOO_LONG)     /* answers with more than a packet may have */                           \
    X(HELLO_WRONG_ID)     /* answers what was not asked */                                         \
    X(HELLO_WRONG_BODY)   /* answers with Done */                                                  \
    X(HELLO_WITH_FD)      /* sends a descriptor with Hello */                                      \
    X(HELLO_WAKE_WITH_FD) /* and one with a wake-up */                                             \
    X(QUEUE_REFUSED)      /* ENOMEM */                                                             \
    X(QUEUE_ENTRIES)      /* more entries than were asked for */                                   \
    X(QUEUE_SMALL_ARENA)  /* an arena smaller than was asked for */                                \
    X(QUEUE_NO_FDS)       /* no descriptors */                                                     \
    X(QUEUE_FEW_FDS)      /* one too few */                                                        \
    X(QUEUE_MANY_FDS)     /* one too many */                                                       \
    X(QUEUE_UNSEALED_C)   /* segments that can be shrunk under the client's feet */                \
    X(QUEUE_UNSEALED_D)                                                                            \
    X(QUEUE_UNSEALED_ARENA)                                                                        \
    X(QUEUE_SHORT_C) /* segments that end too early */                                             \
    X(QUEUE_SHORT_D)                                                                               \
    X(QUEUE_SHORT_ARENA)                                                                           \
    X(QUEUE_READ_ONLY_C) /* sealed against writing */                                              \
    X(QUEUE_PIPES)       /* descriptors of another kind */                                         \
    X(QUEUE_FILES)                                                                                 \
    X(TAIL_JUMPS) /* completion index past what was submitted */                                   \
    X(TAIL_GOES_BACK)                                                                              \
    X(UNKNOWN_JOB) /* completes a job that there is not */                                         \
    X(SAME_JOB_TWICE)                                                                              \
    X(CANCEL_WITHOUT_CANCEL) /* completes a cancel that nobody asked for */                        \
    X(OUTPUT_TOO_LONG)       /* claims more output than fits */                                    \
    X(INPUT_TOO_LONG)        /* claims more input than there was */                                \
    X(CHUNK_TOO_LONG)        /* likewise in a batch's results */                                   \
    X(CHUNK_INDEX)           /* first_bad_chunk past the last one */                               \
    X(REPLY_NOBODY_WANTS)    /* a reply to no request, with the first completion */                \
    X(DONE_WITH_FD)          /* a descriptor with Done */                                          \
    X(DONE_GARBAGE)          /* Done is no message */                                              \
    X(DONE_NEVER)            /* Done is not sent */                                                \
    X(STATS_LOOP)            /* the next page is the same one */                                   \
    X(SCRIBBLE)              /* random words into D and the arena, all the time */                 \
    X(WAKE_FLOOD)            /* wake-ups without end; nothing wrong with that */                   \
    X(FAREWELL)              /* after the first job asks to connect again, and closes */           \
    X(FORFEIT)               /* instead of the first job, says so in D too, for good */            \
    X(SILENT_FORFEIT)        /* in D alone */

enum test_misdeed {
    TEST_MISDEED_NONE,
#define X(name) TEST_MISDEED_##name,
    TEST_MISDEED_LIST(X)
#undef X
        TEST_N_MISDEEDS
};

const char *test_misdeed_name(enum test_misdeed misdeed);

struct test_daemon {
    char folder[64];
    char path[80];

    /* Settings. */
    uint32_t misdeed;       /* enum test_misdeed */
    uint32_t die_at_step;   /* SIGKILLs this life at this step; not the next one */
    uint32_t die_one_in;    /* each step is the last with this probability; 0: never */
    uint32_t dies_of_job;   /* first byte of sources in user memory that kill it; 0: none */
    uint32_t dies_at_look;  /* the same, but when they are taken */
    uint32_t blind_deaths;  /* number of lives that end before they take submissions */
    uint32_t idle_deaths;   /* number of lives that end before they run what they took */
    uint32_t has_no_marks;  /* behaves as a version before marks */
    uint32_t has_no_words;  /* behaves as a version before done words */
    uint32_t drain;         /* finish what was taken, then end this life */
    uint32_t restart_us;    /* pause between two lives */
    uint32_t start_us;      /* from listening to answering */
    uint32_t keeps_socket;  /* the watcher listens, as systemd does, so connecting always works */
    uint32_t stays_dead;    /* no further life */
    uint32_t spin_us;       /* polls the rings for so long before it sleeps */
    uint32_t job_us;        /* least time of a job; lowering it ends a running one */
    uint32_t takes_at_once; /* submissions taken before any is run; at least 1 */
    uint32_t cancels_first; /* no job runs before so many were cancelled */
    uint32_t has_gpu;
    uint32_t max_entries;
    uint64_t max_arena_nbytes;
    uint64_t max_job_nbytes;

    /* Results. */
    uint64_t seed;
    uint32_t n_lives;
    uint32_t n_connections; /* accepted in all lives */
    uint32_t n_regions;     /* of the last session that changed any */
    uint64_t n_steps;       /* of the running life */
    uint64_t n_run;         /* jobs decoded in all lives */
    uint64_t n_cancelled;
    uint64_t died_ns; /* when the watcher saw the last death */

    uint32_t stops;
    pid_t watcher;
    pid_t daemon;
    int listen_fd; /* the watcher's, with keeps_socket; otherwise -1 */
};

/* test_daemon_step: a point at which the daemon may die.  Reads the settings. */
void test_daemon_step(struct test_daemon *daemon);

/* test_daemon_chance: a random number below `limit`. */
uint64_t test_daemon_chance(struct test_daemon *daemon, uint64_t limit);

static inline int test_daemon_does(const struct test_daemon *daemon, enum test_misdeed misdeed)
{
    return __atomic_load_n(&daemon->misdeed, __ATOMIC_RELAXED) == (uint32_t)misdeed;
}

#endif
