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
 * hand them in with wharf_submit and take what became of them from wharf_wait or wharf_poll.
 *
 * Compile and link with `pkg-config --cflags --libs wharf`.  The header is C99 and C++11.
 *
 * WHERE JOBS RUN.  In wharfd, the daemon of this machine, if there is one, or in this process, on
 * the CPU, by the embedded engine.  Bytes and outcomes are the same.  wharf_open decides, once for
 * the handle: through a daemon if it can be had, embedded otherwise; flags forbid one or the other.
 * wharf_decompress decides again for each chunk, see there.
 *
 * COMPRESSING is a job too: wharf_compress, or WHARF_JOB_COMPRESS among the flags of one that is
 * submitted.  A job makes one stream, of which the same codec's decoder makes the source again. The
 * daemon has the encoders that `wharf pack` has.  A program that links libwharf loads no encoder's
 * library for it but those of Deflate, zlib and libdeflate.  So in this process lz4 and snappy have
 * encoders that pack less, and zstd one that does not pack but for bytes that are all the same.
 *
 * ERRORS.  What goes wrong with a call (no memory, a NULL where none may be) is the return value:
 * 0 or more, or a negative errno number; wharf_error_message says in words what it was and what
 * to do about it.  What becomes of the data is in struct wharf_outcome or struct
 * wharf_completion, with the numbers of wharf_result.h.  The two are never mixed: a call that
 * returns a negative number has not touched its outputs, and one that does not has filled them,
 * with good news or bad.  These can come from every call with a handle that is not said to be
 * without errors:
 *   -EINVAL      an argument is NULL or out of range where that is not allowed
 *   -E2BIG       a struct has members set that this version does not know
 *   -ESTALE      this is a forked child, see FORK
 * and these from every such call on a handle that works through a daemon:
 *   -ENOTCONN    the daemon has been away for longer than options.patience_ms, see RESTARTS
 *   -EPROTO      the daemon broke the protocol, or says that this library did.  It is not trusted
 *                any more: the handle is of no more use.  Jobs in flight get no completion, and the
 *                daemon may still write to their memory
 *
 * RESTARTS.  When the daemon dies, is restarted or is upgraded, nothing is lost: the library
 * takes the completions that are there, connects to the next daemon as soon as that answers,
 * and submits again what was not completed.  It makes no threads, so it does that in whatever
 * call is made next, or sleeping in one; all a program notices is that a job takes longer.  It does
 * the same where a daemon ends this connection alone: when it is short of something, or is to
 * change what is registered while it waits for memory into which the program punches holes.  So
 * sources must stay as they are until the job's completion has been taken, and a job may be run
 * more than once.  When there has been no daemon for options.patience_ms, calls return -ENOTCONN at
 * once, but each one looks for a daemon again, and jobs stay in flight: what has not been completed
 * may still be written by what is left of the daemon.  (One that is gone within a second, having
 * completed nothing, counts as none.)  A job is given up, with WHARF_INTERNAL, when daemons keep
 * dying of it: after three deaths with it in their hands it is submitted alone, and after five more
 * like that no more.  A daemon that had not begun a job when it died does not count against it.
 *
 * THREADS.  All functions are safe to call from several threads at once, with the same handle
 * too; only wharf_close needs the handle for itself, after all other calls on it returned.  One
 * lock guards a handle, and is held for moments: nothing sleeps, decodes or copies data under it.
 * Several threads may wait on one handle; each completion goes to one of them.  For the highest
 * rates give each thread its own handle.  The library makes no threads of its own, installs no
 * signal handlers, never prints and never exits.  Its functions are not for signal handlers,
 * except those that return static strings, and threads must not be cancelled inside them.
 * A thread that decodes in a call (wharf_decompress; on an embedded handle wharf_poll and
 * wharf_wait too) takes up to 512 KiB of its stack for rans, whose tables of a model lie there, up
 * to 384 KiB for blosc, whose blocks are put in order there, and 64 KiB for all else: threads with
 * less than that are for other calls.
 *
 * FORK.  After fork a handle is its parent's.  In the child, what was the arena is not there,
 * and calls return -ESTALE; it may only wharf_close its copy, which does nothing to the parent's,
 * and should: as long as it does not, the daemon takes a parent that has died for alive.
 * wharf_decompress on an embedded handle goes on working in the child.  A descriptor of the library
 * is closed on exec.
 *
 * STRUCTS THAT GROW.  Some structs begin with their own size, as the caller was compiled to know
 * it; the WHARF_..._INIT macros set it.  Later versions of the library add members at the end, for
 * which zero means "as before".  A struct smaller than the first version's gives -EINVAL; one
 * larger than the library knows is accepted while all the further bytes are zero, and gives
 * -E2BIG otherwise.
 *
 * HOSTILE DATA.  Any bytes at all may be given as compressed data, and any number in a size or
 * checksum: each decoder stays within the buffers of its job and ends in time linear in their
 * sizes.  What must be true is said at each member.
 *
 * HOSTILE DAEMONS.  Whoever can put a socket where the daemon's should be can give wrong output:
 * jobs cannot be checked without decoding them.  It cannot do more: whatever it sends or writes,
 * the library stays within the memory that it should use and its calls keep their promises.
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
 * wharf_error_message: one line, without a newline, about a call of this thread: what was wrong,
 * and where there is something to do, what.  It is there after a call that returned a negative
 * number, and after a wharf_open that gave an embedded handle because no daemon could be had.  Read
 * it before the thread's next call, which may change it.  It may quote a daemon, with everything
 * but printable characters replaced.  Empty before any error; never NULL.
 */
