/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf_cuda.h: decompress chunks on a GPU, in the program's own CUDA context.  This header is
 * libwharf-cuda's manual.
 *
 *     struct wharf_cuda_batch batch = WHARF_CUDA_BATCH_INIT;
 *     struct wharf_cuda *cuda;
 *     size_t scratch_nbytes;
 *
 *     cudaSetDevice(0);
 *     if (wharf_cuda_open(&cuda) < 0)
 *         die(wharf_cuda_error_message());
 *     batch.codec = WHARF_CODEC_LZ4;
 *     batch.n_chunks = n;
 *     batch.in = d_sources, batch.in_nbytes = d_source_sizes;         // arrays in GPU memory
 *     batch.out = d_destinations, batch.out_avail = d_capacities;
 *     batch.outcomes = d_outcomes;
 *     wharf_cuda_decode_scratch(cuda, &batch, &scratch_nbytes);
 *     cudaMalloc(&batch.scratch, scratch_nbytes);
 *     batch.scratch_nbytes = scratch_nbytes;
 *     wharf_cuda_decode(cuda, &batch, stream);                        // returns at once
 *
 * Compile and link with `pkg-config --cflags --libs wharf-cuda`, or with CMake's
 * find_package(wharf_cuda) and the target wharf::cuda.  The header is C99 and C++11 and includes
 * none of CUDA's.  example_cuda.c is a whole program.
 *
 * libwharf-cuda is for programs that have a CUDA context and trust what runs in it.  The daemon
 * (wharf.h) is for processes that share a GPU and do not trust each other.
 *
 * WHAT IS DECODED.  Batches: n chunks of one codec and one parameter, a warp for each chunk, or a
 * block of warps where chunks are few.  A chunk is at most WHARF_CUDA_MAX_CHUNK_NBYTES, compressed
 * and decompressed.  For one large stream there are calls with which the whole GPU works on it:
 * wharf_cuda_rans_decode and wharf_cuda_inflate.  A batch never uses these: they cut a stream up on
 * the host, which does not see a batch's sizes.  Bytes and outcomes are those of the CPU engine
 * (wharf_decompress), in every member: result, reason, bit_offset, sizes.
 *
 * CALLS THAT START WORK (wharf_cuda_decode, wharf_cuda_decode_chain, wharf_cuda_sizes,
 * wharf_cuda_rans_decode, wharf_cuda_inflate, wharf_cuda_encode) put kernels into a stream and
 * return.  They do not synchronise, allocate, load code or take a lock.  So they can be captured
 * into a CUDA graph, which can be replayed any number of times, and be made from any number of
 * threads and streams at once.  No block of a kernel waits for another: they run in part of a GPU
 * too (green contexts, MPS with a percentage of threads).
 *
 * What a call takes by pointer is read as follows:
 *   the struct itself                  before the call returns; it need not stay
 *   its arrays (in, in_nbytes, ...)    by the GPU, in stream order, in each replay anew
 *   sources, destinations, scratch     likewise
 *
 * All of that memory must be reachable by the GPU: its own, pinned or managed.  (Pinned host memory
 * is read over the link, which is then the limit.)
 *
 * SCRATCH is GPU memory that a call uses while it runs.  It is the caller's, aligned to
 * WHARF_CUDA_SCRATCH_ALIGN; what it holds before does not matter.  Two calls whose kernels can run
 * at the same time need two: one scratch for each stream is enough, and one for each graph that can
 * run beside others.
 *
 * Scratch can come from CUDA's pool of memory, in stream order.  The pool gives it to whoever comes
 * next as soon as the stream is past the call:
 *
 *     cudaMallocAsync(&batch.scratch, scratch_nbytes, stream);
 *     wharf_cuda_decode(cuda, &batch, stream);
 *     cudaFreeAsync(batch.scratch, stream);
 *
 * These three calls do not wait for the GPU, and can be captured into a graph, which then owns the
 * scratch.  By default the pool gives its free memory back to the driver whenever the program
 * synchronises, so that the next batch allocates anew: set cudaMemPoolAttrReleaseThreshold to the
 * scratch of all batches that run at once.
 *
 * ERRORS.  What is wrong with a call is its return value: 0, or a negative errno number, and
 * wharf_cuda_error_message has the words.  Then nothing was started and no output is touched.
 * (After -EIO part of it may have been.)  What becomes of the data is in the outcomes.  Each
 * function below lists its own errors; every one can give these:
 *   -EINVAL      an argument is NULL or out of range where that is not allowed, or the current GPU
 *                is not that of the handle
 *   -E2BIG       a struct has members set that this version does not know
 *   -EIO         the CUDA context is broken, by whichever kernel: the process can use it no more
 *
 * WHO CHECKS WHAT.  Compressed bytes are hostile: any bytes at all give an outcome, nothing outside
 * a chunk's source is read and nothing outside its destination is written, in time linear in their
 * sizes.  Pointers, sizes and capacities are the caller's word.  The GPU checks for each chunk that
 * a pointer with a size is not NULL, that a range does not wrap around the address space, that
 * source and destination do not overlap, and that sizes are within limits: otherwise the chunk's
 * result is WHARF_BAD_REQUEST, with the reason that the CPU engine gives.  Nobody checks that
 * memory is there, that arrays have n_chunks entries, or that chunks do not share destinations.  A
 * source that changes while it is decoded may give any outcome and any bytes within the
 * destination, and no access outside.
 *
 * THREADS.  All functions are safe from several threads at once, with the same handle too;
 * wharf_cuda_close needs it for itself.  A thread's current GPU must be the handle's.
 *
 * CUDA.  The library has its own copy of CUDA's runtime in it, of the same contexts and streams:
 * whatever CUDA a program uses, runtime or driver interface, is not touched, nor are its errors. It
 * needs a driver as new as that copy (`wharf_cuda_open` says so), and a GPU of compute capability
 * 8.0 or later.
 *
 * STRUCTS THAT GROW begin with their own size, as wharf.h says of its own.
 */
