/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf_job.h: what a job may ask for.
 *
 * Job flags, classes and engines, with pinned values: the same numbers stand in the ring's
 * submission and completion entries, in the control protocol and in the public API.
 */
#ifndef WHARF_JOB_H
#define WHARF_JOB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Flags of a job.  The first three are checked after a good decode, in this order; the first that
 * is not met gives the job's outcome, whose bit_offset is the end of the stream: eight times the
 * number of its bytes.
 */
enum wharf_job_flag {
    /* Nothing follows the end of the stream in the source; else BAD_DATA, INPUT_LEFT. */
    WHARF_JOB_EXACT_INPUT = 1 << 0,
    /* The output fills the destination; else OUTPUT_SHORT, OUTPUT_MISSING. */
    WHARF_JOB_EXACT_OUTPUT = 1 << 1,
    /* The output has the CRC-32 that the job gives; else BAD_CHECKSUM, JOB_CHECKSUM.  It is the
     * CRC-32 of gzip, zlib and zip: reflected polynomial edb88320, of no bytes 0. */
    WHARF_JOB_CHECKSUM = 1 << 2,
    /* Through a daemon, keep no output, which is decoded for its outcome alone: a job with this has
     * no destination, and dst_nbytes, or out_avail, bounds the output all the same. */
    WHARF_JOB_DISCARD = 1 << 3,
    /* Compress the source to one stream of the codec, instead of decoding it.  No other flag may be
     * set. */
    WHARF_JOB_COMPRESS = 1 << 4,
};
#define WHARF_JOB_KNOWN_FLAGS                                                                      \
    ((uint32_t)(WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT | WHARF_JOB_CHECKSUM))

/*
 * Encoders, for jobs that compress.  A codec's encoders are numbered from 1 in the order of
 * wharf_codec.h; levels start at 1, and 0 is the encoder's default.
 */
#define WHARF_ENCODER_DEFAULT 0u
/* For lz4, snappy and zstd, in libwharf only: the encoder without their libraries. */
#define WHARF_ENCODER_PLAIN 255u

/*
 * A job's parameter from here on is the number of a registered model, for codecs that have them;
 * those below are the codec's own.
 */
#define WHARF_FIRST_MODEL 256u

/* Which jobs go first. */
enum wharf_class {
    WHARF_CLASS_DEFAULT = 0, /* what OpenQueueRequest said */
    WHARF_CLASS_INTERACTIVE = 1,
    WHARF_CLASS_NORMAL = 2,
    WHARF_CLASS_BACKGROUND = 3, /* to compress: in idle time alone */
};

/* What runs jobs.  All engines give the same bytes and the same outcomes. */
enum wharf_engine {
    WHARF_ENGINE_AUTO = 0,      /* the fastest available engine for the job */
    WHARF_ENGINE_CPU = 1,       /* the fast decoders on the CPU */
    WHARF_ENGINE_REFERENCE = 2, /* plain and slow, zlib for Deflate; for cross-checks */
    WHARF_ENGINE_GPU = 3,       /* a daemon's GPU */
    WHARF_ENGINE_SIMT = 4,      /* a daemon's device code run on the CPU: slow, for tests */
};

/*
 * wharf_engine_name: "auto", "cpu", "reference", "gpu" or "simt"; "unknown" for other values.
 * The string is static.  Safe from any thread.
 */
const char *wharf_engine_name(uint32_t engine);

#ifdef __cplusplus
}
#endif

#endif