const char *wharf_error_message(void);

/* ---- codecs ---------------------------------------------------------------------------- */

/*
 * wharf_codec_from_name: the number (enum wharf_codec) of the codec called `name`, as in
 * "zlib".  Case matters.  Returns it, -ENOENT (there is none; the message has all names) or -EINVAL
 * (`name` is NULL).
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

/* Flags of wharf_open.  Without any: through a daemon if it can be had, or else embedded. */
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
                                daemon or library choose for each job; any other one is used, or
                                refused when the handle is opened.  Where the GPU is lost later
                                the daemon's CPU does its jobs, and completions say so */
    uint32_t flags;          /* enum wharf_open_flag, or 0 */
    uint32_t max_jobs;       /* the most that can be in flight, finished but not yet taken ones
                                included: 1 to 32767.  0 is WHARF_DEFAULT_MAX_JOBS, or less where
                                the daemon allows a queue, or all of this user's queues together,
                                less than that: wharf_get_info tells how many it became.  What
                                other handles of the user hold is not looked at, so both 0 and a
                                number can give -EDQUOT */
    const char *socket_path; /* of the daemon, at most 107 bytes.  NULL is what the environment
                                variable WHARF_SOCKET says (unless the program runs with more
                                rights than its user) or else WHARF_DEFAULT_SOCKET */
    const char *client_name; /* tells the daemon's operator what this is; of a longer one the first
                                64 bytes are used.  NULL is the program's name */
    size_t arena_nbytes;     /* memory for wharf_alloc and for copies of wharf_decompress; 0 is
                                WHARF_DEFAULT_ARENA_NBYTES, or what the daemon allows if that is
                                less.  Pages that are never touched cost nothing */
    uint32_t patience_ms;    /* how long a daemon may be away or not answer; 0 is
                                WHARF_DEFAULT_PATIENCE_MS */
    uint32_t spin_us;        /* how long a waiting call looks before it sleeps; 0 is
                                WHARF_DEFAULT_SPIN_US.  Looking saves the few microseconds of
                                falling asleep and waking up, at the cost of a busy processor.
                                After some looks in vain most waits sleep at once */
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
 * With WHARF_OPEN_EMBEDDED only the first four errors are possible.  Without flags and with an
 * engine that is here too, a daemon that cannot be used, for whatever reason, gives an embedded
 * handle and no error; wharf_error_message then says why.
 * Returns 0, or
 *   -EINVAL      ret_wharf is NULL, options' size is too small, or it holds an unknown engine,
 *                flag or class, both flags, or a number out of range
 *   -E2BIG       options has members set that this version does not know
 *   -EOPNOTSUPP  the engine is not there (or, with WHARF_OPEN_EMBEDDED, belongs to a daemon)
 *   -ENOMEM      out of memory
 *   -ENOENT, -ECONNREFUSED   there is no daemon
 *   -EACCES      the user is not in the group that may use the daemon
 *   -ETIMEDOUT   the daemon did not answer
 *   -EDQUOT      the daemon's limits for this user, or for all users together, do not allow
 *                max_jobs, arena_nbytes or one more connection
 *   -EPROTO      what answered is no wharfd, or one that shares no version with this library
 *   another number that connect or the daemon gave
 */
int wharf_open(const struct wharf_options *options, struct wharf **ret_wharf);

/*
 * wharf_close: ends a handle and frees it, its arena and all that was allocated there.  NULL is
 * allowed.  No other call on the handle may be under way.  Jobs in flight are cancelled but not
 * waited for: registered memory that they use may still be written until the daemon has noticed,
 * so cancel and reap them first where that matters.
 */
void wharf_close(struct wharf *wharf);

/*
 * wharf_engine: the engine that runs this handle's jobs; AUTO only through a daemon.  No errors:
 * `wharf` must not be NULL.
 */
uint32_t wharf_engine(const struct wharf *wharf);

/* What wharf_get_info tells.  Members from max_job_nbytes on are 0 for an embedded handle. */
struct wharf_info {
    uint32_t struct_nbytes; /* sizeof(struct wharf_info), set by the caller */
    uint32_t is_daemon;     /* 1: this handle works through a daemon; 0: embedded */
    uint32_t is_connected;  /* 1: to a daemon that has answered, as far as is known */
    uint32_t max_jobs;
    uint32_t n_in_flight; /* jobs submitted whose completion was not yet taken */
    uint32_t engines;     /* bits 1 << enum wharf_engine: that can run this handle's jobs */
    uint64_t codecs;      /* bits 1 << enum wharf_codec */
    uint64_t arena_nbytes;
    uint64_t arena_taken_nbytes;
    uint64_t max_job_nbytes;       /* source plus destination of one chunk */
    uint64_t max_batch_chunks;     /* of one batch */
    uint64_t generation;           /* another number is another daemon */
    uint64_t n_reconnects;         /* how often the daemon was lost and found */
    uint64_t n_resubmitted;        /* jobs that were submitted again */
    char daemon_version[32];       /* printable; cut off where it is longer */
    uint64_t max_gpu_chunk_nbytes; /* of a chunk's source, and of its destination, of which a GPU
                                      has many at a time; 0 where there is no GPU memory */
    uint64_t n_here;               /* calls of wharf_decompress through this handle that the calling
                                      thread did itself, though there was a daemon */
    uint64_t max_gpu_large_nbytes; /* in GPU memory, and where the engine is the GPU's: source plus
                                      destination of one chunk, */
    uint64_t max_gpu_large_ns;     /* and how long the GPU may have it */
    uint64_t max_compress_nbytes;  /* source of one chunk that is compressed; 0: the daemon does not
                                      compress */
};