#ifndef WHARF_CUDA_H
#define WHARF_CUDA_H

#include <stddef.h>
#include <stdint.h>

/* Of libwharf, whose functions name results and reasons. */
#include "wharf_codec.h"  /* enum wharf_codec */
#include "wharf_job.h"    /* enum wharf_job_flag */
#include "wharf_result.h" /* results, struct wharf_outcome */

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA's stream: both CUstream and cudaStream_t are pointers to it.  NULL is the default stream. */
struct CUstream_st;

#define WHARF_CUDA_SCRATCH_ALIGN ((size_t)256)
#define WHARF_CUDA_MAX_CHUNK_NBYTES ((size_t)1 << 28)
#define WHARF_CUDA_MAX_CHUNKS ((size_t)1 << 30)

/* ---- handles --------------------------------------------------------------------------- */

/* The kernels, loaded into one GPU. */
struct wharf_cuda;

/*
 * wharf_cuda_open: loads all kernels into the calling thread's current GPU and context, so that no
 * later call has to.  Takes some tenths of a second, and may wait for running work.
 *   ret_cuda     not NULL; receives the handle, which the caller gives to wharf_cuda_close.
 *                Untouched on failure.
 * Returns 0, -ENOMEM (in host or GPU memory), -ENODEV (there is no GPU or driver, or it is too old,
 * or the library was built without code for it), -EBUSY (another process has the GPU for itself) or
 * an error of every call.
 */
int wharf_cuda_open(struct wharf_cuda **ret_cuda);

/*
 * wharf_cuda_close: closes a handle.  NULL is allowed.  Free all models of the handle before; no
 * call with it may be running.  Running kernels and captured graphs continue to work.
 */
void wharf_cuda_close(struct wharf_cuda *cuda);

