/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_lookup.h: how a form of the tuned decoder or coder looks up symbols.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_LOOKUP_H
#define WHARF_ENCODERS_RANS_RANS_LOOKUP_H

#include "encoders/rans/rans_loop.h"

/* TARGET, which the form defines, names its instructions. */
#define LANES_INLINE static inline TARGET __attribute__((always_inline))

/*
 * For what each kind of model has code of its own.  Under sanitizers, where a minute goes into
 * compiling that, all kinds share it: the same statements, which ask as they run what is constant
 * elsewhere.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LANES_OF_EACH_KIND static TARGET __attribute__((noinline))
#else
#define LANES_OF_EACH_KIND LANES_INLINE
#endif

/* Constants wherever a form uses them, so that the compiler makes code for each. */
struct lookup {
    bool is_packed;         /* in the job's packed table */
    bool is_bucketed;       /* in the job's buckets; else slot, symbol, range */
    bool is_indexed;        /* each symbol has a number of its distribution */
    uint32_t symbol_nbytes; /* 1 or 2 */
};

/* What a decoder looks at in each group. */
struct view {
    const uint32_t *packed;
    const struct wharf_rans_buckets *buckets;
    const uint16_t *slot_symbols;
    const struct wharf_rans_range *ranges;
    const uint8_t *indexes;
    uint8_t *out;
    uint32_t n_bits;
    uint32_t alphabet;
    uint32_t bucket_nbits; /* of a slot, that tell slots of a bucket apart */
    /* Of what a group's slots give together: where a slot that is nobody's leaves a bit. */
    uint32_t bad;
};

static inline struct view view_of(const struct wharf_rans_loop_job *job)
{
    const struct wharf_rans_model *model = job->task.model;

    return (struct view){
        .packed = job->packed,
        .buckets = job->buckets,
        .slot_symbols = model->slot_symbols,
        .ranges = model->ranges,
        .indexes = job->task.indexes,
        .out = job->task.out,
        .n_bits = model->shape.n_bits,
        .bucket_nbits = job->buckets ? job->buckets->slot_nbits : 0,
        .alphabet = model->shape.alphabet,
        .bad = model->is_full ? 0 : WHARF_RANS_PACKED_NOBODYS,
    };
}

#endif
