/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_queue.h: the memory between the core and an epoch kernel; C and C++, host and device.
 *
 * The core creates it for each worker process, and never reuses it: a memfd of
 * wharf_work_queue_nbytes(n_entries) zeroed bytes.  The worker maps it too, and registers it for
 * the kernel, which polls it.  So the core's stores hand items over, without a process in between.
 * work_queue_ops.h has the steps of both host sides.
 *
 *        0   struct wharf_work_core      tails and the ring of cancels       the core writes
 *     1024   struct wharf_work_kernel     state, head, beat                   the kernel writes
 *     2048   struct wharf_work_worker     quit, park                          the worker writes
 *     4096   struct wharf_work_item       n_entries: what is to be done       the core writes
 *            struct wharf_work_completion n_entries: done, for the core      the kernel writes
 *
 * A resident kernel writes the words marked so; between two kernels the worker writes `state`, and
 * only it starts kernels, so each word has one writer at any time.
 *
 * INDICES are free-running 32-bit counters that wrap; index i has entry i mod n_entries, a power of
 * two.  Items end in any order.  The core may reuse the place of item i when it has item i's
 * completion.  So at most n_entries items run, and the ring of completions cannot overflow.
 *
 * SKIPPED PLACES.  When the indices wrap around, a long item must not block the items behind its
 * place.  So the core can give an index to an empty entry, PASS: the kernel touches no slot, makes
 * no task and writes no completion for it.  PASS can replace an item that still runs, whose slot on
 * the device is unaffected.  The core may write it there once the kernel's `head` says that the
 * item was taken.  PASS can also fill a free place, for items that need consecutive places.  No
 * item is skipped more than WHARF_WORK_MOST_PASSED indices later, because the words by which a
 * kernel's warps find slots have 26 bits of an index.
 *
 * ITEMS, core to kernel: the core stores the item, then the tail (release).  A kernel that has
 * loaded the tail (acquire, system scope) loads the item once, into its own memory.  It can also
 * avoid waiting for the tail.  The last word of each of an item's four quads of 16 bytes is a tag,
 * the item's index + 1, which is stored after the quad's other words.  The kernel loads the tail
 * and the next quads at the same time, each quad by one access of 16 bytes.  An item whose four
 * tags are right, and which the tail covers, is complete.  Earlier contents of its place have other
 * tags: zeros at first, then those of the items n_entries or more before it.
 *
 * COMPLETIONS use one ring.  Number c is at place c mod n_entries, and the last word of each of its
 * four quads is its serial, c + 1.  The kernel stores everything that the completion refers to,
 * fences to the system, and stores the quads, each by one access, in any order.  The reader waits
 * until all four serials have the next number (acquire).  So there is no tail, and many warps
 * complete at once.  The reader checks everything that it reads (wharf_work_completion_good).
 *
 * WHY A QUAD IS WHOLE.  It is aligned, and hence within one cache line.  Across PCIe, one lane's
 * access of 16 bytes is within one request, read or write.  An x86 processor answers a read from
 * the line as it is at one moment.  Processors keep the order of their stores, so a line with the
 * tag has everything that was stored before it.  A write enters the line at once; even if it did
 * not, PCIe shows a write's words in the order of their addresses, the serial last.  An x86
 * processor also keeps the order of its loads.  Other processors do not guarantee this: there the
 * tags must not be used this way; see n_whole in epoch_poll.cuh.
 *
 * ADDRESSES in items are device addresses.  The worker reports the device address of each region
 * after it has mapped and registered it (one contiguous range).  The core checks an offset against
 * the region's size and adds it.  So kernels need no table, and an address is valid as long as the
 * worker lives.
 *
 * STATE and wake-ups.  The core publishes items or cancels, fences, loads `state`, and wakes the
 * worker unless it is RUNNING.  An idle kernel stores LEAVING, fences, and loads the tails again.
 * If something is there it stays (RUNNING), else it leaves (OUT); then the core's next publication
 * wakes the worker, which starts a kernel.  A kernel that leaves although there may be more work
 * (parked, or its longest stay has ended) stores OUT_MORE; then the worker acts without a wake-up.
 * models/epoch.pml shows that nothing is overlooked, models/places.pml that skipping places is
 * correct.
 */