/* wharf_cuda_version: the library's version, such as "0.1.0".  Static. */
const char *wharf_cuda_version(void);

/*
 * wharf_cuda_error_message: one line, without a newline, about the calling thread's last call that
 * returned a negative number.  Empty before any; never NULL.  Good until the thread's next call.
 */
const char *wharf_cuda_error_message(void);

/*
 * wharf_cuda_can_decode: 1 if the GPU decodes this codec (enum wharf_codec), else 0, also for
 * unknown codecs.  wharf_cuda_can_encode: the same for encoding, which works for codecs of lines.
 * wharf_cuda_can_size: the same for finding sizes, which works for codecs where it is faster than
 * decoding: not for deflate, zlib and gzip.
 */
int wharf_cuda_can_decode(uint32_t codec);
int wharf_cuda_can_encode(uint32_t codec);
int wharf_cuda_can_size(uint32_t codec);

/* ---- models ---------------------------------------------------------------------------- */

/* A registered model of rans, which streams can omit. */
struct wharf_cuda_model;

/*
 * wharf_cuda_model_new: prepares a model in GPU memory.  Allocates memory and waits for a copy,
 * so it cannot be captured.
 *   codec        WHARF_CODEC_RANS, the only codec with models
 *   model        as wharf_make_rans_model makes it; host memory, hostile, not kept
 *   ret_model    not NULL; receives the model, which goes to wharf_cuda_model_free.
 * Returns 0, -EBADMSG (it is no model: the message says why), -EOPNOTSUPP (another codec), -ENOMEM
 * or an error of every call.
 */
int wharf_cuda_model_new(struct wharf_cuda *cuda, uint32_t codec, const void *model,
                         size_t model_nbytes, struct wharf_cuda_model **ret_model);

/*
 * wharf_cuda_model_free: frees a model.  NULL is allowed.  No batch that names it may be running,
 * or be replayed later.  May wait for the GPU.
 */
void wharf_cuda_model_free(struct wharf_cuda_model *model);

/* ---- decoding -------------------------------------------------------------------------- */

/*
 * A batch of n_chunks chunks.  Arrays have one entry for each chunk, are in memory that the GPU
 * can access, and have the alignment of their entries in C.  Sources and destinations may have any
 * alignment; multiples of 16 are faster.
 */
struct wharf_cuda_batch {
    uint32_t struct_nbytes;    /* sizeof(struct wharf_cuda_batch) */
    uint32_t codec;            /* enum wharf_codec */
    uint32_t parameter;        /* the codec's: for rle1 and rle2 the type of values (enum
                                  wharf_rle_type), for rans 0 for bytes and 1 for 16-bit symbols,
                                  0 for others */
    uint32_t flags;            /* enum wharf_job_flag, or 0 */
    size_t n_chunks;           /* 0 to WHARF_CUDA_MAX_CHUNKS; 0 starts nothing */
    const void *const *in;     /* sources; one may be NULL if its size is 0 */
    const size_t *in_nbytes;   /* their sizes in bytes */
    void *const *out;          /* destinations; one may be NULL if its capacity is 0 */
    const size_t *out_avail;   /* their capacities in bytes */
    const uint32_t *checksums; /* with WHARF_JOB_CHECKSUM the CRC-32 that each output must have;
                                  else not looked at */
    struct wharf_outcome *outcomes;       /* receive the chunks' outcomes */
    const struct wharf_cuda_model *model; /* of all chunks, in place of `parameter`; NULL: none */
    void *scratch;                        /* of the size that wharf_cuda_decode_scratch returns */
    size_t scratch_nbytes;
};
#define WHARF_CUDA_BATCH_INIT                                                                      \
    {                                                                                              \
        sizeof(struct wharf_cuda_batch), 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL,     \
            NULL, 0                                                                                \
    }