/*
 * wharf_get_info: fills *ret_info, whose struct_nbytes the caller has set.  Does not block.
 * Returns 0 or an error of every call, -ENOTCONN excepted.
 */
int wharf_get_info(struct wharf *wharf, struct wharf_info *ret_info);

/* ---- memory ---------------------------------------------------------------------------- */

/*
 * Jobs that are submitted work on memory that the daemon can reach: the handle's arena, and what
 * was registered.  (wharf_decompress takes any memory, and copies.)  An embedded handle
 * behaves the same, so that a program that works with one works with the other.
 *
 * wharf_alloc: nbytes (0 counts as 1) of the arena, at a multiple of 64 bytes, with any contents.
 * Returns 0 with *ret_memory, which is the caller's until wharf_free or wharf_close, or
 *   -ENOBUFS     the arena has no free piece of that size: free something, or open the handle with
 *                a larger arena_nbytes
 *   -ENOMEM      out of memory
 */
int wharf_alloc(struct wharf *wharf, size_t nbytes, void **ret_memory);

/*
 * wharf_free: gives memory of wharf_alloc back.  NULL is allowed.  No job in flight may use it.
 * Returns 0 or -EINVAL (wharf_alloc did not give that, or it was freed before; nothing happens).
 */
int wharf_free(struct wharf *wharf, void *memory);

enum wharf_memory_kind {
    WHARF_MEMORY_MEMFD = 1, /* made by memfd_create, without MFD_HUGETLB */
    WHARF_MEMORY_GPU = 2,   /* made by cuMemCreate and exported as a POSIX file descriptor: see
                               wharf_register_gpu */
};

enum wharf_memory_flag {
    WHARF_MEMORY_READ_ONLY = 1 << 0, /* only sources will be in it */
};

struct wharf_memory {
    uint32_t struct_nbytes; /* sizeof(struct wharf_memory) */
    uint32_t kind;          /* enum wharf_memory_kind */
    int32_t fd;             /* the memory's; duplicated, so the caller may close its own */
    uint32_t flags;         /* enum wharf_memory_flag, or 0 */
    void *address;          /* where the caller has mapped it: jobs name it by this.  Of GPU memory,
                               the device address, at which the library never looks */
    size_t nbytes;          /* the first so many bytes of it, at least 1 */
};
#define WHARF_MEMORY_INIT                                                                          \
    {                                                                                              \
        sizeof(struct wharf_memory), WHARF_MEMORY_MEMFD, -1, 0, NULL, 0                            \
    }

/*
 * wharf_register: lets jobs use the caller's own shared memory.  A memfd must be sealed with
 * F_SEAL_SHRINK and F_SEAL_GROW, so that nobody can pull it away under a reader; one that is
 * sealed against writing can be registered READ_ONLY.  Blocks until the daemon has answered.  The
 * mapping must stay until wharf_unregister.
 * Returns 0, or
 *   -EBADF       fd is no descriptor of that kind
 *   -EPERM       a seal is missing, or it is sealed against writing and not registered READ_ONLY
 *   -EEXIST      some of these addresses are registered, or are the arena
 *   -EOPNOTSUPP  GPU memory, and no daemon with a GPU, or READ_ONLY and the daemon is too old
 *   -ENODEV, -EINVAL   of GPU memory: as wharf_register_gpu
 *   -ENOSPC      WHARF_MAX_MEMORIES are registered
 *   -EDQUOT      over the daemon's max_regions (64 unless it is set) or max_memory
 *   -ENOMEM      not there
 *   -ETIMEDOUT   the daemon did not answer within patience_ms
 */
#define WHARF_MAX_MEMORIES 1023
int wharf_register(struct wharf *wharf, const struct wharf_memory *memory);