#ifndef WHARF_KERNELS_WORK_QUEUE_H
#define WHARF_KERNELS_WORK_QUEUE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WHARF_WORK_MIN_ENTRIES 64u
/* The number of an entry has 16 bits in a kernel's own queue. */
#define WHARF_WORK_MAX_ENTRIES 65536u
#define WHARF_WORK_ITEMS_OFFSET 4096u
#define WHARF_WORK_ENTRY_NBYTES 64u
/* The most indices after an item's own at which it is skipped. */
#define WHARF_WORK_MOST_PASSED (1u << 24)
/* Unread cancels at a time; a power of two. */
#define WHARF_WORK_N_CANCELS 64u

enum wharf_work_opcode {
    WHARF_WORK_NOOP = 0, /* completed with WHARF_OK; touches no memory */
    WHARF_WORK_DECODE = 1,
    /* For tests, and NOOPs unless the kernel was made for them: a store to unmapped memory, which
     * ends the worker; and a warp that never returns. */
    WHARF_WORK_FAULT = 2,
    WHARF_WORK_HANG = 3,
    WHARF_WORK_DECODE_PART = 4, /* a part of a chunk: work_parts.h */
    WHARF_WORK_PASS = 5,        /* no item: a skipped place, see above */
    /* DECODE of a chunk of any size that decoders accept.  Its input is copied to, and its output
     * built in, `staging`: device memory of wharf_work_large_nbytes bytes, aligned to 256. */
    WHARF_WORK_DECODE_LARGE = 6,
    /* Encodes lines, in an epoch that `encodes`, which has no other work: src becomes one stream at
     * dst, written in place wherever that is.  `parameter` is WHARF_WORK_LINES. */
    WHARF_WORK_ENCODE = 7,
};

/* An ENCODE's parameter: a line is 2 to the power of `shift` bytes (5, 6 or 7); the layout and the
 * type of values as encoders/line/line_format.h numbers them. */
#define WHARF_WORK_LINES(shift, layout, type) ((shift) | (layout) << 4 | (type) << 8)

/* Where an item's output is built, and how it reaches its destination. */
enum wharf_work_output {
    /* dst is host memory: built in the kernel's own memory, and stored from there. */
    WHARF_WORK_TO_HOST = 0,
    /* dst is device memory, such as imported memory: built in place. */
    WHARF_WORK_TO_DEVICE = 1,
    /* There is no dst.  Of large streams alone, which are built in the place for them. */
    WHARF_WORK_TO_NOWHERE = 2,
};

struct wharf_work_item {
    uint64_t src;        /* device addresses, any alignment */
    uint32_t src_nbytes; /* at most the kernel's largest chunk, see epoch.h; larger ones end with */
    uint32_t tag_0;      /* BAD_REQUEST, REQUEST_SIZE; so do larger dst_nbytes, parts that need or
                            give more, and for DECODE_LARGE sizes beyond the decoders' limits */
    uint64_t dst;
    uint32_t dst_nbytes;
    uint32_t tag_1;
    /* With DECODE_LARGE; with DECODE_PART, WHARF_WORK_PART; with DECODE, whose kept chunks may
     * serve (memo.h), 0: nobody's; else 0. */
    uint64_t staging;
    uint32_t attempt; /* not 0; differs each time that a job is retried */
    uint32_t tag_2;
    uint32_t checksum; /* with WHARF_JOB_CHECKSUM */
    uint16_t codec;    /* enum wharf_codec */
    uint16_t parameter;
    uint16_t flags; /* enum wharf_job_flag */
    uint8_t opcode; /* enum wharf_work_opcode */
    uint8_t output; /* enum wharf_work_output */
    uint32_t tag_3;
};

struct wharf_work_completion {
    uint32_t item;       /* index of the item */
    uint32_t attempt;    /* the item's */
    uint32_t bit_offset; /* as in struct wharf_outcome, like the next four */
    uint32_t serial_0;   /* this completion's number + 1 */
    uint32_t in_nbytes;
    uint32_t out_nbytes;
    uint16_t result;
    uint16_t reason;
    uint32_t serial_1; /* likewise */
    uint32_t epoch;    /* of the kernel that completed it */
    uint32_t wait_ns;  /* from taking the item until a warp started it */
    uint32_t fetch_ns; /* copying the input into device memory */
    uint32_t serial_2;
    uint32_t decode_ns;
    uint32_t move_ns; /* moving the output to the host */
    /* Of DECODE_PART, like bit_offset then: see struct wharf_work_part.  Of DECODE: see memo.h. */
    uint32_t part;
    uint32_t serial_3;
};