/*
 * wharf_cuda_decode_scratch: the size of a batch's scratch.  Uses codec, parameter, flags,
 * n_chunks and model; all pointers to GPU memory may be NULL.  The size never decreases with
 * n_chunks, so that of the largest batch suffices for all.
 *   ret_nbytes   not NULL; a multiple of WHARF_CUDA_SCRATCH_ALIGN, never 0.  72 bytes a chunk and
 *                a few hundred; rans without a model 128 KiB more for each warp that the GPU holds
 *                at once (277 MB on an H100), or for each chunk if there are fewer; blosc 224
 *                bytes a chunk and 768 for each warp (3 MB).
 * Returns 0, -EOPNOTSUPP (the GPU does not decode this codec) or an error of every call.
 */
int wharf_cuda_decode_scratch(struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch,
                              size_t *ret_nbytes);

/*
 * wharf_cuda_decode: enqueues the decoding of a batch in a stream.  When the stream has reached
 * its end, each chunk's outcome is set, and its output if that is WHARF_OK; otherwise the bytes
 * within the destination are undefined.  Bytes outside it are never touched.  All chunks are
 * decoded, also after bad ones.
 *   stream       of the handle's GPU; NULL is the legacy default stream.
 * Outcomes are those that wharf.h lists at wharf_decompress.  Two are this library's own:
 *   WHARF_BAD_REQUEST, REQUEST_SIZE      also for more than WHARF_CUDA_MAX_CHUNK_NBYTES
 *   WHARF_INTERNAL, STEP_BUDGET          a fault of wharf's own; please report it
 * Returns 0, or
 *   -EOPNOTSUPP  the GPU does not decode this codec
 *   -ENOSPC      scratch_nbytes is less than wharf_cuda_decode_scratch returns
 *   -ENOMEM      the driver had no memory to start kernels
 *   an error of every call; also -EINVAL for a parameter that the codec does not have, for unknown
 *   flags, for a model of another GPU, and for unaligned scratch
 */
int wharf_cuda_decode(struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch,
                      struct CUstream_st *stream);

/*
 * wharf_cuda_sizes: enqueues finding the sizes of outputs without decoding; like
 * wharf_cuda_decode, without scratch.
 *   batch        of which codec, parameter, flags, n_chunks and model count, and the arrays in and
 *                in_nbytes; others may be NULL
 *   sizes        n_chunks entries in memory that the GPU reaches, aligned to 8.  Each receives the
 *                capacity with which its chunk can be decoded: if a capacity of at most
 *                WHARF_CUDA_MAX_CHUNK_NBYTES gives WHARF_OK, this one does, and out_nbytes is as
 *                much.  (Of boolrle up to 7 more than there were values: its streams say no more.)
 *                0 also for chunks that no such capacity does for, where that is seen on the way.
 * Sizes of hostile chunks are hostile: a few bytes may claim WHARF_CUDA_MAX_CHUNK_NBYTES.  A lane
 * reads a chunk.  Headers have the sizes of snappy, rans and the line codecs; of lz4 and the run
 * lengths it reads all sequences or runs.
 * Returns 0, -EOPNOTSUPP (wharf_cuda_can_size is 0), -ENOMEM or an error of every call.
 */
int wharf_cuda_sizes(struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch, size_t *sizes,
                     struct CUstream_st *stream);

/* ---- chains ---------------------------------------------------------------------------- */