/*
 * wharf_register_gpu: lets jobs have their source, their destination or both in GPU memory of the
 * caller's own, whose bytes never pass the host.  The same as wharf_register with kind
 * WHARF_MEMORY_GPU and no flags; with WHARF_MEMORY_READ_ONLY it is for sources alone.
 *   fd           what cuMemExportToShareableHandle gave, a POSIX file descriptor, for memory of
 *                cuMemCreate on a GPU of the daemon's, which has to be asked for one when it
 *                is made (requestedHandleTypes).  Duplicated: the caller may close its own.
 *   address      where the caller has mapped it (cuMemMap, cuMemSetAccess): jobs name it by this.
 *                The library never looks there.
 *   nbytes       its size, as it was given to cuMemCreate: the driver maps all of it or nothing.
 * Memory of cudaMalloc cannot be exported so.  A job's `in` and `out`, and those of a batch's
 * chunks, may then be (void *)(address + offset), at any alignment; a batch's results stay in host
 * memory.  Such a job runs on the GPU whose memory it is, whatever the handle's engine, which is
 * AUTO or the GPU's, and never on the CPU.  Chunks whose source and whose out_avail are each at
 * most wharf_info.max_gpu_chunk_nbytes (the daemon's `[gpu] chunk`) run by the thousand.  Larger
 * ones, up to max_gpu_large_nbytes, run two at a time, and so do all of a batch that has a larger
 * one.
 *
 * ORDER.  The daemon's kernel runs in no stream of the caller's.  So before the submission, all
 * that the caller's own work on the GPU does with the source and the destination must be over:
 * synchronise, do not only enqueue.  With the completion the bytes are in the GPU's memory, for
 * everything that is begun after it was taken: a kernel that is launched or a copy that is started
 * then, in any stream and context, needs no further synchronisation.  That is so since the warp
 * that decoded makes its stores visible to the whole system before it tells of the completion,
 * which on one GPU means that they are in the cache that all contexts share; and work that begins
 * later has no older copy of them.  A kernel that is running already when the completion comes has
 * to be told by the host, with an acquire load at system scope, and must not have read the bytes
 * through the read-only path
 * (__ldg) before.
 *
 * ENDS.  The daemon keeps the memory from being freed while it is registered, and for some tenths
 * of a second after wharf_unregister, wharf_close or the end of the process; the caller may unmap
 * and release its own part at any time, but a job that is in flight still reads and writes.  When
 * the GPU's worker process dies, jobs wait for the next one, which gets the memory again, and the
 * library sees to the same when the daemon is restarted.
 *
 * Additional results of such jobs:
 *   WHARF_UNSUPPORTED    the GPU has no decoder for the codec (wharf_info says which there are on
 *                any engine)
 *   WHARF_QUOTA, GPU_LARGE   source and destination are together over max_gpu_large_nbytes, or one
 *                is over 256 MiB; GPU_LARGE_TIME: it took the GPU longer than max_gpu_large_ns
 *   WHARF_BAD_REQUEST, REQUEST_REGION   source and destination, or chunks of one batch, are in the
 *                memory of different GPUs; or a daemon that came later takes no sources there
 *   WHARF_NO_MEMORY      the job's host memory cannot be pinned, the GPU refused this memory when
 *                its worker was started again, or has none for a chunk over max_gpu_chunk_nbytes
 *   WHARF_DEVICE_FAULT   the worker died while it ran this job alone, or did so too often with jobs
 *                of this user's; or no worker gets ready any more
 *
 * Blocks until the GPU has the memory, or does not take it: some milliseconds, or seconds when a
 * worker is just starting.
 * Returns 0, or
 *   -EBADF       fd is no descriptor of that kind
 *   -EINVAL      it is no exported memory of a GPU of the daemon's, or of another size
 *   -ENODEV      there is no GPU at present
 *   -EOPNOTSUPP  there is no daemon with a GPU, or the handle's engine is the CPU
 *   -EDQUOT      over the daemon's max_gpu_memory or max_gpu_regions
 *   -EEXIST, -ENOSPC, -ENOMEM, -ETIMEDOUT   as wharf_register
 */
int wharf_register_gpu(struct wharf *wharf, int fd, uint64_t address, size_t nbytes);

/*
 * wharf_register_file: lets jobs have their source, their destination or both in a file, which the
 * daemon reads and writes: the program copies nothing.
 *   fd           of a regular file or a block device.  Duplicated: the caller may close its own.
 *                What may be done with the file is what fd is open for, and never more.  The daemon
 *                opens no path, and leaves the file's position and flags alone.
 *   flags        0 or WHARF_MEMORY_READ_ONLY.  A file that is open for reading alone is read-only.
 *   ret_address  not NULL; receives an address A.  Byte N of the file is what jobs call A + N, for
 *                N below 2^50: `in`, `out`, and those of a batch's chunks.  There is no memory: the
 *                program can neither read nor write there.
 * wharf_unregister(wharf, A) ends that.
 *
 * Such jobs run on the CPU, whatever else the daemon has, so source and destination may be a file,
 * the arena or registered memory, but no GPU memory.  (A handle whose engine is a GPU takes no
 * files.)  All rules for memory hold for a file's bytes: nobody may write those of a source or a
 * destination while the job is in flight.  Whoever does gets any result, and harms nobody else.
 * Files are read and written by way of the page cache, unless fd is open with O_DIRECT, whose rules
 * are then the caller's to keep.  Nothing is synchronised to a disk.
 *
 * Output is written to a file when the job has ended well: if it fails before, the destination is
 * as it was.  A batch's chunks are written one by one.
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
 *                done: what was written, and what will be, nobody knows.  The destination is
 *                undefined within out_avail, and may change until the file's own server has ended
 *                what it was asked for.  Unlike all others, such a job is not submitted again
 *
 * Blocks until the daemon has looked at the file.
 * Returns 0, or
 *   -EBADF       fd is no regular file and no block device
 *   -EACCES      fd is not open for what flags say, or its file system does not let the daemon look
 *                at it, as FUSE's without allow_other: read it yourself
 *   -EINVAL      ret_address is NULL, a flag is unknown, or fd is open for writing with O_APPEND
 *   -EOPNOTSUPP  the daemon is too old for files, there is none, or the handle's engine is a GPU;
 *                or the file is of procfs, sysfs or another file system that makes its files up
 *   -EBUSY       files of this user hang processes of the daemon
 *   -EDQUOT      over the daemon's limits
 *   -ENOSPC, -ENOMEM, -ETIMEDOUT   as wharf_register
 *   another number that fstat gave
 * wharf_submit, wharf_submit_batch and wharf_decompress return -EFBIG where a destination reaches
 * beyond the process's RLIMIT_FSIZE.
 */
