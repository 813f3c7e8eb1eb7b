/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_thin.h: drops splits from a rans stream, for a decoder that has use for fewer.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_THIN_H
#define WHARF_ENCODERS_RANS_RANS_THIN_H

#include "encoders/rans/rans_stream.h"

/*
 * The size of the stream with at most max_splits (at least 1) splits: at most that of the
 * stream as it is, plus 9 bytes for each split that is kept, since its two differences may grow.
 * And that of all before its words.
 */
size_t wharf_rans_thin_bound(const struct wharf_rans_stream *stream, uint32_t max_splits);
size_t wharf_rans_thin_front_bound(const struct wharf_rans_stream *stream, uint32_t max_splits);

/*
 * Writes what comes before the words of `stream` with at most max_splits splits, evenly chosen, and
 * everything else as it is (none, if the words are more than 2^31, which no good stream has): for
 * who sends or writes the words, stream->body.n_words from stream->body.words on, from where they
 * are.  `out` must not overlap the source.  0 and *ret_nbytes; -EINVAL (max_splits is 0), -ENOSPC,
 * -ENOMEM.  Takes 140 bytes a split for the time of the call.
 */
int wharf_rans_thin_front(const struct wharf_rans_stream *stream, const uint8_t *in,
                          uint32_t max_splits, uint8_t *out, size_t out_avail, size_t *ret_nbytes);

/* The same with a copy of the words behind it: the whole stream, and *ret_out_nbytes. */
int wharf_rans_thin(const struct wharf_rans_stream *stream, const uint8_t *in, uint32_t max_splits,
                    uint8_t *out, size_t out_avail, size_t *ret_out_nbytes);

#endif
