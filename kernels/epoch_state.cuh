/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_state.cuh: an epoch kernel's memory on the device, and how work travels through it.
 *
 * The polling warp copies items out of the host's queue into `slots` and publishes them as tasks,
 * numbered and free-running: one for an item, or one for each slice of a stored item, which many
 * warps copy at the same time.  A warp that wants work draws a ticket, which is a task's number,
 * and waits at that task's word until it is there.  So no two warps wait for the same word, and
 * nobody competes for a task.
 *
 * A task's word is (number, valid, slice, item) and never cleared: the number tells whether it is
 * the awaited one.  There are words for all slices of as many items as the queue has entries;
 * the word of task t is used again by task t + n_words, whose item is at least n_entries younger,
 * hence published after t's item was completed and t's word read.
 *
 * Nor is there a fence between a slot and the words that name it, since each costs most of a
 * microsecond: a slot's quads carry the item's tag, as they do in the host's queue, and are
 * stored and loaded whole (work_queue.h, WHY A QUAD IS WHOLE; in the device's memory a relaxed
 * access of 16 bytes is one).  Who has a task's word loads the quads until all tags are right.
 */
#ifndef WHARF_KERNELS_EPOCH_STATE_CUH
#define WHARF_KERNELS_EPOCH_STATE_CUH

#include "kernels/epoch.h"
#include "kernels/epoch_admission.cuh"
#include "kernels/kernel_shape.cuh"
#include "kernels/work_queue.h"
#include "kernels/work_queue_ops.h"
#include "proto/wharf_job.h"