int wharf_register_file(struct wharf *wharf, int fd, uint32_t flags, void **ret_address);

/*
 * wharf_unregister: ends that for the memory registered at `address`.  Blocks likewise.
 * Returns 0, -ENOENT (nothing is registered there), -EBUSY (a job in flight uses it) or
 * -ETIMEDOUT.
 */
int wharf_unregister(struct wharf *wharf, void *address);

/* ---- models ---------------------------------------------------------------------------- */

/*
 * A stream of codec rans can leave out the model that it was coded with: it is registered, once for
 * any number of jobs, which name it by their parameter.  Whoever has many short streams with one
 * model, or models with many distributions, as learned image codecs do, saves their bytes and the
 * time to make tables of them; models may have 2^24 slots so, and 65536 in a stream.
 * rans_format.h, in the folder `formats` of wharf's documentation, has the form of streams and
 * models.
 */
struct wharf_model {
    uint32_t struct_nbytes; /* sizeof(struct wharf_model) */
    uint32_t codec;         /* enum wharf_codec: RANS */
    const void *data;       /* as wharf_make_rans_model makes it; not kept */
    size_t nbytes;          /* of data */
};
#define WHARF_MODEL_INIT                                                                           \
    {                                                                                              \
        sizeof(struct wharf_model), WHARF_CODEC_RANS, NULL, 0                                      \
    }

/*
 * wharf_register_model: has a model checked, and made ready for jobs.  Blocks until the daemon has
 * answered, which takes some tenths of a second for the largest; on an embedded handle it does
 * that itself.  The library keeps a copy, for the next daemon when this one is restarted.
 *   ret_parameter  not NULL; receives what jobs of that codec have as their parameter, at least
 *                  WHARF_FIRST_MODEL, until wharf_unregister_model or wharf_close.
 * A job is WHARF_BAD_DATA, RANS_HEADER, if its stream is of another shape than the model or brings
 * one of its own; and WHARF_BAD_REQUEST, REQUEST_PARAMETER, if there is no such model.
 * Returns 0, or
 *   -EBADMSG     it is no model: the message says why
 *   -EINVAL      the codec has none that could be registered
 *   -EOPNOTSUPP  the daemon is too old for models
 *   -ENOSPC      WHARF_MAX_MODELS are registered
 *   -EFBIG       it is larger than the process's RLIMIT_FSIZE, under which the copy is
 *   -EDQUOT      over the daemon's max_models (64 unless it is set) or max_memory
 *   -ENOMEM      not there
 *   -ETIMEDOUT   the daemon did not answer within patience_ms
 */
#define WHARF_MAX_MODELS 1024
int wharf_register_model(struct wharf *wharf, const struct wharf_model *model,
                         uint32_t *ret_parameter);

/*
 * wharf_unregister_model: ends that.  Blocks likewise.
 * Returns 0, -ENOENT (there is no such model), -EBUSY (a job in flight names it) or -ETIMEDOUT.
 */
int wharf_unregister_model(struct wharf *wharf, uint32_t parameter);

/* What a model of codec rans says: how probable each symbol is, in units of 2^-n_bits. */
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
 * wharf_make_rans_model: writes a model in the form that is registered.
 *   model        NULL to ask for the size.
 * Returns 0 with *ret_nbytes, -EINVAL, -E2BIG, or -ENOSPC when model_avail is too little.  Has no
 * handle; safe from any thread.
 */
int wharf_make_rans_model(const struct wharf_rans_frequencies *frequencies, void *model,
                          size_t model_avail, size_t *ret_nbytes);

/* ---- jobs ------------------------------------------------------------------------------ */

/*
 * One chunk to decode or to compress.  Source and destination are this process's memory, stay the
 * caller's, and must not overlap.  Until the call returns, or the completion has been taken, nobody
 * may write to either, another job of this program included, nor read the destination.
 */
