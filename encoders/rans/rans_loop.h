/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_loop.h: tuned decoders and coders of rans bodies, one form of both for each set of
 * instructions.
 *
 * A decoder's form runs one or several decoders side by side, the others from splits on: their
 * chains of dependent instructions fill each other's gaps.  For AVX2 those are two, since four have
 * too few registers; for AVX-512 four, all of
 * which look up before the first goes on.  A decoder only says whether all was good; whoever needs
 * the verdict on a bad stream asks wharf_rans_walk.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_LOOP_H
#define WHARF_ENCODERS_RANS_RANS_LOOP_H

#include "encoders/rans/rans_code.h"
#include "encoders/rans/rans_walk.h"

/* The forms, in rising order of what they demand of the machine; how each codes, and on which
 * machines it is better than the one before: for all but buckets, and for these. */
#if defined(__x86_64__)
#define WHARF_RANS_LOOP_LIST(X)                                                                    \
    X(avx2, avx2, all, all)                                                                        \
    X(avx2_gather, avx2, recent_intel, recent_intel)                                               \
    X(avx512, avx512, all, recent_intel) X(avx512_vbmi, avx512, all, recent_intel)
#else
#define WHARF_RANS_LOOP_LIST(X)
#endif

/*
 * What a form decodes, and with which table beside the model's own.
 */
struct wharf_rans_loop_job {
    struct wharf_rans_task task;
    /* What wharf_rans_pack_slots or wharf_rans_fill_buckets makes; one is NULL at least. */
    const uint32_t *packed;
    const struct wharf_rans_buckets *buckets;
};
#define WHARF_RANS_PACKED_MAX_NBITS 12

/*
 * For one distribution of bytes whose packed table would be too large for the first cache.  Slots
 * fall into buckets of equal size.  A bucket has what its middle slot gives, so one look-up tells
 * all of most slots.  Of those beside a border of two symbols' slots it does not, for a quarter of
 * a bucket in the mean: with 64 buckets a symbol that is one slot of 256.
 */
#define WHARF_RANS_SYMBOL_NBUCKETS 64
#define WHARF_RANS_BUCKETS_MIN_NBITS 12 /* fewer are no faster: these fit the first cache */
#define WHARF_RANS_BUCKETS_MAX_NBITS 14 /* for 256 symbols */
struct wharf_rans_bucket {
    struct wharf_rans_range range;
    uint32_t symbol;
};
struct wharf_rans_buckets {
    uint32_t slot_nbits; /* of a slot, that tell slots of a bucket apart */
    struct wharf_rans_bucket of[1u << WHARF_RANS_BUCKETS_MAX_NBITS];
};

/* Decodes all symbols; false, with `out` undefined, when anything is wrong or the task's asker has
 * another answer than WHARF_OK. */
typedef bool wharf_rans_loop_fn(const struct wharf_rans_loop_job *job);

#define X(form, coder, where, where_in_buckets) wharf_rans_loop_fn wharf_rans_loop_##form;
WHARF_RANS_LOOP_LIST(X)
#undef X

#if defined(__x86_64__)
wharf_rans_code_fn wharf_rans_code_avx2;
wharf_rans_code_fn wharf_rans_code_avx512;
#endif

/*
 * A whole body, by the best form if `tuned`, and what that does not vouch for by the walk.  As
 * wharf_rans_walk_all.
 */
enum wharf_reason wharf_rans_run(const struct wharf_rans_task *task, bool tuned, uint64_t *ret_bit);

/* The best forms that this machine has, for what is looked up in buckets and for all else; NULL if
 * it has none. */
wharf_rans_loop_fn *wharf_rans_loop(bool in_buckets);
wharf_rans_code_fn *wharf_rans_code_form(void);

/* For tests: this form from now on, "none" for none, NULL for the best again.  0, or -ENOENT when
 * there is no such form, -ENOTSUP when the machine has not what it demands. */
int wharf_rans_loop_force(const char *name);

/*
 * Makes the table `packed` for a model of one distribution of bytes with at most
 * WHARF_RANS_PACKED_MAX_NBITS: by slot, the symbol in 8 bits, the slot's place in its range in 12,
 * and the symbol's frequency in 12.  False for two kinds of models with the most bits: those where
 * a symbol has all slots, and those where a slot is nobody's.  With fewer bits that is told by the
 * highest bit of a place.
 */
bool wharf_rans_pack_slots(const struct wharf_rans_model *model, uint32_t *packed);
#define WHARF_RANS_PACKED_NOBODYS (1u << 19)

/* Fills in buckets for a model of one distribution of bytes. */
void wharf_rans_fill_buckets(const struct wharf_rans_model *model,
                             struct wharf_rans_buckets *buckets);

#endif
