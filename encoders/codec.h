/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h: what a codec's folder provides, and the host table made from the list.
 *
 * encoders/NAME/ defines one object, `const struct wharf_codec_ops wharf_NAME_codec`.  All
 * functions here are safe to call from several threads at once, each with its own arguments.
 */
#ifndef WHARF_ENCODERS_CODEC_H
#define WHARF_ENCODERS_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/wharf_codec.h"
#include "proto/wharf_job.h"
#include "proto/wharf_result.h"

/* What a decoder asks whether to go on (decode_poll.h): `ask` returns WHARF_OK, or the result to
 * end with. */
struct wharf_decode_poll {
    uint32_t (*ask)(struct wharf_decode_poll *poll);
};

/*
 * Helps a decoder whose stream offers places to begin at.  `run` calls act(context, first, n, poll)
 * with ranges that together are the parts 0 to n_parts - 1, in any order and by several threads at
 * once.  It returns when all calls have returned, and says whether all were good; after one that
 * was not, no more are begun.  `poll` is what that thread asks.
 */
typedef bool wharf_decode_parts_fn(void *context, uint32_t first, uint32_t n,
                                   struct wharf_decode_poll *poll);
struct wharf_decode_crew {
    bool (*run)(struct wharf_decode_crew *crew, uint32_t n_parts, wharf_decode_parts_fn *act,
                void *context);
};

/*
 * How a codec reads its stream, beyond what the stream itself says.  A decoder may be given NULL
 * for all 0.
 */
struct wharf_codec_setting {
    uint32_t parameter; /* one that wharf_codec_unit_nbytes knows; 0 is one of every codec's */
    const void *model;  /* the image of a registered model, which counts in the parameter's
                           place; NULL: none */
    struct wharf_decode_poll *poll; /* NULL: there is nobody to ask */
    struct wharf_decode_crew *crew; /* NULL: there is nobody to help */
    /* Of lz4: how many bytes right before the destination are output of earlier blocks, which
     * matches may reach back to.  0 of every other codec. */
    size_t history_nbytes;
};

/*
 * Decodes one stream.
 *   in, in_nbytes    the source; may be NULL when in_nbytes is 0.  Hostile: any bytes at all.
 *   out, out_avail   the destination; may be NULL when out_avail is 0.  Nothing outside it is
 *                    touched; on failure its contents are undefined.  Must not overlap the source.
 *   setting          how the stream is to be read; may be NULL
 *   ret_outcome      always filled.  Bytes after the end of a complete stream are left alone:
 *                    in_nbytes says how many the stream took.
 * Ends on every input, in time linear in in_nbytes + out_avail.  Does not allocate.  Asks in
 * between whether to go on, as decode_poll.h says.
 */
typedef void wharf_decode_fn(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                             const struct wharf_codec_setting *setting,
                             struct wharf_outcome *ret_outcome);

/* Decodes the range of a stream's output that fills the destination; otherwise as above. */
typedef void wharf_decode_range_fn(const uint8_t *in, size_t in_nbytes, uint64_t first,
                                   uint8_t *out, size_t out_nbytes,
                                   const struct wharf_codec_setting *setting,
                                   struct wharf_outcome *ret_outcome);

/* One of the encoders that a codec has, for choosing by name.  An encoder without levels has
 * level_min, level_max and level_default 0. */
struct wharf_encoder_row {
    const char *name;
    int level_min;
    int level_max;
    int level_default;
    /* By which jobs name it (wharf_encoder_number); 0: one more than its place in the list. */
    uint16_t number;
};

/* Settings of an encoder.  `name` chooses between several for one codec; NULL is the default. */
struct wharf_encoder_options {
    const char *name;
    int level; /* WHARF_LEVEL_DEFAULT, or level_min to level_max of the row with this name */
    uint32_t parameter; /* one of the codec's, as the decoder will be given it */
};
#define WHARF_LEVEL_DEFAULT (-1)

/*
 * Where a codec's folder has both NAME_encode.c and NAME_encode_plain.c, the first is that of
 * programs that encode, such as the command and wharfd, and wants a library; the second that of
 * libwharf, which is not to load one.  Their rows differ, so a name or level that only the other
 * has is -EINVAL.
 *
 * An encoder is made once and used for many chunks, by one thread at a time.
 *   new     0, -EINVAL (no such encoder, level or parameter), -ENOMEM.  `options` may be NULL.
 *   bound   the most bytes that encode can need for in_nbytes of input.
 *   encode  writes one stream; 0 and *ret_out_nbytes, or -ENOSPC when out_avail is too little
 *           (never with out_avail >= bound(in_nbytes)), or -EILSEQ when no stream of this codec
 *           gives that input: it is no whole number of units, or a unit is not one of the
 *           parameter's.  The output is undefined on failure.  `in` may be NULL when in_nbytes
 *           is 0.
 *   free    takes NULL.
 */