struct wharf_job {
    uint32_t struct_nbytes; /* sizeof(struct wharf_job) */
    uint32_t codec;         /* enum wharf_codec */
    uint32_t flags;         /* enum wharf_job_flag, or 0: bytes after the end of the stream are
                               left alone and any output that fits is good */
    uint32_t checksum;      /* with WHARF_JOB_CHECKSUM, the CRC-32 that the output must have;
                               otherwise not looked at */
    const void *in;         /* the source; may be NULL if in_nbytes is 0 */
    size_t in_nbytes;       /* its size in bytes; at most PTRDIFF_MAX */
    void *out;              /* the destination; may be NULL if out_avail is 0 */
    size_t out_avail;       /* its size in bytes; at most PTRDIFF_MAX */
    uint64_t user_data;     /* comes back in the completion; the library makes nothing of it */
    uint32_t timeout_us;    /* DEADLINE if it is not finished so long after it was taken up; 0 is no
                               limit.  An embedded handle looks at it before it begins the job */
    uint32_t job_class;     /* enum wharf_class */
    uint32_t parameter;     /* of rle1 and rle2 the type of the values, enum wharf_rle_type; of
                               rans 0 for symbols of a byte, 1 for 16 bits, or a registered model;
                               0 for codecs that say nothing of it */
    uint32_t reserved;      /* 0 */
    uint32_t encoder;       /* to compress, by which of the codec's encoders, as wharf_codec.h
                               numbers them; 0 is its default.  Otherwise not looked at */
    uint32_t level;         /* likewise, of that encoder; 0 is its default */
};
#define WHARF_JOB_INIT                                                                             \
    {                                                                                              \
        sizeof(struct wharf_job), WHARF_CODEC_STORED, 0, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0  \
    }

/*
 * wharf_decompress: decodes one chunk, and returns when it is done.
 *   wharf        a handle; not NULL.
 *   job          what to decode; not NULL; not kept; user_data means nothing here.
 *   ret_outcome  not NULL; receives what became of it.
 *
 * Embedded, it computes in the calling thread, without sleeping, locking or (except in the
 * reference engine, which asks zlib) taking memory, and does not look at timeout_us.  (A
 * process's first job with Deflate's fixed codes makes tables for all, for which others wait that
 * need them at that moment.)
 *
 * Through a daemon it copies what is neither in the arena nor registered into the arena and back.
 * What cannot go that way (it does not fit, it is over the daemon's limits, or the daemon is away)
 * is decoded in the calling thread, unless the handle was opened with WHARF_OPEN_DAEMON, or with
 * GPU or SIMT, or some of the memory is registered or of the arena, or the job names a registered
 * model.
 *
 * What may be decoded in the calling thread is, if it is done sooner so: a caller that only waits
 * has a processor to spare, and needs no copies and no wake-ups.  The handle finds out which is
 * sooner by trying both now and then, for each codec and order of size.  The daemon is asked in any
 * case for jobs with a timeout_us or of the class BACKGROUND, and where the handle has another
 * engine than AUTO.  What it is not asked counts against no quota and is in no statistics but
 * n_here.
 *
 * Returns 0 with *ret_outcome filled, or a negative number with *ret_outcome and the destination
 * untouched (but see -ENOTCONN):
 *   an error of every call; with -ENOTCONN, registered memory of the job may still be written
 *                until a wharf_ping has succeeded
 *   -ENOBUFS     the arena is too small, or has been given out by wharf_alloc
 *   -EFAULT      the source or the destination is GPU memory and reaches beyond what is registered,
 *                or is registered READ_ONLY and the destination
 *   -EMSGSIZE    source and destination are together more than the daemon takes in one job
 *
 * The outcome, looked for in this order, so that each job has exactly one:
 *   WHARF_BAD_REQUEST   REQUEST_CODEC: no such codec.  REQUEST_FLAGS: unknown flags.
 *                       REQUEST_CLASS, REQUEST_PARAMETER: likewise.
 *                       Of the source, then of the destination, REQUEST_NULL: NULL with a size
 *                       other than 0.  REQUEST_SIZE: a size over PTRDIFF_MAX.  REQUEST_RANGE:
 *                       memory that wraps around the end of the address space.  Of both,
 *                       REQUEST_OVERLAP.  bit_offset is 0.
 *   WHARF_BAD_DATA, WHARF_BAD_CHECKSUM, WHARF_OUTPUT_TOO_SMALL, WHARF_UNSUPPORTED
 *                       what the codec found first in stream order; bit_offset says where.
 *   WHARF_BAD_DATA      INPUT_LEFT, with WHARF_JOB_EXACT_INPUT.
 *   WHARF_OUTPUT_SHORT  OUTPUT_MISSING, with WHARF_JOB_EXACT_OUTPUT.
 *   WHARF_BAD_CHECKSUM  JOB_CHECKSUM, with WHARF_JOB_CHECKSUM.
 *   WHARF_OK            in_nbytes and out_nbytes say how much was read and written.
 * The reference engine can also end with WHARF_NO_MEMORY, and a daemon's job with WHARF_DEADLINE,
 * WHARF_QUOTA, WHARF_NO_MEMORY, WHARF_DEVICE_FAULT, WHARF_INTERNAL and numbers of later versions.
 *
 * Unless the outcome is WHARF_OK, out_nbytes and in_nbytes are 0 and the bytes within the
 * destination's out_avail are undefined.  Bytes outside it are never touched.  WHARF_OK means
 * that all checksums that the format carries were right.
 */
int wharf_decompress(struct wharf *wharf, const struct wharf_job *job,
                     struct wharf_outcome *ret_outcome);