/* An item to cancel. */
struct wharf_work_cancel {
    uint32_t item;
    uint32_t attempt;
};

/*
 * Words of different writers, and words that different readers wait for, are 128 bytes apart.
 * A kernel loads both tails with one access of 8 bytes.
 */
struct wharf_work_core {
    uint32_t tail;        /* items published */
    uint32_t cancel_tail; /* cancels published */
    uint8_t pad_1[120];
    struct wharf_work_cancel cancels[WHARF_WORK_N_CANCELS];
    uint8_t pad_2[384];
};

struct wharf_work_kernel {
    uint32_t state; /* WHARF_WORK_STATE(epoch, enum wharf_work_state) */
    uint8_t pad_1[124];
    uint32_t head;        /* items taken; for reports, and for the next kernel */
    uint32_t cancel_head; /* cancels taken, whose places are free again */
    uint32_t beat;        /* changes at least every millisecond while a kernel runs */
    uint32_t kind;        /* enum wharf_work_kind: the next kernel, for the worker */
    uint8_t pad_2[880];
};

struct wharf_work_worker {
    uint32_t quit; /* not 0: the kernel ends at once; running items may get no completion */
    uint32_t park; /* not 0: the kernel takes nothing more, finishes its items and leaves */
    uint8_t pad_1[1016];
};

/* The two kernels, if there are two. */
enum wharf_work_kind {
    WHARF_WORK_FOR_FEW = 0,  /* each block decodes an item */
    WHARF_WORK_FOR_MANY = 1, /* each warp decodes an item */
};

/* In the low bits of the state word; the rest counts kernels.  Fresh memory says OUT. */
enum wharf_work_state {
    WHARF_WORK_OUT = 0,      /* no kernel, and no work */
    WHARF_WORK_RUNNING = 1,  /* a kernel runs or is about to: it will load the tails */
    WHARF_WORK_LEAVING = 2,  /* it loads the tails perhaps for the last time */
    WHARF_WORK_OUT_MORE = 3, /* no kernel, and perhaps work */
};
#define WHARF_WORK_STATE(epoch, state) ((uint32_t)(epoch) << 2 | (uint32_t)(state))
#define WHARF_WORK_STATE_OF(word) ((word)&3u)
#define WHARF_WORK_EPOCH_OF(word) ((word) >> 2)

/* ---- the layout, held ---------------------------------------------------------------------- */