/*
 * Where the sources of a batch are if they are outputs of batches before it: chunks that were
 * compressed twice.  ORC's streams of integers, say, are run lengths, cut into blocks, each
 * compressed by itself.
 *
 *     wharf_cuda_decode(cuda, &blocks, stream);                  // of deflate, into one place
 *     chain.n_parts = blocks.n_chunks;
 *     chain.parts = blocks.out, chain.parts_avail = blocks.out_avail;
 *     chain.part_outcomes = blocks.outcomes;
 *     chain.offsets = d_offsets;                                 // which blocks are which stream's
 *     wharf_cuda_decode_chain(cuda, &chain, &columns, stream);   // of rle2
 *
 * Each output of the batch before is a part.  A source is made of parts whose places lie one behind
 * the other, and how much there is of it the GPU finds out: the host waits for nothing.  A part may
 * be in several sources, or in none, and a chain's outputs can be parts of another chain.
 *
 * Parts may come from several batches, if their arrays lie behind each other.  Blocks that are not
 * compressed, which ORC has too, are then a batch of WHARF_CODEC_STORED, and `order` says in which
 * order the parts of all batches follow each other.
 */
struct wharf_cuda_chain {
    uint32_t struct_nbytes;                    /* sizeof(struct wharf_cuda_chain) */
    uint32_t reserved;                         /* 0 */
    size_t n_parts;                            /* 0 to WHARF_CUDA_MAX_CHUNKS */
    void *const *parts;                        /* n_parts entries: `out` of the batches before */
    const size_t *parts_avail;                 /* likewise: `out_avail` */
    const struct wharf_outcome *part_outcomes; /* likewise: `outcomes` */
    const uint32_t
        *order; /* n_parts numbers of parts, in the order of sources; NULL: 0, 1, 2 ... */
    const uint32_t *offsets; /* n_chunks + 1 entries that do not decrease, up to n_parts: chunk i's
                                source is what `order` has from offsets[i] up to, without it,
                                offsets[i + 1] */
};
#define WHARF_CUDA_CHAIN_INIT                                                                      \
    {                                                                                              \
        sizeof(struct wharf_cuda_chain), 0, 0, NULL, NULL, NULL, NULL, NULL                        \
    }

/*
 * wharf_cuda_chain_scratch: as wharf_cuda_decode_scratch, of a batch for wharf_cuda_decode_chain.
 * It takes 16 bytes a chunk more.
 */
int wharf_cuda_chain_scratch(struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch,
                             size_t *ret_nbytes);

/*
 * wharf_cuda_decode_chain: as wharf_cuda_decode, of a batch whose sources are parts.
 *   chain        read as the batch is: the struct before the call returns, arrays by the GPU
 *   batch        whose `in` and `in_nbytes` are not looked at.  Its scratch may be that of the
 * batch before, if that is in the same stream. stream       where the batches before were started,
 * or which waits for them Each source must be without gaps.  Otherwise its chunk is not decoded and
 * has one of these outcomes, whose bit_offset is the number of the first part in the source,
 * counted from 0, that it is true of; that part's own outcome says more.  Other chunks go on. the
 * part's result, CHAIN_PART         the part is not WHARF_OK WHARF_OUTPUT_SHORT, CHAIN_GAP it is
 * shorter than its place, and not the last one WHARF_BAD_REQUEST, CHAIN_PLACE        there is no
 * part of that number, it does not begin where the one before it ends, it is at NULL with a
 * capacity, or its outcome has more bytes than its capacity WHARF_BAD_REQUEST, REQUEST_BATCH the
 * chunk's offsets decrease, or are more than n_parts; bit_offset is 0 A source without parts, or
 * with empty ones, has no bytes, and is NULL.  More than WHARF_CUDA_MAX_CHUNK_NBYTES are
 * WHARF_BAD_REQUEST, REQUEST_SIZE as elsewhere. Returns what wharf_cuda_decode does; also -EINVAL
 * for a chain that is NULL, has no array that it needs, or too many parts.
 */
int wharf_cuda_decode_chain(struct wharf_cuda *cuda, const struct wharf_cuda_chain *chain,
                            const struct wharf_cuda_batch *batch, struct CUstream_st *stream);

/* ---- one large stream of rans ------------------------------------------------------------ */

/*
 * The whole GPU decodes a stream with splits, with many warps at once.  The splits have to be
 * found one after the other: the processor does that once, and a plan has their positions.
 */
struct wharf_cuda_rans_plan;