/*
 * wharf_compress: makes one stream of a chunk, and returns when it is done.
 *   job          what to compress, and by which codec, parameter, encoder and level; not NULL; not
 *                kept.  Of its flags WHARF_JOB_COMPRESS alone may be set, and need not be.
 *   ret_outcome  not NULL; receives what became of it.
 *
 * Through a daemon it works as wharf_decompress does, with copies where they are needed.  What the
 * daemon does not compress (it is too old, the source is over wharf_info's max_compress_nbytes, or
 * the daemon is away) is compressed in the calling thread where wharf_decompress would decode it
 * there; the outcome is REQUEST_ENCODER then, if the encoder is one that only daemons have.
 * Two calls with the same source and job may give different streams, if one of
 * them was done here, or by another version of an encoder.
 *
 * The source may change meanwhile: encoders work on a copy of it, so the stream is one of what was
 * there at some time.  A class of BACKGROUND waits in the daemon for processors that are idle.
 *
 * Returns 0 with *ret_outcome filled, or a negative number as wharf_decompress does, and also
 *   -EOPNOTSUPP  the daemon does not compress, and this process is not to
 *   -EMSGSIZE    the source is over max_compress_nbytes, and this process is not to compress it
 * The outcome:
 *   WHARF_BAD_REQUEST      as of wharf_decompress; REQUEST_ENCODER, after REQUEST_PARAMETER: the
 *                          codec has no such encoder, or that has no such level.  A registered
 *                          model is no parameter here.
 *   WHARF_OUTPUT_TOO_SMALL OUTPUT_FULL: the stream does not fit.  One that is as large as
 *                          wharf_compress_bound says is never too small.
 *   WHARF_BAD_DATA         NOT_ENCODABLE: the codec has no stream for that source, which is no
 *                          whole number of the parameter's units, holds a value that is none of
 *                          its, or is larger than a stream can be.
 *   WHARF_OK               in_nbytes is the source's size, out_nbytes the stream's.
 * and, in both cases, WHARF_NO_MEMORY; a daemon's job also those of wharf_decompress that are about
 * daemons.
 */
int wharf_compress(struct wharf *wharf, const struct wharf_job *job,
                   struct wharf_outcome *ret_outcome);

/*
 * wharf_compress_bound: the size of a destination that is large enough for any source of
 * job->in_nbytes with the job's codec, parameter, encoder and level, in a daemon and without one.
 * Nothing else of the job is looked at.  Has no handle; safe from any thread.
 * Returns 0 with *ret_nbytes, -EINVAL (an argument is NULL, there is no such codec or parameter, or
 * the size cannot be), -E2BIG or -ENOMEM.
 */
int wharf_compress_bound(const struct wharf_job *job, size_t *ret_nbytes);

/*
 * wharf_submit: hands jobs in.  Does not block.  Each one's source and destination lie whole in
 * one piece of the arena or of registered memory.
 *   jobs         n_jobs of them, each with the same struct_nbytes; not kept.
 * Jobs run in any order, and several at once.  On an embedded handle they run in the threads that
 * wait and poll, interactive ones first and background ones last.
 *
 * So no byte of a destination may be in the source or the destination of another job in flight,
 * nor of another chunk of the same batch: nobody looks for that.  Such jobs write over each
 * other's bytes.  Good data may then give WHARF_BAD_CHECKSUM or another error, and a destination
 * whose job is WHARF_OK may hold another job's bytes.  Sources may overlap.
 *
 * Returns how many jobs were taken, from the first on: fewer than n_jobs if there was no more room
 * or the next one cannot be taken.  If that is the first, an error of every call or
 *   -EAGAIN      max_jobs are in flight: take completions first
 *   -EFAULT      source or destination are not in the arena or registered, or the destination is
 *                registered READ_ONLY, or the source is GPU memory and the daemon too old for that
 *   -EOPNOTSUPP  the job compresses, and the daemon does not.  Where the daemon is replaced by one
 *                that does not while the job is in flight, it ends with REQUEST_FLAGS
 * Everything else that can be wrong with a job is its completion's result, as in wharf_decompress.
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

/* Many chunks as one job with one completion: less work for both sides than as many jobs. */
struct wharf_batch {
    uint32_t struct_nbytes; /* sizeof(struct wharf_batch) */
    uint32_t codec;         /* this and the following as in struct wharf_job, for all chunks */
    uint32_t flags;
    uint32_t timeout_us;
    uint32_t job_class;
    uint32_t parameter;
    uint64_t user_data;
    const struct wharf_batch_chunk *chunks; /* n_chunks of them; not kept */
    struct wharf_chunk_result *results;     /* NULL, or room for n_chunks, the caller's, to stay
                                               until the completion is taken */
    uint32_t n_chunks;                      /* at least 1 */
    uint32_t reserved;                      /* 0 */
    uint32_t encoder;                       /* as in struct wharf_job */
    uint32_t level;
};
#define WHARF_BATCH_INIT                                                                           \
    {                                                                                              \
        sizeof(struct wharf_batch), WHARF_CODEC_STORED, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0      \
    }

/*
 * wharf_submit_batch: hands one batch in.  Does not block.  The table that the daemon reads takes
 * 56 bytes of the arena for each chunk until the completion is taken.  Every chunk is tried, also
 * after another one was bad.  If the completion has WHARF_COMPLETION_RESULTS among its flags,
 * `results` is filled; struct wharf_completion says what the completion has of all.  One of more
 * chunks than wharf_info's max_batch_chunks ends with WHARF_BAD_REQUEST, REQUEST_BATCH.
 * Returns 0, an error of wharf_submit, -ENOBUFS (no room for the table) or -ENOMEM.
 */
