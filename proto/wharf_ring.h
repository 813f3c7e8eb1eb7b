/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf_ring.h: the memory that a client and the daemon share.
 *
 * A session has two ring segments, C and D, and usually an arena; PROTOCOL.md in wharf's
 * documentation explains them and gives the rules, this header and those that it includes give
 * every offset and number.  All integers are little-endian, and every 32 and 64 bit word is
 * naturally aligned, so that one load or store moves it whole; both sides run on 64-bit
 * little-endian machines.
 *
 *   C  written by the client, mapped read-only by the daemon:
 *        0     struct wharf_ring_c       sq_tail, cq_head, cq_wait
 *        1024  struct wharf_submission   n_entries of them: the submission queue (SQ),
 *        then  struct wharf_submission_words   n_entries of them, with FEATURE_DONE_WORDS
 *   D  written by the daemon, sealed so that nobody else can ever map it for writing:
 *        0     struct wharf_ring_d       constants, sq_head, cq_tail, sq_wait, flags
 *        1024  struct wharf_completion   n_entries of them: the completion queue (CQ)
 *        then  uint32_t                  n_entries of them: marks, with FEATURE_MARKS
 *
 * n_entries is a power of two, the same for both queues.  Indices are free-running 32-bit
 * counters that wrap; the entry of index i is number i mod n_entries.  At all times, as counters
 * that do not wrap would be ordered:
 *
 *   cq_head <= cq_tail <= sq_head <= sq_tail <= cq_head + n_entries
 *
 * so every published submission has a place for its completion.  A side that sees the other one
 * break this order ends the session.
 *
 * Shared memory can change at any time, whatever the rules say.  Do not read members through a
 * pointer to one of these structures in it: load words and entries once, into locals.
 */
#ifndef WHARF_RING_H
#define WHARF_RING_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* The members of submissions and completions. */
#include "wharf_job.h"
#include "wharf_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "WHRF" in memory. */
#define WHARF_RING_MAGIC 0x46524857u
/* Of this layout.  It changes only with the control protocol's version. */
#define WHARF_RING_LAYOUT 1u

#define WHARF_RING_MIN_ENTRIES 2u
#define WHARF_RING_MAX_ENTRIES 32768u
/* The default of clients. */
#define WHARF_RING_DEFAULT_ENTRIES 256u
/* Where the entries begin, in C and in D. */
#define WHARF_RING_ENTRIES_OFFSET 1024u
#define WHARF_RING_ENTRY_NBYTES 64u
#define WHARF_RING_PAGE_NBYTES 4096u

/*
 * Words that one side writes while the other reads are 128 bytes apart: cache lines are 64
 * bytes, but processors fetch them in pairs.  sq_looked is read when the daemon is dead.
 */
struct wharf_ring_c {
    uint32_t sq_tail; /* submissions published */
    uint8_t pad_1[124];
    uint32_t cq_head; /* completions taken: their entries may be overwritten */
    uint8_t pad_2[124];
    uint64_t cq_wait; /* a wait word, below: when and how to wake the client */
    uint8_t pad_3[760];
};

struct wharf_ring_d {
    /* These six never change.  OpenQueueReply has the same values; here they are for people and
     * tools that inspect the memory. */
    uint32_t magic;     /* WHARF_RING_MAGIC */
    uint32_t layout;    /* WHARF_RING_LAYOUT */
    uint32_t n_entries; /* of either queue */
    uint32_t reserved;  /* 0 */
    uint64_t arena_nbytes;
    uint64_t generation; /* the running daemon's random number, as in HelloReply */
    uint8_t pad_1[96];
    uint32_t sq_head;   /* submissions that the daemon has copied and accepted */
    uint32_t sq_looked; /* a mark, below: the submission that the daemon is checking */
    uint8_t pad_2[120];
    uint32_t cq_tail; /* completions published; the client may sleep on it by futex */
    uint8_t pad_3[124];
    uint64_t sq_wait; /* a wait word, below: when to wake the daemon */
    uint8_t pad_4[120];
    uint32_t flags; /* enum wharf_ring_flag */
    uint8_t pad_5[508];
};

