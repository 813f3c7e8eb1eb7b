/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf.h: decompress chunks, and compress them.  This header is libwharf's manual.
 *
 *     #include <inttypes.h>
 *     #include <stdio.h>
 *     #include <wharf.h>
 *
 *     int main(void)
 *     {
 *         static char chunk[1 << 16], buffer[1 << 20];
 *         struct wharf_job job = WHARF_JOB_INIT;
 *         struct wharf_outcome outcome;
 *         struct wharf *wharf;
 *
 *         job.codec = WHARF_CODEC_GZIP;
 *         job.in = chunk;
 *         job.in_nbytes = fread(chunk, 1, sizeof(chunk), stdin);
 *         job.out = buffer;
 *         job.out_avail = sizeof(buffer);
 *         if (wharf_open(NULL, &wharf) < 0 || wharf_decompress(wharf, &job, &outcome) < 0) {
 *             fprintf(stderr, "%s\n", wharf_error_message());    // the call went wrong
 *             return 1;
 *         }
 *         if (outcome.result != WHARF_OK)                        // the data was bad
 *             fprintf(stderr, "%s at bit %" PRIu64 "\n",
 *                     wharf_reason_string(outcome.reason), outcome.bit_offset);
 *         else
 *             fwrite(buffer, 1, outcome.out_nbytes, stdout);
 *         wharf_close(wharf);
 *         return outcome.result != WHARF_OK;
 *     }
 *
 * That is one chunk at a time.  To have many in flight, put them into memory from wharf_alloc,
 * submit them with wharf_submit, and take their completions from wharf_wait or wharf_poll.
 *
 * Compile and link with `pkg-config --cflags --libs wharf`.  The header is C99 and C++11.
 *
 * WHERE JOBS RUN.  In wharfd, the daemon of this machine, or in this process, on the CPU, by the
 * embedded engine.  Bytes and outcomes are the same.  wharf_open decides once for the handle: it
 * uses a daemon if one is available, and is embedded otherwise; flags forbid one or the other.
 * wharf_decompress decides again for each chunk.
 *
 * COMPRESSING is a job too: wharf_compress, or a submitted job with the flag WHARF_JOB_COMPRESS.  A
 * job makes one stream, from which the same codec's decoder makes the source again.  The daemon has
 * the encoders of `wharf pack`.  libwharf itself links no encoder libraries except zlib and
 * libdeflate.  So in this process the encoders for lz4 and snappy compress less, and the one for
 * zstd stores everything except runs of equal bytes.
 *
 * ERRORS.  A call's own error (no memory, a NULL argument) is its return value: 0 or more, or a
 * negative errno number; wharf_error_message has the reason and the remedy in words.  The result of
 * the data is in struct wharf_outcome or struct wharf_completion, with the numbers of
 * wharf_result.h.  The two are never mixed: a call that returns a negative number has not touched
 * its outputs; any other call has filled them, with a good or a bad result.  Every call with a
 * handle, unless it says that it has no errors, can return
 *   -EINVAL      an argument is NULL or out of range where that is not allowed
 *   -E2BIG       a struct has members set that this version does not know
 *   -ESTALE      this is a forked child, see FORK
 * and, on a handle that works through a daemon, also
 *   -ENOTCONN    the daemon has been away for longer than options.patience_ms, see RESTARTS
 *   -EPROTO      the daemon broke the protocol, or says that this library did.  The handle does not
 *                trust it any more and is useless.  Jobs in flight get no completion, and the
 * daemon may still write to their memory
 *
 * RESTARTS.  When the daemon dies, is restarted or is upgraded, nothing is lost.  The library takes
 * the completions that are there, connects to the next daemon as soon as it answers, and resubmits
 * the jobs that have none.  It has no threads, so it does that in the next call, or in the call
 * that sleeps; the program only notices that a job takes longer.  The same happens when a daemon
 * ends only this connection: because it lacks some resource, or because it cannot change
 * registrations while the program punches holes into memory.  So sources must stay unchanged until
 * the job's completion has been taken, and a job may run more than once.  When there has been no
 * daemon for options.patience_ms, calls return -ENOTCONN at once.  Each call still looks for a
 * daemon, and jobs stay in flight: remains of the old daemon may still write to their memory.  (A
 * daemon that is gone within a second, without a completion, counts as none.)  A job that kills
 * daemons ends with WHARF_INTERNAL: after three deaths while it ran it is submitted alone, and
 * after five more deaths it is given up.  A daemon that had not started a job when it died does not
 * count against it.
 *
 * THREADS.  All functions are safe to call from several threads at once, also with the same handle.
 * Only wharf_close needs the handle for itself, after all other calls on it returned.  One lock
 * guards a handle, and is held briefly: nothing sleeps, decodes or copies data under it.  Several
 * threads may wait on one handle; each completion goes to one of them.  For the highest rates give
 * each thread its own handle.  The library creates no threads, installs no signal handlers, never
 * prints and never exits.  Do not call it from signal handlers, except functions that return static
 * strings, and do not cancel threads inside it.
 * A thread that decodes in a call (wharf_decompress; on an embedded handle also wharf_poll and
 * wharf_wait) needs stack: up to 512 KiB for rans, for its tables, up to 384 KiB for blosc, for its
 * blocks, and 64 KiB for all other codecs.
 *
 * FORK.  After fork a handle belongs to the parent.  In the child the arena is not mapped, and
 * calls return -ESTALE.  The child may only wharf_close its copy, which does not affect the
 * parent's, and it should: until then the daemon considers a parent that has died alive.
 * wharf_decompress on an embedded handle continues to work in the child.  The library's descriptors
 * are closed on exec.
 *
 * STRUCTS THAT GROW.  Some structs begin with their own size, as the caller was compiled with it;
 * the WHARF_..._INIT macros set it.  Later versions add members at the end, for which zero means
 * "as before".  A struct smaller than the first version's gives -EINVAL.  A larger struct than the
 * library knows is accepted if all further bytes are zero, and gives -E2BIG otherwise.
 *
 * HOSTILE DATA.  Compressed data may be any bytes, and sizes and checksums any numbers: each
 * decoder stays within the buffers of its job, and ends in time linear in their sizes.  Each member
 * states its own requirements.
 *
 * HOSTILE DAEMONS.  Whoever can create the daemon's socket can return wrong output, which the
 * library cannot detect without decoding.  Nothing more is possible: whatever the daemon sends or
 * writes, the library accesses no other memory, and its calls behave as documented.
 */
#ifndef WHARF_H
#define WHARF_H

#include <stddef.h>
#include <stdint.h>