namespace wharf
{

/*
 * Up to MAX_SLICES warps copy a stored item, at least SLICE_NBYTES each, which is what one warp has
 * in flight.  So a lone item of 64 KiB takes one round trip to host memory instead of sixteen.
 */
constexpr uint32_t MAX_SLICES = 32;
constexpr uint32_t SLICE_NBYTES = 4096;

/* The words that all warps share; zero before the first epoch. */
struct epoch_control {
    /* Written by the polling warp, as one word of 64 bits. */
    alignas(128) uint32_t n_tasks;   /* published */
    uint32_t leaving;                /* enum leaving_how */
    alignas(128) uint32_t n_done;    /* completions in the ring of that name */
    alignas(128) uint32_t n_tickets; /* drawn; as many as tasks when an epoch begins */
    alignas(128) uint32_t n_left;    /* warps that have left */
    ordered_admission out;           /* to the host's memory */
    /* For the polling warp; persist from one epoch to the next. */
    alignas(128) uint32_t head;
    uint32_t cancel_head;
    uint32_t many_ns;
};

enum leaving_how : uint32_t {
    STAYING = 0,
    LEAVING_WHEN_DONE = 1, /* a warp leaves when its ticket's task will not come */
    QUITTING = 2,          /* they go at once */
};

/* An item on the device: SLOT_QUADS quads, whose last words are tags, and two words that other
 * warps write. */
struct alignas(128) epoch_slot {
    wharf_work_item item;
    uint32_t index;    /* the item's */
    uint32_t taken_ns; /* low bits of time_ns() when the polling warp took it */
    uint32_t zero;
    uint32_t tag_4;
    uint64_t cancelled; /* (attempt, index) of a cancelled item */
    /* In the low half, slices that have ended; in the high half those of them that ended without a
     * copy, since the item was cancelled.  0 again when the last one has. */
    uint32_t n_ended;
    /* For the warp that decodes the item, so that its registers need not hold them meanwhile. */
    uint32_t memo; /* what the completion will say of kept chunks: memo.h */
    uint64_t digest;
};
constexpr uint32_t SLOT_QUADS = 5;
static_assert(offsetof(epoch_slot, tag_4) == 16 * SLOT_QUADS - 4, "tag_4");

/* Where decoded chunks are kept: epoch_memo.cuh. */
struct memo_area {
    uint8_t *memory;
    uint64_t part_nbytes; /* a multiple of 256 */
    uint64_t log_nbytes;  /* of a part, likewise */
    uint32_t n_parts;     /* 0: nothing is kept */
    uint32_t n_entries;   /* of a part, a power of two */
    uint32_t key[2];
};

/* A kernel's parameters. */
struct epoch_params {
    wharf_work_queue queue; /* device's addresses */
    epoch_control *control;
    epoch_slot *slots; /* queue.n_entries */
    uint64_t *tasks;   /* queue.n_entries * MAX_SLICES */
    uint64_t *models;  /* WHARF_EPOCH_MAX_MODELS addresses of images; 0: none there */
    uint8_t *scratch;  /* n_warps * scratch_nbytes */
    size_t scratch_nbytes;
    uint32_t chunk_nbytes;
    uint32_t n_warps;   /* that poll or run tasks */
    uint32_t n_few;     /* items that are for the kernel of blocks; 0: there is none */
    uint32_t by_blocks; /* this is the kernel for few items */
    uint32_t epoch;
    uint32_t idle_ns;
    uint32_t stay_ns; /* 0: no limit */
    uint32_t per_batch;
    uint32_t faults;
    uint32_t most_out; /* warps that store to host memory at a time; 0: no limit */
    memo_area memo;
};

/* The kernel for many items leaves after few items for this long, and the other one starts. */
constexpr uint32_t FEW_FOR_NS = 2000000;

/* On the host: whether the next kernel is the one for few items.  Follows the last kernel's word,
 * unless the present items contradict it, or that kernel left long ago. */
inline bool next_is_for_few(const epoch_params &p, const wharf_work_queue &queue, uint64_t since_ns)
{
    uint32_t kind = __atomic_load_n(&queue.kernel->kind, __ATOMIC_RELAXED);
    return p.n_few && (kind == WHARF_WORK_FOR_FEW || since_ns >= FEW_FOR_NS) &&
           wharf_work_pending(&queue) <= p.n_few;
}

/* On the host: kernels that were started. */
struct kernel_history {
    uint32_t head;   /* items and cancels taken when the last kernel was started */
    uint32_t n_vain; /* that took nothing of what was there, one after the other; with the next */
};

/*
 * On the host, before each start: chooses the next kernel.  n_few is the limit for the kernel of
 * blocks; 0: there is no such kernel.  Either kernel may find items for the other one; the one for
 * many, because it started so late beside other processes that the items have changed.  When both
 * have run without taking anything, the next one is for many, and takes everything.
 */
inline void choose_kernel(epoch_params &p, const wharf_work_queue &queue, uint32_t n_few,
                          uint64_t since_ns, kernel_history &history)
{
    uint32_t head = __atomic_load_n(&queue.kernel->head, __ATOMIC_RELAXED) +
                    __atomic_load_n(&queue.kernel->cancel_head, __ATOMIC_RELAXED);
    bool is_vain = head == history.head && wharf_work_pending(&queue);
    history = {head, is_vain ? history.n_vain + 1 : 0};
    p.n_few = history.n_vain < 3 ? n_few : 0;
    p.by_blocks = next_is_for_few(p, queue, since_ns);
}

/* On the host: the members that the configuration decides. */
inline epoch_params epoch_params_of(const wharf_epoch_config &config, void *d_queue,
                                    uint32_t n_warps)
{
    epoch_params p = {};
    p.queue = wharf_work_queue_at(d_queue, config.n_entries);
    p.chunk_nbytes = config.chunk_nbytes;
    p.n_warps = n_warps;
    p.idle_ns = config.per_batch ? 0 : config.idle_us * 1000;
    p.stay_ns = config.stay_us * 1000;
    p.per_batch = config.per_batch != 0;
    p.faults = config.faults != 0;
    p.most_out = config.most_out;
    return p;
}

constexpr uint64_t TASK_VALID = 1u << 31;
/* A task's word has this many low bits of the item's index, which distinguish it from earlier items
 * of its slot. */
constexpr unsigned TASK_ITEM_NBITS = 26;
static_assert(WHARF_WORK_MAX_ENTRIES <= 1u << (TASK_ITEM_NBITS - 2), "generations of a slot");
static_assert(MAX_SLICES <= 1u << (31 - TASK_ITEM_NBITS), "slices in a task's word");

WHARF_DEVICE uint32_t item_bits(uint32_t index)
{
    return index & ((1u << TASK_ITEM_NBITS) - 1);
}

WHARF_DEVICE uint64_t task_word(uint32_t number, uint32_t index, uint32_t slice)
{
    return (uint64_t)number << 32 | TASK_VALID | slice << TASK_ITEM_NBITS | item_bits(index);
}

WHARF_DEVICE uint32_t task_item_bits(uint64_t word)
{
    return item_bits((uint32_t)word);
}

WHARF_DEVICE uint32_t task_slice(uint64_t word)
{
    return (uint32_t)word >> TASK_ITEM_NBITS & (MAX_SLICES - 1);
}

WHARF_DEVICE uint64_t *task_at(const epoch_params &p, uint32_t number)
{
    return &p.tasks[number & (p.queue.n_entries * MAX_SLICES - 1)];
}

WHARF_DEVICE uint64_t cancel_word(uint32_t index, uint32_t attempt)
{
    return (uint64_t)attempt << 32 | index;
}

/* Whether an item is decoded or encoded; other items need no work, except in tests of faults. */
WHARF_DEVICE bool is_work(uint32_t opcode)
{
    return opcode == WHARF_WORK_DECODE || opcode == WHARF_WORK_DECODE_PART ||
           opcode == WHARF_WORK_DECODE_LARGE || opcode == WHARF_WORK_ENCODE;
}

/*
 * Whether an item is copied directly from its source to its destination.  Every byte is read once,
 * so that is as safe as a private copy.
 */
WHARF_DEVICE bool is_copy(uint32_t opcode, uint32_t codec, uint32_t flags, uint32_t src_nbytes,
                          uint32_t dst_nbytes)
{
    return opcode == WHARF_WORK_DECODE && codec == WHARF_CODEC_STORED &&
           !(flags & WHARF_JOB_CHECKSUM) && src_nbytes <= dst_nbytes;
}

WHARF_DEVICE uint32_t n_slices_of(uint32_t nbytes)
{
    uint32_t n = nbytes / SLICE_NBYTES + (nbytes % SLICE_NBYTES != 0);
    return n < 1 ? 1 : n < MAX_SLICES ? n : MAX_SLICES;
}

/* The 64-bit word of two neighbouring ones, the first aligned to 8. */
WHARF_DEVICE uint64_t *pair_at(uint32_t *first)
{
    return reinterpret_cast<uint64_t *>(first);
}

WHARF_DEVICE uint64_t pair_of(uint32_t first, uint32_t second)
{
    return (uint64_t)second << 32 | first;
}

/* ---- a warp's scratch: the decoder's own, a copy of the input, the output ------------------- */

/* Room at both ends, so that a copy can have the alignment of its original. */
constexpr uint32_t SLOT_MARGIN_NBYTES = 128;

/* Like wharf_work_copy_nbytes. */
WHARF_CONSTEXPR size_t copy_nbytes(uint32_t chunk_nbytes)
{
    return round_up((size_t)chunk_nbytes + SLOT_MARGIN_NBYTES, 256);
}

template <typename Codec>
WHARF_CONSTEXPR size_t epoch_scratch_nbytes(uint32_t chunk_nbytes)
{
    return kernel_shape<Codec>::SCRATCH_NBYTES + 2 * copy_nbytes(chunk_nbytes);
}

} // namespace wharf

#endif