enum wharf_ring_flag {
    /* The daemon takes no more submissions from this session, finishes those that it took, and
     * closes the connection.  The client resubmits the others. */
    WHARF_RING_DRAINING = 1 << 0,
    /* There is no GPU for this session's jobs at present: all run on the CPU, except those in GPU
     * memory, which wait. */
    WHARF_RING_CPU_ONLY = 1 << 1,
    /* The client has broken a rule: the session has ended, and the pages of the arena that the
     * daemon made for it are freed.  Set before that, and never cleared. */
    WHARF_RING_FORFEITED = 1 << 2,
};

/*
 * Wait words.  The low 32 bits are an index I of the other side's tail.  The bits above say what to
 * do when that tail moves from a value at or before I to one after it: `wake me once entry I is
 * there`. 0 in the upper half requests nothing.  Unknown bits are ignored.
 */
/* Send a packet of one byte on the control socket. */
#define WHARF_WAIT_PACKET ((uint64_t)1 << 32)
/* FUTEX_WAKE on D's cq_tail; only in cq_wait. */
#define WHARF_WAIT_FUTEX ((uint64_t)1 << 33)

/*
 * Marks, with FEATURE_MARKS: the submissions that a daemon worked on when it died.  A mark is the
 * index of a submission plus one; 0 means none.  The last index would give 0; it has the mark of
 * the index half the range away, which is never in flight at the same time.  sq_looked marks the
 * submission that is being taken and checked.  The table after the completions marks started jobs,
 * in any order.  Marks of completed jobs remain.
 */
static inline uint32_t wharf_ring_mark_of(uint32_t index)
{
    return index == UINT32_MAX ? (uint32_t)1 << 31 : index + 1;
}

enum wharf_opcode {
    /* 0 is no operation, so that zeroed memory is never a job. */
    WHARF_OP_NOOP = 1,   /* completes with OK */
    WHARF_OP_DECODE = 2, /* one chunk; with WHARF_JOB_COMPRESS it is compressed */
    WHARF_OP_BATCH = 3,  /* many chunks, by a table; likewise */
    WHARF_OP_CANCEL = 4, /* cancels this session's jobs in flight with a given user_data */
};

/* Region 0 is the session's arena; the client numbers others itself when it registers them. */
#define WHARF_REGION_ARENA 0u

/*
 * A submission.  Members that an operation does not use are 0.
 *
 *            DECODE                BATCH                        CANCEL             NOOP
 *   source   the bytes to take     the table: struct            src_offset is the
 *                                  wharf_chunk, n of them       user_data to cancel
 *   destination  the output        struct wharf_chunk_result,
 *                                  n of them, or dst_nbytes 0
 *                                  where they are not wanted
 */
struct wharf_submission {
    uint8_t opcode;     /* enum wharf_opcode */
    uint8_t job_class;  /* enum wharf_class */
    uint16_t flags;     /* enum wharf_job_flag; of a batch, for each of its chunks */
    uint16_t codec;     /* enum wharf_codec */
    uint16_t parameter; /* as the codec defines; 0 for codecs without parameters */
    uint64_t user_data; /* returned in the completion; the daemon does not interpret it */
    uint64_t src_offset;
    uint64_t src_nbytes;
    uint64_t dst_offset;
    uint64_t dst_nbytes; /* the capacity of the destination */
    uint16_t src_region;
    uint16_t dst_region;
    uint32_t checksum;   /* of a DECODE with WHARF_JOB_CHECKSUM: the CRC-32 of the output */
    uint32_t timeout_us; /* DEADLINE if it is not finished this long after the daemon accepted
                            it; 0 is no deadline, the most is 71 minutes */
    uint16_t encoder;    /* with WHARF_JOB_COMPRESS, one of the codec's, or 0; else 0 */
    uint16_t level;      /* likewise, one of the encoder's, or 0 */
};

/*
 * Flags of a submission that only the ring has, beside those of enum wharf_job_flag.
 */