int wharf_submit_batch(struct wharf *wharf, const struct wharf_batch *batch);

/*
 * wharf_submit_noop: hands in a job that does nothing but complete: for measuring.  Returns as
 * wharf_submit_batch does.
 */
int wharf_submit_noop(struct wharf *wharf, uint64_t user_data);

/*
 * wharf_cancel: asks to end all jobs in flight with this user_data.  Does not block.  Each of them
 * gets its one completion as ever: WHARF_CANCELLED, or what became of it if it was faster.
 * Returns how many jobs it was asked for: 0 if there are none, or only finished ones.
 */
int wharf_cancel(struct wharf *wharf, uint64_t user_data);

/* ---- long streams of run lengths --------------------------------------------------------- */

/*
 * A stream of ORC's integers or bytes is one long sequence of runs, of which none needs another: it
 * can be decoded in pieces that begin where runs do, each as a chunk, all at the same time.
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
 * Where there is a row index nothing needs to be looked for: each of its positions is the place of
 * a run and how many of its values belong to the rows before.
 */
struct wharf_run_piece {
    size_t in_offset; /* where it begins in the stream */
    size_t in_nbytes;
    uint64_t first_value; /* how many values are before it */
    uint64_t n_values;
};

/*
 * wharf_next_runs: finds the next piece of a stream by the headers of its runs, at some GB/s, and
 * decodes nothing.
 *   codec        RLE1, RLE2 or BYTERLE.
 *   in           the stream's in_nbytes; NULL if there are none.
 *   max_values   of a piece; a run that has more is a piece alone.
 *   piece        not NULL; the last piece, or zeros for the first one; receives the next.
 * A stream that ends in the middle of a run ends with a piece of no values, which has what is left:
 * as a job it fails as the whole stream does there.  What else is wrong is for the job to find that
 * has it, so of several failures that of the first piece is the stream's, its bit_offset counted
 * from that piece.
 * Takes no handle, and does not block.  Returns 1, 0 if there is no further piece (*piece is
 * untouched then), or -EINVAL (another codec, NULL, a piece that is not of this stream).
 */
int wharf_next_runs(uint32_t codec, const void *in, size_t in_nbytes, uint64_t max_values,
                    struct wharf_run_piece *piece);

/* ---- completions ----------------------------------------------------------------------- */

/*
 * wharf_poll: takes completions that are there.  Never sleeps; on an embedded handle, it runs one
 * job if none is finished.
 *   completions  room for max, at least 1.
 * Each has the job's user_data, its outcome and its timing, see wharf_result.h.  With it the job's
 * memory is the caller's again, whatever the result: nobody reads or writes it any more.
 * Returns how many were taken, 0 to max; -EINVAL if max is 0; or, when there is none to take, what
 * keeps the daemon away, as wharf_wait.
 */
int wharf_poll(struct wharf *wharf, struct wharf_completion *completions, unsigned max);

/*
 * wharf_wait: takes completions, and sleeps until there are `min` to take, no more jobs are in
 * flight, or the time is over.  On an embedded handle it runs jobs.
 *   min          0 to max.
 *   timeout_ns   nanoseconds; 0 is wharf_poll, negative is for ever.  Signals do not end the wait.
 * Returns how many were taken: fewer than min if nothing more is in flight or time is over.  An
 * error, such as -ENOTCONN, is returned only when there is nothing to take.
 */
int wharf_wait(struct wharf *wharf, struct wharf_completion *completions, unsigned max,
               unsigned min, int64_t timeout_ns);

/*
 * wharf_fd: a descriptor for poll, epoll and their like, the same for the handle's life.  It
 * becomes readable when wharf_poll should be called: for a completion, or for something in the
 * library that has to be attended to, a lost daemon, say; and now and then for nothing, when word
 * comes late of what was taken already.  Call wharf_poll until it returns less than max, then
 * sleep.  The descriptor is the library's: do not read, write or close it.  From the first call of
 * this function on, the daemon sends a packet when a completion comes after a sleep, where
 * wharf_wait alone would be cheaper.
 * Returns it, or an error of every call, or what epoll_create1 and its like gave.
 */
int wharf_fd(struct wharf *wharf);

/* ---- the daemon itself ----------------------------------------------------------------- */

/*
 * These block until the daemon has answered, one of them at a time.  On an embedded handle they
 * return -ENOTCONN.  Besides errors of every call they return -ETIMEDOUT when the daemon has not
 * answered within patience_ms, and what the daemon refused them with.
 *
 * wharf_ping: returns 0 when the daemon has answered.
 */
int wharf_ping(struct wharf *wharf);

/*
 * wharf_drain: asks the daemon to finish what it has taken and end.  -EPERM: only root and the
 * daemon's own user may, and nobody by a socket that is one tenant (wharfd.conf).  Returns 0 when
 * the daemon has agreed; then it takes no more jobs.
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
 * wharf_stats: calls `each` for every sample of the daemon's statistics that this user may see, the
 * samples of a family one after another.  What it is given is valid during the call.  `each`
 * must not call the library with this handle.
 * Returns 0, or an error, before which some samples may have been given.
 */
int wharf_stats(struct wharf *wharf, void (*each)(void *data, const struct wharf_metric *metric),
                void *data);

#ifdef __cplusplus
}
#endif

#endif
