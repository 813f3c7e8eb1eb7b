/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_parts.h: one Deflate, zlib or gzip stream decoded by all warps of a GPU; C and C++.
 *
 * The source is cut into parts.  Kernels run one behind the other, in which no block waits for
 * another:
 *
 *   find      each part: a place where a block may begin (kernels/inflate/inflate_find.cuh)
 *   measure   from there to a place that a later part begins at: how much output that is, and its
 *             last 32 KiB, with markers for bytes of the unknown window (inflate_measure.cuh)
 *   chain     which parts follow one another from the stream's first bit on: the links, and where
 *             their output belongs (inflate_chain.cuh)
 *   windows   the last 32 KiB of each link, in three kernels (inflate_windows.cuh)
 *   deliver   each link again, as bytes, at its place, behind its window (inflate_deliver.cuh)
 *   rest      what no link has, by one block of warps, and the stream's outcome (inflate_rest.cuh)
 *   crc       if wanted, the CRC-32 of the whole output (inflate_crc.cuh)
 *
 * A place that is found, and what is measured from it, is a guess.  INVARIANT: a part is a link
 * only if the link before it ended, between two blocks, exactly where the part begins.  The first
 * begins at the stream's first bit.  So links are what one decoder that runs through would decode,
 * whatever the guesses.  Links end before whatever is not plainly good: an error, a full
 * destination, parts that do not meet.  There the rest begins, which alone reports errors but for
 * wrong checksums.
 *
 * Bounds: a part is measured over at most `most_nbytes` of source and WHARF_INFLATE_MOST_OUT bytes
 * of output, and the search for its beginning is cut off.
 */
#ifndef WHARF_KERNELS_INFLATE_PARTS_H
#define WHARF_KERNELS_INFLATE_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/wharf_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Positions within a part, in bits and eighths of one, fit 32 bits: so large is none. */
#define WHARF_INFLATE_MAX_STREAM_NBYTES ((uint64_t)1 << 36)
/* A part's output, whose positions fit those of a chunk. */
#define WHARF_INFLATE_MOST_OUT ((uint32_t)1 << 27)
/* Units of 16 bits: the window, and the ring in which a part is measured. */
#define WHARF_INFLATE_WINDOW_NUNITS ((uint32_t)1 << 15)
#define WHARF_INFLATE_RING_NUNITS ((uint32_t)1 << 16)
/* The search of a part may look so far behind it. */
#define WHARF_INFLATE_LOOK_NBYTES ((uint32_t)65 << 10)
#define WHARF_INFLATE_NOWHERE UINT64_MAX
#define WHARF_INFLATE_OPEN UINT32_MAX
#define WHARF_INFLATE_NO_END UINT32_MAX

/* A part of the source.  Positions are in bits of the stream. */
struct wharf_inflate_part {
    uint64_t start;  /* where a block may begin, or NOWHERE */
    uint64_t end;    /* where it ended: in front of a block, or behind the stream */
    uint32_t slack;  /* a stored block may begin so many bits before `start` too */
    uint32_t next;   /* the part that begins there; n_parts: the stream ends; OPEN: it is no link */
    uint32_t n_out;  /* bytes of output */
    uint32_t n_head; /* those up to the first end of a member, or NO_END */
    uint32_t n_tail; /* with an end: those behind the last one */
};

/* A part that is decoded.  Offsets are in bytes of the output. */
struct wharf_inflate_link {
    uint64_t start, end; /* as the part's */
    uint64_t out_begin;
    uint64_t member_begin; /* of the member that is open at the link's begin */
    uint64_t open_end;     /* where the member that is open at the link's end ends, or the links */
    uint32_t open_owner;   /* the link in which that is, or n_links */
    uint32_t n_out;
    uint32_t part;
    /* Of the member that ends first in this link, if any does. */
    uint32_t has_end;
    uint32_t sums[2];  /* of all its links, by atomics */
    uint32_t want_sum; /* its trailer */
    uint32_t wrong_length;
    uint64_t trailer; /* where that is, in bits */
    uint64_t member_nbytes;
    /* The first other member of the link with a wrong trailer: a reason, and where that is. */
    uint32_t flaw;
    uint64_t flaw_bit;
};

struct wharf_inflate_control {
    uint32_t n_searched, n_measured, n_delivered; /* taken by warps */
    uint32_t n_links;
    uint32_t is_whole;     /* the last link reaches the stream's end */
    uint32_t has_failed;   /* a link was not what was measured: then the rest is everything */
    uint32_t rest_sums[2]; /* of the member that is open behind the links */
    uint64_t rest_bit;     /* where the links end */
    uint64_t rest_out, rest_member; /* their output, and where that member began in it */
    uint32_t out_crc;               /* of a good stream, where one is wanted */
};