/*
 * wharf_cuda_rans_plan_new: finds the splits of a stream, from a copy in host memory, and puts
 * them into GPU memory.  Takes about a hundred nanoseconds for each split, allocates memory and
 * waits for a copy, so it cannot be captured.
 *   parameter    as in struct wharf_cuda_batch
 *   model        a registered one in its place, which stays for the plan's life; NULL: none
 *   in           in_nbytes, hostile, not kept
 *   out_avail    the capacity of destinations
 *   ret_plan     not NULL; receives the plan, which goes to wharf_cuda_rans_plan_free
 *   ret_outcome  not NULL; filled when the call returns -EBADMSG
 * Returns 0, or
 *   -EBADMSG     the outcome is known already: *ret_outcome is the CPU engine's
 *   -EOPNOTSUPP  it brings a model of 16-bit symbols or of several distributions, or source or
 *                output are more than WHARF_CUDA_MAX_CHUNK_NBYTES: a chunk for wharf_cuda_decode,
 *                or for the CPU
 *   -ENOMEM or an error of every call
 */
int wharf_cuda_rans_plan_new(struct wharf_cuda *cuda, uint32_t parameter,
                             const struct wharf_cuda_model *model, const void *in, size_t in_nbytes,
                             size_t out_avail, struct wharf_cuda_rans_plan **ret_plan,
                             struct wharf_outcome *ret_outcome);

/* wharf_cuda_rans_plan_free: as wharf_cuda_model_free. */
void wharf_cuda_rans_plan_free(struct wharf_cuda_rans_plan *plan);

/* wharf_cuda_rans_scratch: how much scratch decoding by a plan takes; 0 without one. */
size_t wharf_cuda_rans_scratch(const struct wharf_cuda_rans_plan *plan);

/*
 * wharf_cuda_rans_decode: starts decoding a plan's stream; as wharf_cuda_decode, and one plan may
 * be used by several calls at once.
 *   in           in GPU memory, the bytes that the plan was made of.  With others outcome and bytes
 *                are any, and nothing outside source and destination is touched.
 *   out          in GPU memory, as much as the plan was told
 *   outcome      in memory that the GPU reaches
 * Returns 0, -ENOSPC, -ENOMEM or an error of every call.
 */
int wharf_cuda_rans_decode(const struct wharf_cuda_rans_plan *plan, const void *in, void *out,
                           struct wharf_outcome *outcome, void *scratch, size_t scratch_nbytes,
                           struct CUstream_st *stream);

/* ---- one large stream of Deflate --------------------------------------------------------- */

/*
 * The whole GPU decodes one stream of deflate, zlib or gzip, which has no index: warps find places
 * where blocks begin, decode from there, and what they guessed is proven.  For streams from half a
 * megabyte of source up; with many streams, or smaller ones, wharf_cuda_decode is faster.
 *
 * Sizes are no limit but for WHARF_CUDA_MAX_STREAM_NBYTES.  The outcome is the CPU engine's, as
 * that of a chunk; a gzip header of more than WHARF_CUDA_MAX_CHUNK_NBYTES is INPUT_TRUNCATED.
 * Streams whose blocks begin nowhere that can be found (all of them with the fixed codes, or one
 * block) and what is behind an error are decoded by one block of warps, at the speed of a chunk.
 * The search before takes some milliseconds, and where beginnings are forged some more.
 */
struct wharf_cuda_deflate_stream {
    uint32_t struct_nbytes; /* sizeof(struct wharf_cuda_deflate_stream) */
    uint32_t codec;         /* WHARF_CODEC_DEFLATE, _ZLIB or _GZIP */
    const void *in;         /* in GPU memory, of any alignment, as `out` is */
    size_t in_nbytes;
    void *out;
    size_t out_avail;
    struct wharf_outcome *outcome; /* in memory that the GPU reaches */
    void *scratch;                 /* of the size that wharf_cuda_inflate_scratch returns */
    size_t scratch_nbytes;
};
#define WHARF_CUDA_DEFLATE_STREAM_INIT                                                             \
    {                                                                                              \
        sizeof(struct wharf_cuda_deflate_stream), 0, NULL, 0, NULL, 0, NULL, NULL, 0               \
    }