/* Installed beside this file. */
#include "wharf_codec.h"  /* enum wharf_codec */
#include "wharf_job.h"    /* enum wharf_job_flag, wharf_class, wharf_engine */
#include "wharf_result.h" /* results, struct wharf_outcome, struct wharf_completion */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * wharf_version: the library's version, such as "0.1.0".  Static.  `pkg-config --modversion
 * wharf` tells the version that a program is compiled against.
 */
const char *wharf_version(void);

/*
 * wharf_error_message: one line, without a newline, about this thread's last failed call: the
 * reason and, if there is one, the remedy.  It is set by a call that returns a negative number, and
 * by a wharf_open that returns an embedded handle because no daemon is available.  Read it before
 * the thread's next call, which may change it.  It may quote a daemon, with unprintable characters
 * replaced.  Empty before any error; never NULL.
 */
const char *wharf_error_message(void);

/* ---- codecs ---------------------------------------------------------------------------- */

/*
 * wharf_codec_from_name: the number (enum wharf_codec) of the codec called `name`, as in "zlib".
 * Case matters.  Returns it, -ENOENT (there is none; the message has all names) or -EINVAL (`name`
 * is NULL).
 */
int wharf_codec_from_name(const char *name);

/*
 * wharf_codec_name: the name of codec number `codec`, or NULL if this version has none.  Static.
 * The numbers have no gaps, so counting up from 0 until NULL lists all codecs.
 */
const char *wharf_codec_name(uint32_t codec);

/*
 * wharf_codec_summary: one line for people, "zlib, RFC 1950, Adler-32 verified", or NULL if
 * this version has no codec of that number.  Static.
 */
const char *wharf_codec_summary(uint32_t codec);

/*
 * wharf_engine_from_name: the number (enum wharf_engine) of the engine called `name`, as in "gpu".
 * Returns as wharf_codec_from_name.
 */
int wharf_engine_from_name(const char *name);

/* ---- handles --------------------------------------------------------------------------- */

struct wharf;

/* Flags of wharf_open.  Without any: through a daemon if one is available, else embedded. */
enum wharf_open_flag {
    /* Decode in this process and never look for a daemon. */
    WHARF_OPEN_EMBEDDED = 1 << 0,
    /* Through a daemon or not at all.  The engines GPU and SIMT always mean this. */
    WHARF_OPEN_DAEMON = 1 << 1,
};

#define WHARF_DEFAULT_SOCKET "/run/wharf/wharfd.sock"
#define WHARF_DEFAULT_MAX_JOBS 255u
#define WHARF_DEFAULT_ARENA_NBYTES ((size_t)32 << 20)
#define WHARF_DEFAULT_PATIENCE_MS 10000u
#define WHARF_DEFAULT_SPIN_US 20u
#define WHARF_SPIN_NEVER UINT32_MAX

struct wharf_options {
    uint32_t struct_nbytes;  /* sizeof(struct wharf_options) */
    uint32_t engine;         /* enum wharf_engine: what all jobs of the handle run on.  With AUTO
                                the daemon or library chooses for each job; any other engine is
                                used, or refused when the handle is opened.  If the GPU is lost
                                later, the daemon's CPU runs its jobs, and completions say so */
    uint32_t flags;          /* enum wharf_open_flag, or 0 */
    uint32_t max_jobs;       /* the most jobs in flight, including finished ones whose completion
                                was not taken: 1 to 32767.  0 is WHARF_DEFAULT_MAX_JOBS, or less if
                                the daemon's limits for a queue, or for all queues of this user,
                                require that; wharf_get_info has the number.  Other handles of the
                                user are not considered, so 0 and any number can give -EDQUOT */
    const char *socket_path; /* of the daemon, at most 107 bytes.  NULL is the environment variable
                                WHARF_SOCKET (unless the program runs with more rights than its
                                user), or else WHARF_DEFAULT_SOCKET */
    const char *client_name; /* a name for the daemon's operator, cut to 64 bytes.  NULL is the
                                program's name */
    size_t arena_nbytes;     /* memory for wharf_alloc and for copies of wharf_decompress; 0 is
                                WHARF_DEFAULT_ARENA_NBYTES, or what the daemon allows if that is
                                less.  Pages that are never touched cost nothing */
    uint32_t patience_ms;    /* how long a daemon may be away or not answer; 0 is
                                WHARF_DEFAULT_PATIENCE_MS */
    uint32_t spin_us;        /* how long a waiting call spins before it sleeps; 0 is
                                WHARF_DEFAULT_SPIN_US.  Spinning saves the few microseconds of
                                falling asleep and waking up, at the cost of a busy processor.
                                After several failures most waits sleep at once */
    uint32_t default_class;  /* enum wharf_class, of jobs that name none; DEFAULT is NORMAL */
    uint32_t reserved;       /* 0 */
};
#define WHARF_OPTIONS_INIT                                                                         \
    {                                                                                              \
        sizeof(struct wharf_options), WHARF_ENGINE_AUTO, 0, 0, NULL, NULL, 0, 0, 0, 0, 0           \
    }

/*
 * wharf_open: makes a handle.  Embedded it does not block.  Through a daemon it connects, waits for
 * the answer to its greeting, at most patience_ms, and gets its rings and its arena.
 *   options      NULL for all defaults; not kept.
 *   ret_wharf    not NULL; receives the handle, which the caller owns and gives to wharf_close.
 *                Untouched on failure.
 * With WHARF_OPEN_EMBEDDED only the first four errors are possible.  Without flags, and with an
 * engine that this process has too, an unusable daemon is no error: the handle is embedded, and
 * wharf_error_message has the reason.
 * Returns 0, or
 *   -EINVAL      ret_wharf is NULL, options' size is too small, or it holds an unknown engine,
 *                flag or class, both flags, or a number out of range
 *   -E2BIG       options has members set that this version does not know
 *   -EOPNOTSUPP  the engine is not available (or, with WHARF_OPEN_EMBEDDED, only in a daemon)
 *   -ENOMEM      out of memory
 *   -ENOENT, -ECONNREFUSED   there is no daemon
 *   -EACCES      the user is not in the group that may use the daemon
 *   -ETIMEDOUT   the daemon did not answer
 *   -EDQUOT      the daemon's limits for this user, or for all users together, do not allow
 *                max_jobs, arena_nbytes or one more connection
 *   -EPROTO      the peer is not wharfd, or shares no protocol version with this library
 *   another error of connect or of the daemon
 */
int wharf_open(const struct wharf_options *options, struct wharf **ret_wharf);

/*
 * wharf_close: closes a handle and frees it, its arena and everything allocated there.  NULL is
 * allowed.  No other call on the handle may be running.  Jobs in flight are cancelled, but not
 * waited for: the daemon may still write to registered memory that they use for a moment.  If that
 * matters, cancel and reap them first.
 */
void wharf_close(struct wharf *wharf);

/*
 * wharf_engine: the engine that runs this handle's jobs; AUTO only through a daemon.  No errors:
 * `wharf` must not be NULL.
 */
uint32_t wharf_engine(const struct wharf *wharf);

/* The result of wharf_get_info.  Members from max_job_nbytes on are 0 for an embedded handle. */
struct wharf_info {
    uint32_t struct_nbytes; /* sizeof(struct wharf_info), set by the caller */
    uint32_t is_daemon;     /* 1: this handle works through a daemon; 0: embedded */
    uint32_t is_connected;  /* 1: connected to a daemon that has answered, as far as is known */
    uint32_t max_jobs;
    uint32_t n_in_flight; /* submitted jobs whose completion was not taken */
    uint32_t engines;     /* bits 1 << enum wharf_engine: engines that can run this handle's jobs */
    uint64_t codecs;      /* bits 1 << enum wharf_codec */
    uint64_t arena_nbytes;
    uint64_t arena_taken_nbytes;
    uint64_t max_job_nbytes;       /* source plus destination of one chunk */
    uint64_t max_batch_chunks;     /* of one batch */
    uint64_t generation;           /* differs for each daemon */
    uint64_t n_reconnects;         /* how often the handle reconnected */
    uint64_t n_resubmitted;        /* resubmitted jobs */
    char daemon_version[32];       /* printable; truncated */
    uint64_t max_gpu_chunk_nbytes; /* of a chunk's source, and of its destination, for chunks of
                                      which a GPU runs many at a time; 0 without GPU memory */
    uint64_t n_here;               /* calls of wharf_decompress that the calling thread ran itself,
                                      although there was a daemon */
    uint64_t max_gpu_large_nbytes; /* in GPU memory, and if the engine is the GPU: source plus
                                      destination of one chunk, */
    uint64_t max_gpu_large_ns;     /* and how long the GPU may have it */
    uint64_t max_compress_nbytes;  /* source of one chunk that is compressed; 0: the daemon does not
                                      compress */
    uint64_t max_start_ns;         /* how long a job may wait for its start word; 0: none does */
};

/*
 * wharf_get_info: fills *ret_info, whose struct_nbytes the caller has set.  Does not block.
 * Returns 0 or an error of every call, -ENOTCONN excepted.
 */
int wharf_get_info(struct wharf *wharf, struct wharf_info *ret_info);

/* ---- memory ---------------------------------------------------------------------------- */

/*
 * Submitted jobs use memory that the daemon can access: the handle's arena, and registered memory.
 * (wharf_decompress takes any memory, and copies.)  An embedded handle behaves the same, so that a
 * program works with both.
 *
 * wharf_alloc: allocates nbytes (0 counts as 1) of the arena, aligned to 64 bytes, with undefined
 * contents.  Returns 0 with *ret_memory, which the caller owns until wharf_free or wharf_close; or
 *   -ENOBUFS     the arena has no free block of that size: free something, or open the handle with
 *                a larger arena_nbytes
 *   -ENOMEM      out of memory
 */
int wharf_alloc(struct wharf *wharf, size_t nbytes, void **ret_memory);

/*
 * wharf_free: frees memory of wharf_alloc.  NULL is allowed.  No job in flight may use it.  Returns
 * 0 or -EINVAL (the memory is not from wharf_alloc, or already freed; nothing happens).
 */
int wharf_free(struct wharf *wharf, void *memory);

enum wharf_memory_kind {
    WHARF_MEMORY_MEMFD = 1, /* made by memfd_create, without MFD_HUGETLB */
    WHARF_MEMORY_GPU = 2,   /* made by cuMemCreate and exported as a POSIX file descriptor: see
                               wharf_register_gpu */
};

enum wharf_memory_flag {
    WHARF_MEMORY_READ_ONLY = 1 << 0, /* for sources only */
};

struct wharf_memory {
    uint32_t struct_nbytes; /* sizeof(struct wharf_memory) */
    uint32_t kind;          /* enum wharf_memory_kind */
    int32_t fd;             /* the memory's; duplicated, so the caller may close its own */
    uint32_t flags;         /* enum wharf_memory_flag, or 0 */
    void *address; /* where the caller has mapped it: jobs use this address.  For GPU memory
                      the device address, which the library never accesses */
    size_t nbytes; /* the length to register, from its beginning; at least 1 */
};
#define WHARF_MEMORY_INIT                                                                          \
    {                                                                                              \
        sizeof(struct wharf_memory), WHARF_MEMORY_MEMFD, -1, 0, NULL, 0                            \
    }

/*
 * wharf_register: lets jobs use the caller's own shared memory.  A memfd must be sealed with
 * F_SEAL_SHRINK and F_SEAL_GROW, so that nobody can shrink it while it is read; a memfd that is
 * sealed against writing can be registered READ_ONLY.  Blocks until the daemon has answered.  The
 * mapping must stay until wharf_unregister.
 * Returns 0, or
 *   -EBADF       fd is not a descriptor of that kind
 *   -EPERM       a seal is missing, or it is sealed against writing and not registered READ_ONLY
 *   -EEXIST      some of these addresses are registered, or are the arena
 *   -EOPNOTSUPP  for GPU memory: no daemon with a GPU, or READ_ONLY and the daemon is too old
 *   -ENODEV, -EINVAL  for GPU memory: as wharf_register_gpu
 *   -ENOSPC      WHARF_MAX_MEMORIES are registered
 *   -EDQUOT      over the daemon's max_regions (64 by default) or max_memory
 *   -ENOMEM      out of memory
 *   -ETIMEDOUT   the daemon did not answer within patience_ms
 */
#define WHARF_MAX_MEMORIES 1023
int wharf_register(struct wharf *wharf, const struct wharf_memory *memory);

/*
 * wharf_register_gpu: lets jobs have their source, their destination or both in the caller's GPU
 * memory, without a copy through the host.  The same as wharf_register with kind WHARF_MEMORY_GPU
 * and no flags; with WHARF_MEMORY_READ_ONLY it is for sources only.
 *   fd           a POSIX file descriptor from cuMemExportToShareableHandle, for memory of
 *                cuMemCreate on one of the daemon's GPUs; cuMemCreate needs requestedHandleTypes
 *                for that.  Duplicated: the caller may close its own.
 *   address      where the caller has mapped it (cuMemMap, cuMemSetAccess): jobs use this address.
 *                The library never accesses it.
 *   nbytes       its size, as given to cuMemCreate: the driver maps all of it or nothing.
 * Memory of cudaMalloc cannot be exported this way.  A job's `in` and `out`, and those of a batch's
 * chunks, may then be (void *)(address + offset), at any alignment; a batch's results stay in host
 * memory.  Such a job runs on the GPU whose memory it is, whatever the handle's engine, which is
 * AUTO or the GPU's, and never on the CPU.  Chunks whose source and whose out_avail are each at
 * most wharf_info.max_gpu_chunk_nbytes (the daemon's `[gpu] chunk`) run by the thousand.  Larger
 * ones, up to max_gpu_large_nbytes, run two at a time, and so do all of a batch that has a larger
 * one.  Of Deflate, zlib and gzip the whole GPU decodes these one after the other, if the source
 * has 512 KiB or more.
 *
 * ORDER.  The daemon's kernel runs in none of the caller's streams.  So before the submission, all
 * work of the caller's on the GPU that uses the source or the destination must have ended:
 * synchronise, do not only enqueue.  After the completion was taken, the bytes are visible to all
 * later work: a kernel or copy that starts then, in any stream and context, needs no further
 * synchronisation.  (The decoding warp makes its stores visible to the whole system before it
 * writes the completion.  On one GPU they are then in the cache that all contexts share, and later
 * work has no older copy.)  A kernel that already runs must learn of the completion from the host,
 * by an acquire load at system scope, and must not have read the bytes through the read-only path
 * (__ldg) before.
 *
 * ENDS.  The daemon keeps the memory allocated while it is registered, and for some tenths of a
 * second after wharf_unregister, wharf_close or the end of the process.  The caller may unmap and
 * release its own handle at any time, but a job in flight still reads and writes.  When the GPU's
 * worker process dies, jobs wait for the next one, which imports the memory again.  After a restart
 * of the daemon the library registers it again.
 *
 * Additional results of such jobs:
 *   WHARF_UNSUPPORTED    the GPU has no decoder for the codec (wharf_info has those of all engines)
 *   WHARF_QUOTA, GPU_LARGE   source and destination are together over max_gpu_large_nbytes, or one
 *                is over 256 MiB (by the whole GPU: a source of 512 MiB, an output of 4 GiB);
 *                GPU_LARGE_TIME: it took the GPU longer than max_gpu_large_ns
 *   WHARF_BAD_REQUEST, REQUEST_REGION   source and destination, or chunks of one batch, are in the
 *                memory of different GPUs; or a daemon that came later takes no sources there
 *   WHARF_NO_MEMORY      the job's host memory cannot be pinned, the GPU refused this memory when
 *                its worker was started again, or has none for a chunk over max_gpu_chunk_nbytes
 *   WHARF_DEVICE_FAULT   the worker died while it ran this job alone, or did so too often with jobs
 *                of this user's; or no worker gets ready any more
 *
 * Blocks until the GPU has imported or refused the memory: some milliseconds, or seconds while a
 * worker starts.
 * Returns 0, or
 *   -EBADF       fd is no descriptor of that kind
 *   -EINVAL      it is not exported memory of one of the daemon's GPUs, or has another size
 *   -ENODEV      there is no GPU at present
 *   -EOPNOTSUPP  there is no daemon with a GPU, or the handle's engine is the CPU
 *   -EDQUOT      over the daemon's max_gpu_memory or max_gpu_regions
 *   -EEXIST, -ENOSPC, -ENOMEM, -ETIMEDOUT  as wharf_register
 */
int wharf_register_gpu(struct wharf *wharf, int fd, uint64_t address, size_t nbytes);

/*
 * wharf_register_file: lets jobs have their source, their destination or both in a file, which the
 * daemon reads and writes: the program copies nothing.
 *   fd           of a regular file or a block device.  Duplicated: the caller may close its own.
 *                The access mode of fd bounds what the daemon may do.  The daemon opens no path,
 * and does not change the file's position and flags.
 *   flags        0 or WHARF_MEMORY_READ_ONLY.  A file that is open for reading alone is read-only.
 *   ret_address  not NULL; receives an address A.
 * Jobs use A + N for byte N of the file, with N below 2^50, as `in`, `out`, and in a batch's
 * chunks.  There is no memory at A: the program can neither read nor write there.
 * wharf_unregister(wharf, A) ends that.
 *
 * Source and destination may be a file, the arena, or registered memory.  Sources in files are
 * decoded by a GPU too, to its own memory or the host's, if the chunk is not over
 * max_gpu_chunk_nbytes.  Only the CPU writes files, and compresses them: such jobs cannot use GPU
 * memory, and a handle whose engine is a GPU takes files with WHARF_MEMORY_READ_ONLY.  The rules
 * for memory hold for a file's bytes: nobody may write to a source or a destination while the job
 * is in flight.  Otherwise the result is undefined, but no other user is affected.  The daemon uses
 * the page cache, unless fd is open with O_DIRECT, whose rules the caller must then follow. Nothing
 * is synchronised to a disk.
 *
 * A job writes its output to a file after it has decoded it well; if it fails before, the
 * destination is unchanged.  A batch's chunks are written one by one.
 *
 * Additional results of such jobs, with WHARF_FILE_ERROR; bit_offset is eight times the bytes of
 * the source that could be read, or of the output that were written, before:
 *   FILE_SHORT   the file ends inside the source
 *   FILE_READ + N, FILE_WRITE + N   errno value N, which wharf_reason_errno gives: EIO, ENOSPC,
 *                EFBIG, EDQUOT, EROFS and others.  What follows bit_offset in a destination is
 *                undefined within out_avail
 *   FILE_TIME    reading took longer than the daemon's file_timeout.  The connection ends then, and
 *                the library makes another one: see RESTARTS
 *   FILE_ABANDONED   writing took longer than that, or the daemon was gone before the job was
 *                done: nobody knows what was written, or will be.  The destination is undefined
 *                within out_avail, and may change until the file's server has finished its
 *                requests.  Unlike all other jobs, such a job is not resubmitted
 *
 * Blocks until the daemon has checked the file.
 * Returns 0, or
 *   -EBADF       fd is neither a regular file nor a block device
 *   -EACCES      fd is not open for the access that flags require, or its file system denies the
 *                daemon access, such as FUSE without allow_other: read it yourself
 *   -EINVAL      ret_address is NULL, a flag is unknown, or fd is open for writing with O_APPEND
 *   -EROFS       fd is open for writing in a file system in memory, such as tmpfs, which the daemon
 *                only reads: register it with WHARF_MEMORY_READ_ONLY, and write there yourself
 *   -EOPNOTSUPP  the daemon is too old for files, there is none, or the handle's engine is a GPU
 *                and the file not read-only; or the file is in procfs, sysfs or another file system
 *                that generates its contents
 *   -EBUSY       files of this user hang processes of the daemon
 *   -EDQUOT      over the daemon's limits
 *   -ENOSPC, -ENOMEM, -ETIMEDOUT   as wharf_register
 *   another error of fstat
 * wharf_submit, wharf_submit_batch and wharf_decompress return -EFBIG where a destination reaches
 * beyond the process's RLIMIT_FSIZE.
 */
int wharf_register_file(struct wharf *wharf, int fd, uint32_t flags, void **ret_address);

/*
 * wharf_unregister: ends the registration of the memory at `address`.  Blocks until the daemon has
 * answered.
 * Returns 0, -ENOENT (nothing is registered there), -EBUSY (a job in flight uses it) or -ETIMEDOUT.
 */
int wharf_unregister(struct wharf *wharf, void *address);

/* ---- models ---------------------------------------------------------------------------- */

/*
 * A stream of codec rans can omit its model.  The model is then registered, once for any number of
 * jobs, whose parameter names it.  With many short streams of one model, or models with many
 * distributions, as in learned image codecs, this saves their bytes and the time to build tables.
 * A registered model may have 2^24 slots, one in a stream 65536.  rans_format.h, in the folder
 * `formats` of wharf's documentation, specifies streams and models.
 */
struct wharf_model {
    uint32_t struct_nbytes; /* sizeof(struct wharf_model) */
    uint32_t codec;         /* enum wharf_codec: RANS */
    const void *data;       /* from wharf_make_rans_model; not kept */
    size_t nbytes;          /* of data */
};
#define WHARF_MODEL_INIT                                                                           \
    {                                                                                              \
        sizeof(struct wharf_model), WHARF_CODEC_RANS, NULL, 0                                      \
    }

/*
 * wharf_register_model: checks a model and prepares it for jobs.  Blocks until the daemon has
 * answered, which takes some tenths of a second for the largest models; an embedded handle does it
 * itself.  The library keeps a copy, for the next daemon after a restart.
 *   ret_parameter  not NULL; receives the parameter for jobs of that codec, at least
 *                  WHARF_FIRST_MODEL, valid until wharf_unregister_model or wharf_close.
 * A job ends with WHARF_BAD_DATA, RANS_HEADER, if its stream does not fit the model or has a model
 * of its own; and with WHARF_BAD_REQUEST, REQUEST_PARAMETER, if there is no such model.
 * Returns 0, or
 *   -EBADMSG     the data is not a model; the message has the reason
 *   -EINVAL      the codec has no models
 *   -EOPNOTSUPP  the daemon is too old for models
 *   -ENOSPC      WHARF_MAX_MODELS are registered
 *   -EFBIG       it is larger than the process's RLIMIT_FSIZE, which limits the copy
 *   -EDQUOT      over the daemon's max_models (64 by default) or max_memory
 *   -ENOMEM      out of memory
 *   -ETIMEDOUT   the daemon did not answer within patience_ms
 */
#define WHARF_MAX_MODELS 1024
int wharf_register_model(struct wharf *wharf, const struct wharf_model *model,
                         uint32_t *ret_parameter);

/*
 * wharf_unregister_model: ends the registration of a model.  Blocks until the daemon has answered.
 * Returns 0, -ENOENT (there is no such model), -EBUSY (a job in flight names it) or -ETIMEDOUT.
 */
int wharf_unregister_model(struct wharf *wharf, uint32_t parameter);

/* A model of codec rans: the probability of each symbol, in units of 2^-n_bits. */
struct wharf_rans_frequencies {
    uint32_t struct_nbytes;   /* sizeof(struct wharf_rans_frequencies) */
    uint32_t n_bits;          /* 8 to 16 */
    uint32_t symbol_nbytes;   /* 1 or 2 */
    uint32_t alphabet;        /* symbols are 0 to alphabet - 1; at most 2^(8 * symbol_nbytes) */
    uint32_t n_distributions; /* 1 to 256; alphabet * n_distributions and n_distributions << n_bits
                                 are at most 2^24 */
    uint32_t reserved;        /* 0 */
    const uint32_t *frequencies; /* alphabet of them for each distribution, one after the other;
                                    those of one sum up to 1 at least and 2^n_bits at most */
};

/*
 * wharf_make_rans_model: writes a model in the form for wharf_register_model.
 *   model        NULL to ask for the size.
 * Returns 0 with *ret_nbytes, -EINVAL, -E2BIG, or -ENOSPC when model_avail is too little.  Has no
 * handle; safe from any thread.
 */
int wharf_make_rans_model(const struct wharf_rans_frequencies *frequencies, void *model,
                          size_t model_avail, size_t *ret_nbytes);

/* ---- jobs ------------------------------------------------------------------------------ */

/*
 * One chunk to decode or to compress.  The caller owns source and destination, which are memory of
 * this process and must not overlap.  Until the call returns, or the completion was taken, nobody
 * may write to either (not even another job), nor read the destination.
 */
struct wharf_job {
    uint32_t struct_nbytes; /* sizeof(struct wharf_job) */
    uint32_t codec;         /* enum wharf_codec */
    uint32_t flags;         /* enum wharf_job_flag, or 0: bytes after the end of the stream are
                               ignored, and any output that fits is good.  WHARF_JOB_DISCARD is
                               for wharf_submit only, and goes with a destination of NULL */
    uint32_t checksum;      /* with WHARF_JOB_CHECKSUM, the CRC-32 that the output must have;
                               ignored otherwise */
    const void *in;         /* the source; may be NULL if in_nbytes is 0 */
    size_t in_nbytes;       /* its size in bytes; at most PTRDIFF_MAX */
    void *out;              /* the destination; may be NULL if out_avail is 0 */
    size_t out_avail;       /* its size in bytes; at most PTRDIFF_MAX */
    uint64_t user_data;     /* returned in the completion; the library does not interpret it */
    uint32_t timeout_us;    /* the job ends with DEADLINE if it is not done this long after it was
                               accepted; 0: no limit.  An embedded handle checks it only before it
                               starts the job */
    uint32_t job_class;     /* enum wharf_class */
    uint32_t parameter; /* for rle1 and rle2 the type of the values, enum wharf_rle_type; for rans
                           0 for symbols of a byte, 1 for 16 bits, or a registered model;
                           0 for codecs without parameters */
    uint32_t reserved;  /* 0 */
    uint32_t encoder;   /* for compressing: the codec's encoder, as numbered in wharf_codec.h; 0 is
                           its default.  Ignored otherwise */
    uint32_t level;     /* for compressing: that encoder's level; 0 is its default */
    /* The following are for wharf_submit only: see STREAMS below. */
    struct wharf_done *done;   /* the done word, by which a stream waits for the job; NULL: none */
    uint32_t done_serial;      /* the serial number that the done word gets */
    uint32_t start_serial;     /* the serial number of the start word that lets the job start */
    const uint64_t *start;     /* the start word, by which the job waits for a stream; NULL: none */
    uint32_t start_timeout_us; /* the longest wait for it: then DEADLINE, START_TIME; 0:
                                  max_start_ns of wharf_info, which is also the most */
    uint32_t reserved_2;       /* 0 */
};
#define WHARF_JOB_INIT                                                                             \
    {                                                                                              \
        sizeof(struct wharf_job), WHARF_CODEC_STORED, 0, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, \
            NULL, 0, 0, NULL, 0, 0                                                                 \
    }

/*
 * wharf_decompress: decodes one chunk, and returns when it is done.
 *   wharf        a handle; not NULL.
 *   job          what to decode; not NULL; not kept; user_data means nothing here.
 *   ret_outcome  not NULL; receives the outcome.
 *
 * Embedded, it computes in the calling thread, without sleeping, locking or allocating memory
 * (except in the reference engine, which uses zlib), and ignores timeout_us.  (A process's first
 * job with Deflate's fixed codes builds shared tables; other threads that need them at that moment
 * wait.)
 *
 * Through a daemon it copies memory that is neither in the arena nor registered into the arena and
 * back.  If that is impossible (it does not fit, exceeds the daemon's limits, or the daemon is
 * away), the calling thread decodes.  It does not if the handle was opened with WHARF_OPEN_DAEMON
 * or with GPU or SIMT, if some of the memory is registered or in the arena, or if the job names a
 * registered model.
 *
 * If the calling thread may decode, it does so when that is faster: a caller that only waits has a
 * processor to spare, and needs neither copies nor wake-ups.  The handle measures both ways now and
 * then, for each codec and order of size.  Jobs with a timeout_us or of the class BACKGROUND, and
 * those of handles with another engine than AUTO, always go to the daemon.  Chunks that the calling
 * thread decodes count against no quota, and appear in no statistics except n_here.
 *
 * Returns 0 with *ret_outcome filled, or a negative number with *ret_outcome and the destination
 * untouched (but see -ENOTCONN):
 *   an error of every call; with -ENOTCONN, registered memory of the job may still be written
 *                until a wharf_ping has succeeded
 *   -ENOBUFS     the arena is too small, or wharf_alloc has given it out
 *   -EFAULT      the source or the destination is GPU memory and exceeds what is registered, or the
 *                destination is registered READ_ONLY
 *   -EMSGSIZE    source plus destination exceed the daemon's limit for one job
 *
 * The outcome, checked in this order, so that each job has exactly one:
 *   WHARF_BAD_REQUEST   REQUEST_CODEC: no such codec.  REQUEST_FLAGS: unknown flags.
 *                       REQUEST_CLASS, REQUEST_PARAMETER: likewise.
 *                       Of the source, then of the destination, REQUEST_NULL: NULL with a size
 *                       other than 0.  REQUEST_SIZE: a size over PTRDIFF_MAX.  REQUEST_RANGE:
 *                       memory that wraps around the end of the address space.  Of both,
 *                       REQUEST_OVERLAP.  bit_offset is 0.
 *   WHARF_BAD_DATA, WHARF_BAD_CHECKSUM, WHARF_OUTPUT_TOO_SMALL, WHARF_UNSUPPORTED
 *                       the first problem in stream order; bit_offset has its position.
 *   WHARF_BAD_DATA      INPUT_LEFT, with WHARF_JOB_EXACT_INPUT.
 *   WHARF_OUTPUT_SHORT  OUTPUT_MISSING, with WHARF_JOB_EXACT_OUTPUT.
 *   WHARF_BAD_CHECKSUM  JOB_CHECKSUM, with WHARF_JOB_CHECKSUM.
 *   WHARF_OK            in_nbytes and out_nbytes are the bytes read and written.
 * The reference engine can also end with WHARF_NO_MEMORY, and a daemon's job with WHARF_DEADLINE,
 * WHARF_QUOTA, WHARF_NO_MEMORY, WHARF_DEVICE_FAULT, WHARF_INTERNAL and numbers of later versions.
 *
 * Unless the outcome is WHARF_OK, out_nbytes and in_nbytes are 0 and the bytes within the
 * destination's out_avail are undefined.  Bytes outside it are never touched.  WHARF_OK means
 * that all checksums in the format were right.
 */
int wharf_decompress(struct wharf *wharf, const struct wharf_job *job,
                     struct wharf_outcome *ret_outcome);

/*
 * wharf_compress: compresses a chunk to one stream, and returns when it is done.
 *   job          the source, codec, parameter, encoder and level; not NULL; not kept.  Its only
 * allowed flag is WHARF_JOB_COMPRESS, which is optional here.
 *   ret_outcome  not NULL; receives the outcome.
 *
 * Through a daemon it works like wharf_decompress, with copies where necessary.  If the daemon
 * cannot compress a chunk (it is too old or away, or the source exceeds wharf_info's
 * max_compress_nbytes), the calling thread does so under the conditions of wharf_decompress.  Then
 * the outcome is REQUEST_ENCODER for an encoder that only daemons have.  Two calls with the same
 * source and job may give different streams, if one ran here, or with another version of an
 * encoder.
 *
 * The source may change meanwhile: encoders work on a copy, so the stream has the bytes of some
 * moment.  Jobs of class BACKGROUND wait in the daemon for idle processors.
 *
 * Returns 0 with *ret_outcome filled, or a negative number as wharf_decompress does, and also
 *   -EOPNOTSUPP  the daemon does not compress, and this process may not
 *   -EMSGSIZE    the source exceeds max_compress_nbytes, and this process may not compress it
 * The outcome:
 *   WHARF_BAD_REQUEST      as in wharf_decompress; after REQUEST_PARAMETER comes REQUEST_ENCODER:
 * the codec has no such encoder, or the encoder no such level.  A registered model is not a valid
 * parameter here. WHARF_OUTPUT_TOO_SMALL OUTPUT_FULL: the stream does not fit.  A destination of
 *                          wharf_compress_bound bytes is always large enough.
 *   WHARF_BAD_DATA         NOT_ENCODABLE: the codec cannot encode that source: its size is not a
 *                          multiple of the parameter's unit, it has a value that the type excludes,
 *                          or it is larger than a stream can be.
 *   WHARF_OK               in_nbytes is the source's size, out_nbytes the stream's.
 * and, in both cases, WHARF_NO_MEMORY; through a daemon also the daemon's results of
 * wharf_decompress.
 */
int wharf_compress(struct wharf *wharf, const struct wharf_job *job,
                   struct wharf_outcome *ret_outcome);

/*
 * wharf_compress_bound: the size of a destination that suffices for any source of job->in_nbytes
 * with the job's codec, parameter, encoder and level, with and without a daemon.  Ignores the job's
 * other members.  Has no handle; safe from any thread.
 * Returns 0 with *ret_nbytes, -EINVAL (an argument is NULL, the codec or parameter is unknown, or
 * the size is impossible), -E2BIG or -ENOMEM.
 */
int wharf_compress_bound(const struct wharf_job *job, size_t *ret_nbytes);

/*
 * wharf_submit: submits jobs.  Does not block.  Each job's source and destination must each lie
 * entirely in the arena or in one registered region.
 *   jobs         n_jobs of them, each with the same struct_nbytes; not kept.
 * Jobs run in any order, and concurrently.  On an embedded handle they run in the threads that wait
 * and poll, interactive jobs first and background jobs last.
 *
 * So a destination must not overlap the source or destination of another job in flight, or of
 * another chunk of the same batch.  Nothing checks that: such jobs overwrite each other's bytes.
 * Good data may then give WHARF_BAD_CHECKSUM or another error, and the destination of a job with
 * WHARF_OK may have another job's bytes.  Sources may overlap.
 *
 * Returns how many jobs were taken, from the first on: fewer than n_jobs if there is no more room
 * or the next job is refused.  If the first job is refused, an error of every call or
 *   -EAGAIN      max_jobs are in flight: take completions first
 *   -EFAULT      source or destination are not in the arena or registered, or the destination is
 *                registered READ_ONLY, or the source is GPU memory and the daemon too old for that
 *   -EOPNOTSUPP  the job compresses, and the daemon does not.  If such a daemon replaces another
 *                one while the job is in flight, the job ends with REQUEST_FLAGS
 *   -EOPNOTSUPP  the job has a done or a start word, and there is no daemon, or it is too old
 *   -EOPNOTSUPP  the job's output is to be discarded, and there is no daemon.  One that is too old
 *                ends the job with REQUEST_FLAGS.  On a handle that wants only the GPU, a job that
 *                the whole GPU does not decode, as wharf_register_gpu tells, ends with GPU_CODEC
 *   -EINVAL      also: a word is not where it may be, or the done word is already set; or a job
 *                whose output is to be discarded has a destination
 * Every other error of a job is the result of its completion, as in wharf_decompress.
 */
int wharf_submit(struct wharf *wharf, const struct wharf_job *jobs, unsigned n_jobs);

/* One chunk of a batch: members as in struct wharf_job. */
struct wharf_batch_chunk {
    const void *in;
    void *out;
    uint32_t in_nbytes;
    uint32_t out_avail;
    uint32_t checksum;
    uint32_t reserved; /* 0 */
};

/* Many chunks as one job with one completion, which costs less than many jobs. */
struct wharf_batch {
    uint32_t struct_nbytes; /* sizeof(struct wharf_batch) */
    uint32_t codec;         /* this and the following as in struct wharf_job, for all chunks */
    uint32_t flags;
    uint32_t timeout_us;
    uint32_t job_class;
    uint32_t parameter;
    uint64_t user_data;
    const struct wharf_batch_chunk *chunks; /* n_chunks of them; not kept */
    struct wharf_chunk_result *results;     /* NULL, or the caller's room for n_chunks, valid
                                               until the completion is taken */
    uint32_t n_chunks;                      /* at least 1 */
    uint32_t reserved;                      /* 0 */
    uint32_t encoder;                       /* this and the following as in struct wharf_job */
    uint32_t level;
    struct wharf_done *done;
    uint32_t done_serial;
    uint32_t start_serial;
    const uint64_t *start;
    uint32_t start_timeout_us;
    uint32_t reserved_2; /* 0 */
};
#define WHARF_BATCH_INIT                                                                           \
    {                                                                                              \
        sizeof(struct wharf_batch), WHARF_CODEC_STORED, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0,     \
            NULL, 0, 0, NULL, 0, 0                                                                 \
    }

/*
 * wharf_submit_batch: submits one batch.  Does not block.  The table that the daemon reads takes 56
 * bytes of the arena for each chunk until the completion is taken.  All chunks run, even after a
 * bad one.  If the completion has the flag WHARF_COMPLETION_RESULTS, `results` is filled; struct
 * wharf_completion describes the sums.  A batch with more chunks than wharf_info's max_batch_chunks
 * ends with WHARF_BAD_REQUEST, REQUEST_BATCH.
 * Returns 0, an error of wharf_submit, -ENOBUFS (no room for the table) or -ENOMEM.
 */
int wharf_submit_batch(struct wharf *wharf, const struct wharf_batch *batch);

/*
 * wharf_submit_noop: submits a job that only completes, for measurements.  Returns as
 * wharf_submit_batch does.
 */
int wharf_submit_noop(struct wharf *wharf, uint64_t user_data);

/*
 * wharf_cancel: requests the end of all jobs in flight with this user_data.  Does not block.  Each
 * job still gets one completion: WHARF_CANCELLED, or its result if it was faster.  Returns the
 * number of these jobs: 0 if there are none, or only finished ones.
 */
int wharf_cancel(struct wharf *wharf, uint64_t user_data);

/* ---- STREAMS: CUDA streams that wait for jobs, and jobs that wait for streams ---------------- */

/*
 * DONE WORDS.  A CUDA stream can wait for a job without a thread of the program.  The job has a
 * done word, struct wharf_done of wharf_result.h, in host memory.  The daemon sets it when the job
 * has ended.
 *
 *     struct wharf_done *words;                      // zeroed: serial numbers begin at 1
 *     wharf_alloc(wharf, 4096, (void **)&words);
 *     memset(words, 0, 4096);
 *     cuMemHostRegister(words, 4096, CU_MEMHOSTREGISTER_DEVICEMAP);
 *     cuMemHostGetDevicePointer(&device_words, words, 0);
 *     ...
 *     job.done = &words[i];
 *     job.done_serial = ++serials[i];
 *     wharf_submit(wharf, &job, 1);
 *     cuStreamWaitValue64(stream, device_words + i * sizeof(*words),
 *                         WHARF_DONE_VALUE(job.done_serial), CU_STREAM_WAIT_VALUE_GEQ);
 *     // later work in the stream finds the job's output, if its result is OK
 *
 *   done         at a multiple of 64 bytes, in the arena or in a registered memfd that is not
 *                READ_ONLY.  It belongs to one job in flight at a time, and no other byte of a job
 *                is there.
 *   done_serial  greater than that of the last job with this word, by less than 2^31; it may wrap
 *
 * When the word is set, the job's memory is the caller's again, whatever the result.  All output is
 * visible to the processor and to work that starts on the GPU then, and nobody reads or writes the
 * memory any more.  (DAEMON_LOST, below, is the only exception.)  A stream does not check the
 * result, so a kernel that uses the output first reads WHARF_DONE_RESULT of the word, and
 * out_nbytes beside it.  The completion says the same and can be taken some time later.
 *
 * When the daemon dies, the next one continues.  A job whose word is set does not run again, and
 * its completion says what the word says.  All other jobs are resubmitted, by the library's calls:
 * it has no thread of its own.  cuStreamWaitValue64 has no time limit, and a thread that waits in
 * cuStreamSynchronize makes no call.  So while streams wait for jobs, some thread must wait for
 * completions (wharf_wait) or for wharf_fd.  Then no stream waits for ever:
 *   - After patience_ms without a daemon, or when the daemon breaks the protocol, the next call
 * sets the words of all jobs in flight to WHARF_CANCELLED, DAEMON_LOST.  Such a job is not
 *     resubmitted.  The rest of the daemon may still write its memory until its completion was
 *     taken, so the stream must not use that memory.
 *   - wharf_close sets the words of jobs in flight to WHARF_CANCELLED.
 *   - A program that ends takes its streams with it.
 * CUDA may load a kernel at its first launch and wait for all streams meanwhile, also for those
 * that wait for a job.  Launch each kernel once before, or set CUDA_MODULE_LOADING=EAGER. The
 * daemon does not read done words.  If the program or its kernels set a word too early, the job
 * counts as ended when the daemon is replaced.
 *
 * START WORDS.  A job can wait for a stream.  It is submitted before its source is there, and
 * starts when the stream has set its start word.
 *
 *     job.start = &starts[i];
 *     job.start_serial = job.done_serial;
 *     wharf_submit(wharf, &job, 1);
 *     // ... work in the stream that makes the source ...
 *     cuStreamWriteValue64(stream, device_starts + i * sizeof(*starts),
 *                          WHARF_START_VALUE(job.start_serial), CU_STREAM_WRITE_VALUE_DEFAULT);
 *     cuStreamWaitValue64(stream, ...);       // waits for the job, as above
 *
 *   start        one of wharf_make_start_words; several jobs may wait for one word
 *   start_serial the job may start when the word is at least WHARF_START_VALUE(start_serial), by
 *                the comparison of done words
 *
 * A waiting job occupies its place in the queue, but no worker and no part of a GPU.  The daemon
 * polls the word: within microseconds while the job has waited for less than 200 us (its setting
 * `spin`), later after a sixteenth of the time that it has waited, at most 1 ms.  If the word is
 * not set within start_timeout_us, the job ends with WHARF_DEADLINE, START_TIME, and its done word
 * says so.  So a stream and a job that wait for each other end too.  timeout_us counts from the
 * submission.  The next daemon polls the word too, and its time starts anew.
 */

/*
 * wharf_make_start_words: makes and registers whole zeroed pages for start words.  The caller
 * registers them with CUDA, like done words.  The daemon only reads them, and no other memory of a
 * job can be there.
 *   n_words      1 to 131072: those of one handle take 1 MiB at most
 *   ret_words    not NULL; receives the address of the first word
 * wharf_unregister(wharf, words) and wharf_close free the memory.
 * Returns 0, or
 *   -EOPNOTSUPP  there is no daemon, or it does not know start words
 *   -EDQUOT      they would take more than that
 *   -EINVAL, -ENOMEM  and others as wharf_register
 */
int wharf_make_start_words(struct wharf *wharf, size_t n_words, uint64_t **ret_words);

/* ---- long streams of run lengths --------------------------------------------------------- */

/*
 * A stream of ORC's integers or bytes is a long sequence of independent runs.  So it can be decoded
 * in pieces that start at runs, each as a chunk, all at the same time.
 *
 *     struct wharf_run_piece piece = {0};
 *     while (wharf_next_runs(WHARF_CODEC_RLE2, in, in_nbytes, 16384, &piece) == 1) {
 *         chunk.in = in + piece.in_offset;
 *         chunk.in_nbytes = piece.in_nbytes;
 *         chunk.out = values + piece.first_value;
 *         chunk.out_avail = piece.n_values * sizeof(values[0]);
 *         ...
 *     }
 *
 * With a row index no search is needed: each of its positions has the offset of a run, and how many
 * of the run's values belong to earlier rows.
 */
struct wharf_run_piece {
    size_t in_offset; /* its start in the stream */
    size_t in_nbytes;
    uint64_t first_value; /* the number of values before it */
    uint64_t n_values;
};

/*
 * wharf_next_runs: finds the next piece of a stream by the headers of its runs, at some GB/s, and
 * decodes nothing.
 *   codec        RLE1, RLE2 or BYTERLE.
 *   in           the stream's in_nbytes; NULL if there are none.
 *   max_values   of a piece; a longer run is a piece of its own.
 *   piece        not NULL; the last piece, or zeros for the first one; receives the next.
 * A stream that ends in the middle of a run ends with a piece without values that has the remaining
 * bytes; as a job it fails as the whole stream does there.  Jobs find all other errors; the first
 * failing piece decides for the stream, with its bit_offset counted from that piece.  Has no
 * handle, and does not block.  Returns 1; 0 if there is no further piece (*piece is untouched
 * then); or -EINVAL (another codec, NULL, a piece of another stream).
 */
int wharf_next_runs(uint32_t codec, const void *in, size_t in_nbytes, uint64_t max_values,
                    struct wharf_run_piece *piece);

/* ---- completions ----------------------------------------------------------------------- */

/*
 * wharf_poll: takes available completions.  Never sleeps; on an embedded handle it runs one job if
 * none is finished.
 *   completions  room for max, at least 1.
 * Each completion has the job's user_data, outcome and timing (wharf_result.h).  It returns the
 * job's memory to the caller, whatever the result: nobody reads or writes it any more.
 * Returns how many were taken, 0 to max; -EINVAL if max is 0; or, if there are none, the daemon's
 * error, as wharf_wait.
 */
int wharf_poll(struct wharf *wharf, struct wharf_completion *completions, unsigned max);

/*
 * wharf_wait: takes completions, and sleeps until there are `min`, no more jobs are in flight, or
 * the time is over.  On an embedded handle it runs jobs.
 *   min          0 to max.
 *   timeout_ns   nanoseconds; 0: as wharf_poll; negative: no limit.  Signals do not end the wait.
 * Returns how many were taken: fewer than min if no more jobs are in flight or time is over.
 * Returns an error, such as -ENOTCONN, only when there are no completions.
 */
int wharf_wait(struct wharf *wharf, struct wharf_completion *completions, unsigned max,
               unsigned min, int64_t timeout_ns);

/*
 * wharf_fd: a descriptor for poll, epoll and similar calls, the same for the handle's life.  It
 * becomes readable when wharf_poll should be called: for a completion, or for work in the library
 * such as a lost daemon.  Now and then it is readable without need, when a notice arrives late.
 * Call wharf_poll until it returns less than max, then sleep.  The library owns the descriptor: do
 * not read, write or close it.  After the first call of this function the daemon sends a packet for
 * a completion after a sleep; wharf_wait alone would be cheaper.
 * Returns it, an error of every call, or an error of epoll_create1 and similar calls.
 */
int wharf_fd(struct wharf *wharf);

/* ---- the daemon itself ----------------------------------------------------------------- */

/*
 * These calls block until the daemon has answered, one of them at a time.  On an embedded handle
 * they return -ENOTCONN. Besides the errors of every call they return -ETIMEDOUT if the daemon does
 * not answer within patience_ms, and the daemon's reason for a refusal.
 *
 * wharf_ping: returns 0 when the daemon has answered.
 */
int wharf_ping(struct wharf *wharf);

/*
 * wharf_drain: asks the daemon to finish its jobs and exit.  -EPERM: only root and the daemon's
 * user may, and nobody through a socket that is one tenant (wharfd.conf).  Returns 0 when the
 * daemon has agreed; then it takes no more jobs.
 */
int wharf_drain(struct wharf *wharf);

/* By the conventions of Prometheus.  Texts are the daemon's: they may hold any bytes but zero. */
struct wharf_metric_label {
    const char *name;
    const char *value;
};
enum wharf_metric_type {
    WHARF_METRIC_UNSPECIFIED = 0,
    WHARF_METRIC_COUNTER = 1,
    WHARF_METRIC_GAUGE = 2,
    WHARF_METRIC_HISTOGRAM = 3, /* samples with suffix _bucket (label le), _sum and _count */
};
struct wharf_metric {
    const char *family; /* "wharf_jobs_total" */
    const char *help;   /* one line about the family */
    uint32_t type;      /* enum wharf_metric_type */
    uint32_t n_labels;
    const struct wharf_metric_label *labels;
    const char *suffix; /* "" or what follows the family's name */
    double value;
};

/*
 * wharf_stats: calls `each` for every sample of the daemon's statistics that this user may see,
 * family by family.  Its argument is valid during the call.  `each` must not call the library with
 * this handle.
 * Returns 0, or an error, perhaps after some samples.
 */
int wharf_stats(struct wharf *wharf, void (*each)(void *data, const struct wharf_metric *metric),
                void *data);

#ifdef __cplusplus
}
#endif

#endif
