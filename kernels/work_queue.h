/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_queue.h: the memory between the core and an epoch kernel; C and C++, host and device.
 *
 * The core makes it, one for each worker process and never used again after that one's death:
 * a memfd of wharf_work_queue_nbytes(n_entries) zeroed bytes.  The worker maps it too and makes it
 * reachable for the kernel, which polls it: so the core's stores are the hand-over, and no
 * process stands between.  work_queue_ops.h has both host sides' steps.
 *
 *        0   struct wharf_work_core      tails and the ring of cancels       the core writes
 *     1024   struct wharf_work_kernel     state, head, beat                   the kernel writes
 *     2048   struct wharf_work_worker     quit, park                          the worker writes
 *     4096   struct wharf_work_item       n_entries: what is to be done       the core writes
 *            struct wharf_work_completion n_entries: done, for the core      the kernel writes
 *            struct wharf_work_completion n_entries: to be moved, for the
 *                                         worker (WHARF_WORK_TO_STAGING)      the kernel writes
 *            struct wharf_work_completion n_entries: moved, for the core     the worker writes
 *
 * A resident kernel writes the words marked so; between two kernels the worker writes `state`, and
 * only it starts kernels, so each word has one writer at any time.
 *
 * INDICES are free-running 32-bit counters that wrap; the entry of index i is number i mod
 * n_entries, a power of two.  Items end in any order.  The core may use the place of item i
 * again when it has item i's completion, from whichever of its two rings; so there are never
 * more than n_entries items under way, and no ring of completions can overflow.
 *
 * PLACES ARE PASSED BY.  An item that takes long must not keep all that come behind it waiting when
 * the indices have come round to its place.  So the core can give an index to nothing: PASS, of
 * which the kernel touches no slot, makes no task and writes no completion.  It stands in the place
 * of the item that is under way, whose slot on the device stays as it is.  It may be written there
 * when the kernel's `head` says that the item was taken, and changes its opcode and its tags alone,
 * for the worker, which looks up there where to move its output.  Or it stands in a free place, for
 * items that want some in a row.  No item is passed by more than WHARF_WORK_MOST_PASSED indices
 * later: the words by which a kernel's warps find slots have 26 bits of an index.
 *
 * ITEMS, core to kernel: stores of the item, then tail (release).  A kernel that has loaded the
 * tail (acquire, system scope) loads the item, once, into its own memory.  Or it does not wait for
 * the tail first: the last word of each of an item's four quads of 16 bytes is a tag, the item's
 * index + 1, and is stored after the quad's other words.  A kernel loads the tail and the quads
 * that may be next at the same time, each quad by one access of 16 bytes, and an item whose four
 * tags are right, and which the tail covers, is there whole.  What was in its place has other tags:
 * zeros at first, then those of the items n_entries and more before it.
 *
 * COMPLETIONS, in three rings of the same kind: number c stands at place c mod n_entries, and the
 * last word of each of its four quads is its serial, c + 1.  The kernel stores all that it speaks
 * of, fences to the system, and stores the quads, each by one access, in no order.  The reader
 * waits until all four serials are the ones that it expects next (acquire), so there is no tail:
 * many warps complete at once.  It trusts nothing that it reads (wharf_work_completion_good).
 *
 * WHY A QUAD IS WHOLE.  It is aligned, and hence within a line of the cache.  Across PCIe an access
 * of 16 bytes by one lane is within one request, read or write.  An x86 processor answers a read
 * from the line as it is at one moment; processors keep the order of their stores, so a line that
 * has the tag has what was stored before it.  A write is put into the line at once; and were it
 * not, PCIe lets others see a write's words in the order of their addresses, the serial last.  An
 * x86 processor's loads keep their order as well.  Nothing promises the same of other processors:
 * there the tags are not to be used as they are here, see n_whole in epoch_poll.cuh.
 *
 * ADDRESSES in items are the device's own.  The worker tells the core the device address of each
 * region when it has mapped and registered it (for the whole region one contiguous range), and
 * the core adds the offset, after its check against the region's size.  No kernel looks up
 * anything in a table, and an address is good for as long as the worker lives.
 *
 * STATE and wake-ups.  The core publishes items or cancels, fences, loads `state` and wakes the
 * worker unless it is RUNNING.  A kernel that has nothing to do stores LEAVING, fences, loads the
 * tails again, and goes on if something is there (RUNNING), else goes (OUT): then the core's next
 * publication wakes the worker, which starts a kernel.  A kernel that goes though there is or may
 * be more (parked, or its longest stay is over) stores OUT_MORE, and the worker looks after that by
 * itself.  models/epoch.pml shows that nothing is overlooked,
 * and models/places.pml that passing places by is right.
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
/* From an item's index on to the last one that passes it by. */
#define WHARF_WORK_MOST_PASSED (1u << 24)
/* Cancels under way; a power of two. */
#define WHARF_WORK_N_CANCELS 64u