#define WHARF_CUDA_MAX_STREAM_NBYTES ((size_t)1 << 36)

/*
 * wharf_cuda_inflate_scratch: how much scratch a stream takes.  Uses codec and in_nbytes.  The size
 * never decreases with in_nbytes.
 *   ret_nbytes   not NULL; a multiple of WHARF_CUDA_SCRATCH_ALIGN, never 0.  192 KiB for each 16
 *                KiB of the source, up to 1.1 GB on an H100.
 * Returns 0, -EOPNOTSUPP (another codec) or an error of every call.
 */
int wharf_cuda_inflate_scratch(struct wharf_cuda *cuda,
                               const struct wharf_cuda_deflate_stream *stream, size_t *ret_nbytes);

/*
 * wharf_cuda_inflate: enqueues decoding a stream; as wharf_cuda_decode.  The struct's members are
 * read before the call returns.  Source and destination that overlap are -EINVAL here.
 * Returns 0, -EOPNOTSUPP (another codec), -ENOSPC, -ENOMEM or an error of every call.
 */
int wharf_cuda_inflate(struct wharf_cuda *cuda, const struct wharf_cuda_deflate_stream *stream,
                       struct CUstream_st *cuda_stream);

/* ---- encoding lines -------------------------------------------------------------------- */

/*
 * Codecs of lines, which compress memory line by line: LINES.md.  Streams are the bytes that `wharf
 * pack` writes, to the last one.
 */
struct wharf_cuda_encoding {
    uint32_t struct_nbytes; /* sizeof(struct wharf_cuda_encoding) */
    uint32_t codec;         /* enum wharf_codec */
    uint32_t line_nbytes;   /* 32, 64 or 128; 0 is 128 */
    uint32_t layout;        /* 0: lines are packed; 1: in slots, each at its own place */
    uint32_t type;          /* of palette the values: 0 bf16, 1 f16, 2 e4m3, 3 e5m2; of others 0 */
    uint32_t reserved;      /* 0 */
    size_t n_chunks;        /* 0 to WHARF_CUDA_MAX_CHUNKS */
    const void *const *in;  /* as in struct wharf_cuda_batch, all of these */
    const size_t *in_nbytes;
    void *const *out; /* aligned to 16, or the chunk is WHARF_BAD_REQUEST, REQUEST_RANGE */
    const size_t *out_avail;
    struct wharf_outcome *outcomes; /* out_nbytes is the size of the stream */
};
#define WHARF_CUDA_ENCODING_INIT                                                                   \
    {                                                                                              \
        sizeof(struct wharf_cuda_encoding), 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL         \
    }

/*
 * wharf_cuda_encode_bound: the most bytes that a stream of in_nbytes can take.  Looks at all but
 * n_chunks and pointers.  Has no handle.
 * Returns 0 with *ret_nbytes, -EOPNOTSUPP, -EINVAL or -E2BIG.
 */
int wharf_cuda_encode_bound(const struct wharf_cuda_encoding *encoding, size_t in_nbytes,
                            size_t *ret_nbytes);

/*
 * wharf_cuda_encode: starts encoding a batch in a stream; as wharf_cuda_decode, and it takes no
 * scratch.  A chunk's outcome is WHARF_OK; WHARF_OUTPUT_TOO_SMALL, OUTPUT_FULL, which a capacity of
 * wharf_cuda_encode_bound cannot give; or WHARF_BAD_REQUEST.
 */
int wharf_cuda_encode(struct wharf_cuda *cuda, const struct wharf_cuda_encoding *encoding,
                      struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