#define WHARF_WORK_AT(type, member, offset)                                                        \
    static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define WHARF_WORK_SIZE(type, nbytes) static_assert(sizeof(struct type) == (nbytes), #type)

WHARF_WORK_AT(wharf_work_item, src, 0);
WHARF_WORK_AT(wharf_work_item, src_nbytes, 8);
WHARF_WORK_AT(wharf_work_item, tag_0, 12);
WHARF_WORK_AT(wharf_work_item, dst, 16);
WHARF_WORK_AT(wharf_work_item, dst_nbytes, 24);
WHARF_WORK_AT(wharf_work_item, tag_1, 28);
WHARF_WORK_AT(wharf_work_item, staging, 32);
WHARF_WORK_AT(wharf_work_item, attempt, 40);
WHARF_WORK_AT(wharf_work_item, tag_2, 44);
WHARF_WORK_AT(wharf_work_item, checksum, 48);
WHARF_WORK_AT(wharf_work_item, codec, 52);
WHARF_WORK_AT(wharf_work_item, parameter, 54);
WHARF_WORK_AT(wharf_work_item, flags, 56);
WHARF_WORK_AT(wharf_work_item, opcode, 58);
WHARF_WORK_AT(wharf_work_item, output, 59);
WHARF_WORK_AT(wharf_work_item, tag_3, 60);
WHARF_WORK_SIZE(wharf_work_item, WHARF_WORK_ENTRY_NBYTES);

WHARF_WORK_AT(wharf_work_completion, item, 0);
WHARF_WORK_AT(wharf_work_completion, attempt, 4);
WHARF_WORK_AT(wharf_work_completion, bit_offset, 8);
WHARF_WORK_AT(wharf_work_completion, serial_0, 12);
WHARF_WORK_AT(wharf_work_completion, in_nbytes, 16);
WHARF_WORK_AT(wharf_work_completion, out_nbytes, 20);
WHARF_WORK_AT(wharf_work_completion, result, 24);
WHARF_WORK_AT(wharf_work_completion, reason, 26);
WHARF_WORK_AT(wharf_work_completion, serial_1, 28);
WHARF_WORK_AT(wharf_work_completion, epoch, 32);
WHARF_WORK_AT(wharf_work_completion, wait_ns, 36);
WHARF_WORK_AT(wharf_work_completion, fetch_ns, 40);
WHARF_WORK_AT(wharf_work_completion, serial_2, 44);
WHARF_WORK_AT(wharf_work_completion, decode_ns, 48);
WHARF_WORK_AT(wharf_work_completion, move_ns, 52);
WHARF_WORK_AT(wharf_work_completion, part, 56);
WHARF_WORK_AT(wharf_work_completion, serial_3, 60);
WHARF_WORK_SIZE(wharf_work_completion, WHARF_WORK_ENTRY_NBYTES);

WHARF_WORK_AT(wharf_work_core, tail, 0);
WHARF_WORK_AT(wharf_work_core, cancel_tail, 4);
WHARF_WORK_AT(wharf_work_core, cancels, 128);
WHARF_WORK_SIZE(wharf_work_core, 1024);
WHARF_WORK_AT(wharf_work_kernel, state, 0);
WHARF_WORK_AT(wharf_work_kernel, head, 128);
WHARF_WORK_AT(wharf_work_kernel, cancel_head, 132);
WHARF_WORK_AT(wharf_work_kernel, beat, 136);
WHARF_WORK_AT(wharf_work_kernel, kind, 140);
WHARF_WORK_SIZE(wharf_work_kernel, 1024);
WHARF_WORK_AT(wharf_work_worker, quit, 0);
WHARF_WORK_AT(wharf_work_worker, park, 4);
WHARF_WORK_SIZE(wharf_work_worker, 1024);

#undef WHARF_WORK_AT
#undef WHARF_WORK_SIZE

/* ---- positions and sizes ------------------------------------------------------------------- */

static inline int wharf_work_entries_good(uint32_t n_entries)
{
    return n_entries >= WHARF_WORK_MIN_ENTRIES && n_entries <= WHARF_WORK_MAX_ENTRIES &&
           (n_entries & (n_entries - 1)) == 0;
}

static inline size_t wharf_work_queue_nbytes(uint32_t n_entries)
{
    return WHARF_WORK_ITEMS_OFFSET + (size_t)2 * n_entries * WHARF_WORK_ENTRY_NBYTES;
}

/* The size of a copy of nbytes with the original's alignment. */
static inline uint64_t wharf_work_copy_nbytes(uint32_t nbytes)
{
    return ((uint64_t)nbytes + 128 + 255) / 256 * 256;
}

/* The size of a DECODE_LARGE item's place: its input, then its output. */
static inline uint64_t wharf_work_large_nbytes(uint32_t src_nbytes, uint32_t dst_nbytes)
{
    return wharf_work_copy_nbytes(src_nbytes) + wharf_work_copy_nbytes(dst_nbytes);
}

/* The parts of a queue, by the addresses of one process's mapping or of the device. */
struct wharf_work_queue {
    struct wharf_work_core *core;
    struct wharf_work_kernel *kernel;
    struct wharf_work_worker *worker;
    struct wharf_work_item *items;
    struct wharf_work_completion *done; /* kernel to core */
    uint32_t n_entries;
};

/* wharf_work_queue_at: the parts of a queue at an address; n_entries is good. */
static inline struct wharf_work_queue wharf_work_queue_at(void *memory, uint32_t n_entries)
{
    char *at = (char *)memory;
    struct wharf_work_queue queue;

    queue.core = (struct wharf_work_core *)(void *)at;
    queue.kernel = (struct wharf_work_kernel *)(void *)(at + 1024);
    queue.worker = (struct wharf_work_worker *)(void *)(at + 2048);
    queue.items = (struct wharf_work_item *)(void *)(at + WHARF_WORK_ITEMS_OFFSET);
    queue.done = (struct wharf_work_completion *)(void *)(queue.items + n_entries);
    queue.n_entries = n_entries;
    return queue;
}

#ifdef __cplusplus
}
#endif

#endif