struct wharf_encoder;
struct wharf_encoder_ops {
    int (*new)(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder);
    size_t (*bound)(const struct wharf_encoder *encoder, size_t in_nbytes);
    int (*encode)(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                  size_t out_avail, size_t *ret_out_nbytes);
    void (*free)(struct wharf_encoder *encoder);
};

/*
 * Models that are registered once, so that streams need not bring them.  What decoders read of one
 * is its image: memory without pointers.
 *   image_nbytes  how large that is, by the model's first bytes: NONE with *ret_nbytes, or why it
 *                 is no model
 *   make_image    makes it, in memory of that size that is zeroed and aligned to 16: NONE, or why
 *                 it is no model.  Takes time linear in the image's size.
 */
struct wharf_model_ops {
    enum wharf_reason (*image_nbytes)(const uint8_t *model, size_t model_nbytes,
                                      size_t *ret_nbytes);
    enum wharf_reason (*make_image)(const uint8_t *model, size_t model_nbytes, void *image);
};

struct wharf_codec_ops {
    wharf_decode_fn *decode;           /* the CPU engine */
    wharf_decode_fn *decode_reference; /* plain and slow: the reference in tests */
    const struct wharf_encoder_ops *encoder;
    const struct wharf_encoder_row *encoder_rows; /* the default first, ended by name == NULL */
    /* The most output that n bytes of input can give is max_ratio * n + max_constant: claims
     * beyond it are refused before memory is taken for them. */
    uint32_t max_ratio;
    uint32_t max_constant;
    /*
     * Of what size the units are that the output is made of (1, 2, 4 or 8: values, symbols) with
     * this parameter; 0 if it is none of the codec's.  NULL for a codec whose only parameter is 0,
     * and whose output is bytes.
     */
    uint32_t (*unit_nbytes)(uint32_t parameter);
    const struct wharf_model_ops *models; /* NULL: it has none that can be registered */
    /* Decode out_nbytes of the output from `first` on; NULL: the codec decodes from the start only.
     * On success the outcome's out_nbytes is out_nbytes. */
    wharf_decode_range_fn *decode_range;
    wharf_decode_range_fn *decode_range_reference;
    /* From how much output on a decoder makes use of a crew, where the stream lets it; 0: never. */
    uint64_t least_shared_nbytes;
};

#define X(ID, name, number, summary) extern const struct wharf_codec_ops wharf_##name##_codec;
WHARF_CODEC_LIST(X)
#undef X

struct wharf_codec_row {
    const char *name;
    const char *summary;
    const struct wharf_codec_ops *ops;
};

/* The row of codec number `codec`, or NULL. */
const struct wharf_codec_row *wharf_codec_find(uint32_t codec);

/* What ops->unit_nbytes says: the size of the output's units, or 0 for a wrong parameter. */
uint32_t wharf_codec_unit_nbytes(const struct wharf_codec_ops *ops, uint32_t parameter);

/* Whether the codec's parameters are types of values, enum wharf_rle_type. */
bool wharf_codec_has_types(const struct wharf_codec_ops *ops);

/*
 * Chooses one of a codec's encoders: the row that options name, or the first, and the level that
 * they give, or the row's default.  `options` may be NULL.  Returns 0, or -EINVAL with the outputs
 * untouched when there is no such row, the level is not the row's or the parameter not the codec's.
 */
int wharf_encoder_choose(const struct wharf_codec_ops *ops,
                         const struct wharf_encoder_options *options,
                         const struct wharf_encoder_row **ret_row, int *ret_level);

/* The number of a row of this codec: the same in all programs that have the encoder. */
uint32_t wharf_encoder_number(const struct wharf_codec_ops *ops,
                              const struct wharf_encoder_row *row);

/* Whether in_nbytes of this codec's data could decode to out_nbytes. */
int wharf_codec_may_yield(const struct wharf_codec_ops *ops, uint64_t in_nbytes,
                          uint64_t out_nbytes);

#endif