/* Pointers are the device's. */
struct wharf_inflate_job {
    const uint8_t *in;
    uint8_t *out;
    uint64_t in_nbytes, out_avail;
    struct wharf_outcome *outcome;
    uint32_t codec; /* deflate, zlib or gzip */
    uint32_t n_parts;
    uint64_t part_nbytes;
    uint64_t most_nbytes;
    uint32_t slice_nbytes;
    uint32_t n_rings;
    uint32_t n_groups;             /* of links, whose windows a block each follows */
    uint32_t n_warps;              /* that the GPU holds at once */
    uint32_t n_blocks;             /* by which links are delivered, one each; 0: by warps */
    uint32_t wants_crc;            /* of the output */
    uint32_t first_part, end_part; /* that one start of find, or of measure, has */
    uint32_t n_found; /* parts that measure may look at: the search has begun with them */
    uint32_t first_link, end_link; /* that one start of deliver has, as far as there are so many */
    /* The decode ends as CANCELLED some time after this word got the value; NULL: never. */
    const uint64_t *stop;
    uint64_t stop_value;
    /* Scratch. */
    struct wharf_inflate_control *control;
    struct wharf_inflate_part *parts; /* n_parts */
    struct wharf_inflate_link *links; /* n_parts */
    uint32_t *jumps;                  /* 2 * n_parts */
    uint32_t *reached;                /* n_parts */
    uint16_t *tails;                  /* n_parts windows */
    uint16_t *rings;
};

/* What a plan takes of a GPU. */
struct wharf_inflate_shape {
    uint32_t n_warps;           /* that measure at once */
    uint32_t n_blocks;          /* of warps that deliver at once */
    uint32_t n_groups;          /* of links */
    uint64_t least_nbytes;      /* a shorter source is one part, which is the rest */
    uint64_t least_part_nbytes; /* shorter parts are not worth their search */
    uint64_t least_most_nbytes; /* what a part may be measured over, of the shortest stream */
    uint32_t slice_nbytes;      /* of source, and of output, that are looked at at once: a chunk's
                                   most; in tests less, but far more than a region of a block has */
};

/*
 * Cuts a job of codec and in_nbytes into parts.  Returns the size of its scratch, a multiple of
 * 256.  It never decreases with in_nbytes.
 */
size_t wharf_inflate_plan(struct wharf_inflate_job *job, const struct wharf_inflate_shape *shape);

/* Of the first in_nbytes of a job's source: how many parts can be searched that have no more; and
 * of n_found parts that have been searched, how many can be measured as if all had been. */
uint32_t wharf_inflate_parts_within(const struct wharf_inflate_job *job, uint64_t in_nbytes);
uint32_t wharf_inflate_parts_behind(const struct wharf_inflate_job *job, uint32_t n_found);

/* The most of a source that measuring a part looks at from any header on: a name in that can be as
 * long as the stream, and each part would read all of it. */
uint32_t wharf_inflate_measured_slice(const struct wharf_inflate_job *job);

/* Shares out the scratch of a job with a plan. */
void wharf_inflate_lend(struct wharf_inflate_job *job, void *scratch);

struct CUstream_st;

/* Loads the kernels into the current GPU. */
int wharf_cuda_load_inflate(struct wharf_inflate_shape *ret_shape);

/* Starts a planned job.  0 or -errno. */
int wharf_cuda_start_inflate(const struct wharf_inflate_job *job, struct CUstream_st *stream);

/*
 * The same in steps, for who brings the source in slices, or takes the output in pieces: find, and
 * measure, parts from job->first_part to job->end_part; all from chain to windows; deliver links
 * from job->first_link to job->end_link; and the rest, with the CRC.  If the plan has one part it
 * is the rest, and the others do nothing.
 */
int wharf_cuda_start_inflate_find(const struct wharf_inflate_job *job, struct CUstream_st *stream);
int wharf_cuda_start_inflate_measure(const struct wharf_inflate_job *job,
                                     struct CUstream_st *stream);
int wharf_cuda_start_inflate_chain(const struct wharf_inflate_job *job, struct CUstream_st *stream);
int wharf_cuda_start_inflate_deliver(const struct wharf_inflate_job *job,
                                     struct CUstream_st *stream);
int wharf_cuda_start_inflate_rest(const struct wharf_inflate_job *job, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