enum wharf_work_opcode {
    WHARF_WORK_NOOP = 0, /* completed with WHARF_OK; touches no memory */
    WHARF_WORK_DECODE = 1,
    /* For tests of what happens then, and NOOPs unless the kernel was made for them: a store to
     * memory that is not there, which ends the worker; and a warp that never comes back. */
    WHARF_WORK_FAULT = 2,
    WHARF_WORK_HANG = 3,
    WHARF_WORK_DECODE_PART = 4, /* a part of a chunk: work_parts.h */
    WHARF_WORK_PASS = 5,        /* no item: an index whose place is another one's, see above */
    /* DECODE of a chunk of any size that decoders take, whose input is copied to, and whose output
     * is built in, `staging`: device memory of wharf_work_large_nbytes bytes, aligned to 256. */
    WHARF_WORK_DECODE_LARGE = 6,
};

/* Where an item's output is built, and who takes it to its destination. */
enum wharf_work_output {
    /* dst is memory of the host: built in the kernel's own memory and stored from there. */
    WHARF_WORK_TO_HOST = 0,
    /* dst is device memory, an importer's for example: built in place. */
    WHARF_WORK_TO_DEVICE = 1,
    /* dst is memory of the host: built in `staging` (device memory of dst_nbytes, given by the
     * core); the worker's copy engine takes it to dst and the worker completes it.  What fails
     * or is cancelled before is completed by the kernel. */
    WHARF_WORK_TO_STAGING = 2,
};

struct wharf_work_item {
    uint64_t src;        /* device's addresses, any alignment */
    uint32_t src_nbytes; /* at most the kernel's largest chunk, see epoch.h: larger ones are */
    uint32_t tag_0;      /* answered with BAD_REQUEST, REQUEST_SIZE; so are larger dst_nbytes, and
                            parts that need or give more than that; of DECODE_LARGE, what is larger
                            than decoders take */
    uint64_t dst;
    uint32_t dst_nbytes;
    uint32_t tag_1;
    /* With TO_STAGING and DECODE_LARGE; with DECODE_PART, WHARF_WORK_PART; else 0. */
    uint64_t staging;
    uint32_t attempt; /* any number but 0; another one each time that a job is tried again */
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
    uint32_t bit_offset; /* as in struct wharf_outcome, and so are the next four */
    uint32_t serial_0;   /* this completion's number + 1 */
    uint32_t in_nbytes;
    uint32_t out_nbytes;
    uint16_t result;
    uint16_t reason;
    uint32_t serial_1; /* likewise */
    uint32_t epoch;    /* of the kernel that did it */
    uint32_t wait_ns;  /* from when the kernel took the item until a warp began with it */
    uint32_t fetch_ns; /* bringing the input into the device's memory */
    uint32_t serial_2;
    uint32_t decode_ns;
    uint32_t move_ns; /* taking the output to the host */
    uint32_t part; /* of DECODE_PART, as struct wharf_work_part has it, as bit_offset is; else 0 */
    uint32_t serial_3;
};

/* An item that need not be done any more. */
struct wharf_work_cancel {
    uint32_t item;
    uint32_t attempt;
};