enum wharf_submission_flag {
    /* With FEATURE_DONE_WORDS, for DECODE and BATCH: the job has a done word. */
    WHARF_SUBMISSION_DONE_WORD = 1 << 5,
    /* With FEATURE_START_WORDS, likewise: the job is not begun before its start word is set. */
    WHARF_SUBMISSION_START_WORD = 1 << 6,
    /* With FEATURE_CHAINS, for a BATCH that decodes: its sources are outputs of earlier batches.
     * Its table begins with a struct wharf_chain, and `checksum` is the index of the submission
     * whose end it waits for. */
    WHARF_SUBMISSION_CHAIN = 1 << 7,
};

/* The most of a session's regions with start words together: the daemon keeps them in memory. */
#define WHARF_RING_MAX_START_NBYTES ((uint64_t)1 << 20)

/*
 * The words of a submission, with FEATURE_DONE_WORDS: the entry of the same number in the table
 * behind the submissions.  It is read only if the submission has a flag for it.  Unused members are
 * 0.
 */
struct wharf_submission_words {
    uint64_t done_offset; /* of a struct wharf_done, a multiple of 64 */
    uint32_t done_serial;
    uint16_t done_region;
    uint16_t start_region;
    uint64_t start_offset; /* of a word of 8 bytes, a multiple of 8 */
    uint32_t start_serial;
    uint32_t start_timeout_us; /* DEADLINE, START_TIME if it is not set so long after the daemon
                                  accepted the job; 0 is the daemon's own limit, and the most */
};

/*
 * One chunk of a batch.  Its lengths have 32 bits, so that two of them fill a cache line; a chunk
 * of 4 GiB has to be a job of its own.
 */
struct wharf_chunk {
    uint64_t src_offset;
    uint64_t dst_offset;
    uint32_t src_nbytes;
    uint32_t dst_nbytes;
    uint32_t checksum; /* with WHARF_JOB_CHECKSUM, as above */
    uint16_t src_region;
    uint16_t dst_region;
};

/*
 * A chain's parts: chunks of earlier batches, whose outputs its sources are made of.  Behind it the
 * chain's own chunks follow, in which src_offset and src_nbytes are the place of the source's first
 * part in the order of parts and their number, and src_region is 0.
 */
struct wharf_chain {
    uint64_t parts_offset;   /* n_parts struct wharf_chunk, as in the earlier batches' tables */
    uint64_t results_offset; /* n_parts struct wharf_chunk_result, their results */
    uint64_t order_offset;   /* n_order uint32_t, numbers of parts */
    uint32_t n_parts;
    uint32_t n_order; /* 0: the order is 0, 1, 2 ..., and order_offset and order_region are 0 */
    uint16_t parts_region;
    uint16_t results_region;
    uint16_t order_region;
    uint16_t reserved_0; /* 0, as all reserved ones */
    uint64_t reserved_1;
    uint64_t reserved_2;
    uint64_t reserved_3;
};

/* Rounds a size up to whole pages, as shared memory has; nbytes leaves room for one more page. */
static inline uint64_t wharf_ring_whole_pages(uint64_t nbytes)
{
    return (nbytes + WHARF_RING_PAGE_NBYTES - 1) & ~(uint64_t)(WHARF_RING_PAGE_NBYTES - 1);
}

/* Where the table of marks begins in D, if it has one. */
static inline size_t wharf_ring_marks_offset(uint32_t n_entries)
{
    return WHARF_RING_ENTRIES_OFFSET + (size_t)n_entries * WHARF_RING_ENTRY_NBYTES;
}

/* The sizes of C and D without tables behind their entries. */
static inline size_t wharf_ring_segment_nbytes(uint32_t n_entries)
{
    return (size_t)wharf_ring_whole_pages(wharf_ring_marks_offset(n_entries));
}

/* Where the table of words begins in C, if it has one. */
static inline size_t wharf_ring_words_offset(uint32_t n_entries)
{
    return WHARF_RING_ENTRIES_OFFSET + (size_t)n_entries * WHARF_RING_ENTRY_NBYTES;
}