/*
 * Words of different writers, and words that different readers wait for, are 128 bytes apart.
 * A kernel's look at the two tails is one load of 8 bytes.
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
    uint32_t head;        /* items taken; for reports, and for a kernel that follows */
    uint32_t cancel_head; /* cancels taken: their places are free again */
    uint32_t beat;        /* changes at least every millisecond while a kernel is there */
    uint32_t kind;        /* enum wharf_work_kind: which kernel is to follow; for the worker */
    uint8_t pad_2[880];
};

struct wharf_work_worker {
    uint32_t quit; /* not 0: the kernel ends at once; of items under way nothing is promised */
    uint32_t park; /* not 0: the kernel takes nothing more, ends what it has and leaves */
    uint8_t pad_1[1016];
};

/* Of two kernels, where there are two. */
enum wharf_work_kind {
    WHARF_WORK_FOR_FEW = 0,  /* one whose blocks decode an item each */
    WHARF_WORK_FOR_MANY = 1, /* one whose warps do */
};

/* In the low bits of the state word; the rest counts kernels.  Fresh memory says OUT. */
enum wharf_work_state {
    WHARF_WORK_OUT = 0,      /* no kernel, and nothing was left undone */
    WHARF_WORK_RUNNING = 1,  /* a kernel is there, or on its way: it will look at the tails */
    WHARF_WORK_LEAVING = 2,  /* it looks for the last time, perhaps */
    WHARF_WORK_OUT_MORE = 3, /* no kernel, and perhaps something to do */
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

/* ---- where things are ---------------------------------------------------------------------- */

static inline int wharf_work_entries_good(uint32_t n_entries)
{
    return n_entries >= WHARF_WORK_MIN_ENTRIES && n_entries <= WHARF_WORK_MAX_ENTRIES &&
           (n_entries & (n_entries - 1)) == 0;
}

static inline size_t wharf_work_queue_nbytes(uint32_t n_entries)
{
    return WHARF_WORK_ITEMS_OFFSET + (size_t)4 * n_entries * WHARF_WORK_ENTRY_NBYTES;
}

/* What a copy of so many bytes, aligned as the original is, takes. */
static inline uint64_t wharf_work_copy_nbytes(uint32_t nbytes)
{
    return ((uint64_t)nbytes + 128 + 255) / 256 * 256;
}

/* The place of an item that is DECODE_LARGE: its input, then its output. */
static inline uint64_t wharf_work_large_nbytes(uint32_t src_nbytes, uint32_t dst_nbytes)
{
    return wharf_work_copy_nbytes(src_nbytes) + wharf_work_copy_nbytes(dst_nbytes);
}

/* The pieces of a queue in one process's mapping of it, or by the device's addresses. */
struct wharf_work_queue {
    struct wharf_work_core *core;
    struct wharf_work_kernel *kernel;
    struct wharf_work_worker *worker;
    struct wharf_work_item *items;
    struct wharf_work_completion *done;    /* kernel to core */
    struct wharf_work_completion *to_move; /* kernel to worker */
    struct wharf_work_completion *moved;   /* worker to core */
    uint32_t n_entries;
};

/* wharf_work_queue_at: the pieces of a queue at an address; n_entries is good. */
static inline struct wharf_work_queue wharf_work_queue_at(void *memory, uint32_t n_entries)
{
    char *at = (char *)memory;
    struct wharf_work_queue queue;

    queue.core = (struct wharf_work_core *)(void *)at;
    queue.kernel = (struct wharf_work_kernel *)(void *)(at + 1024);
    queue.worker = (struct wharf_work_worker *)(void *)(at + 2048);
    queue.items = (struct wharf_work_item *)(void *)(at + WHARF_WORK_ITEMS_OFFSET);
    queue.done = (struct wharf_work_completion *)(void *)(queue.items + n_entries);
    queue.to_move = queue.done + n_entries;
    queue.moved = queue.to_move + n_entries;
    queue.n_entries = n_entries;
    return queue;
}

#ifdef __cplusplus
}
#endif

#endif