/* The size of C. */
static inline size_t wharf_ring_c_nbytes(uint32_t n_entries, int has_words)
{
    uint64_t words_nbytes =
        has_words ? (uint64_t)n_entries * sizeof(struct wharf_submission_words) : 0;

    return (size_t)wharf_ring_whole_pages(wharf_ring_words_offset(n_entries) + words_nbytes);
}

/* The size of D. */
static inline size_t wharf_ring_d_nbytes(uint32_t n_entries, int has_marks)
{
    uint64_t marks_nbytes = has_marks ? (uint64_t)n_entries * sizeof(uint32_t) : 0;

    return (size_t)wharf_ring_whole_pages(wharf_ring_marks_offset(n_entries) + marks_nbytes);
}

/* Whether a session may have this many entries. */
static inline int wharf_ring_n_entries_good(uint32_t n_entries)
{
    return n_entries >= WHARF_RING_MIN_ENTRIES && n_entries <= WHARF_RING_MAX_ENTRIES &&
           (n_entries & (n_entries - 1)) == 0;
}

/* ---- the layout, held ---------------------------------------------------------------------- */

/* By every build of wharf itself; older dialects of a program that includes this have no
 * static_assert. */
#if defined(__cplusplus) || __STDC_VERSION__ >= 201112L

#define WHARF_RING_AT(type, member, offset)                                                        \
    static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define WHARF_RING_SIZE(type, nbytes) static_assert(sizeof(struct type) == (nbytes), #type)

WHARF_RING_AT(wharf_ring_c, sq_tail, 0);
WHARF_RING_AT(wharf_ring_c, cq_head, 128);
WHARF_RING_AT(wharf_ring_c, cq_wait, 256);
WHARF_RING_SIZE(wharf_ring_c, WHARF_RING_ENTRIES_OFFSET);

WHARF_RING_AT(wharf_ring_d, magic, 0);
WHARF_RING_AT(wharf_ring_d, layout, 4);
WHARF_RING_AT(wharf_ring_d, n_entries, 8);
WHARF_RING_AT(wharf_ring_d, reserved, 12);
WHARF_RING_AT(wharf_ring_d, arena_nbytes, 16);
WHARF_RING_AT(wharf_ring_d, generation, 24);
WHARF_RING_AT(wharf_ring_d, sq_head, 128);
WHARF_RING_AT(wharf_ring_d, sq_looked, 132);
WHARF_RING_AT(wharf_ring_d, cq_tail, 256);
WHARF_RING_AT(wharf_ring_d, sq_wait, 384);
WHARF_RING_AT(wharf_ring_d, flags, 512);
WHARF_RING_SIZE(wharf_ring_d, WHARF_RING_ENTRIES_OFFSET);

WHARF_RING_AT(wharf_submission, opcode, 0);
WHARF_RING_AT(wharf_submission, job_class, 1);
WHARF_RING_AT(wharf_submission, flags, 2);
WHARF_RING_AT(wharf_submission, codec, 4);
WHARF_RING_AT(wharf_submission, parameter, 6);
WHARF_RING_AT(wharf_submission, user_data, 8);
WHARF_RING_AT(wharf_submission, src_offset, 16);
WHARF_RING_AT(wharf_submission, src_nbytes, 24);
WHARF_RING_AT(wharf_submission, dst_offset, 32);
WHARF_RING_AT(wharf_submission, dst_nbytes, 40);
WHARF_RING_AT(wharf_submission, src_region, 48);
WHARF_RING_AT(wharf_submission, dst_region, 50);
WHARF_RING_AT(wharf_submission, checksum, 52);
WHARF_RING_AT(wharf_submission, timeout_us, 56);
WHARF_RING_AT(wharf_submission, encoder, 60);
WHARF_RING_AT(wharf_submission, level, 62);
WHARF_RING_SIZE(wharf_submission, WHARF_RING_ENTRY_NBYTES);

WHARF_RING_AT(wharf_submission_words, done_offset, 0);
WHARF_RING_AT(wharf_submission_words, done_serial, 8);
WHARF_RING_AT(wharf_submission_words, done_region, 12);
WHARF_RING_AT(wharf_submission_words, start_region, 14);
WHARF_RING_AT(wharf_submission_words, start_offset, 16);
WHARF_RING_AT(wharf_submission_words, start_serial, 24);
WHARF_RING_AT(wharf_submission_words, start_timeout_us, 28);
WHARF_RING_SIZE(wharf_submission_words, 32);

WHARF_RING_AT(wharf_chunk, src_offset, 0);
WHARF_RING_AT(wharf_chunk, dst_offset, 8);
WHARF_RING_AT(wharf_chunk, src_nbytes, 16);
WHARF_RING_AT(wharf_chunk, dst_nbytes, 20);
WHARF_RING_AT(wharf_chunk, checksum, 24);
WHARF_RING_AT(wharf_chunk, src_region, 28);
WHARF_RING_AT(wharf_chunk, dst_region, 30);
WHARF_RING_SIZE(wharf_chunk, 32);

WHARF_RING_AT(wharf_chain, parts_offset, 0);
WHARF_RING_AT(wharf_chain, results_offset, 8);
WHARF_RING_AT(wharf_chain, order_offset, 16);
WHARF_RING_AT(wharf_chain, n_parts, 24);
WHARF_RING_AT(wharf_chain, n_order, 28);
WHARF_RING_AT(wharf_chain, parts_region, 32);
WHARF_RING_AT(wharf_chain, results_region, 34);
WHARF_RING_AT(wharf_chain, order_region, 36);
WHARF_RING_SIZE(wharf_chain, 64);

WHARF_RING_AT(wharf_chunk_result, bit_offset, 0);
WHARF_RING_AT(wharf_chunk_result, in_nbytes, 8);
WHARF_RING_AT(wharf_chunk_result, out_nbytes, 12);
WHARF_RING_AT(wharf_chunk_result, result, 16);
WHARF_RING_AT(wharf_chunk_result, reason, 18);
WHARF_RING_AT(wharf_chunk_result, engine, 20);
WHARF_RING_AT(wharf_chunk_result, attempt, 21);
WHARF_RING_AT(wharf_chunk_result, reserved, 22);
WHARF_RING_SIZE(wharf_chunk_result, 24);

WHARF_RING_AT(wharf_completion, user_data, 0);
WHARF_RING_AT(wharf_completion, result, 8);
WHARF_RING_AT(wharf_completion, reason, 10);
WHARF_RING_AT(wharf_completion, engine, 12);
WHARF_RING_AT(wharf_completion, attempt, 13);
WHARF_RING_AT(wharf_completion, flags, 14);
WHARF_RING_AT(wharf_completion, bit_offset, 16);
WHARF_RING_AT(wharf_completion, in_nbytes, 24);
WHARF_RING_AT(wharf_completion, out_nbytes, 32);
WHARF_RING_AT(wharf_completion, queue_ns, 40);
WHARF_RING_AT(wharf_completion, run_ns, 48);
WHARF_RING_AT(wharf_completion, first_bad_chunk, 56);
WHARF_RING_AT(wharf_completion, reserved, 60);
WHARF_RING_SIZE(wharf_completion, WHARF_RING_ENTRY_NBYTES);

WHARF_RING_AT(wharf_done, word, 0);
WHARF_RING_AT(wharf_done, bit_offset, 8);
WHARF_RING_AT(wharf_done, in_nbytes, 16);
WHARF_RING_AT(wharf_done, out_nbytes, 24);
WHARF_RING_AT(wharf_done, first_bad_chunk, 32);
WHARF_RING_AT(wharf_done, flags, 36);
WHARF_RING_AT(wharf_done, engine, 38);
WHARF_RING_AT(wharf_done, attempt, 39);
WHARF_RING_AT(wharf_done, reserved_1, 40);
WHARF_RING_SIZE(wharf_done, 64);

#undef WHARF_RING_AT
#undef WHARF_RING_SIZE

#endif

#ifdef __cplusplus
}
#endif

#endif
