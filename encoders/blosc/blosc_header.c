/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_header.c: reads and checks a chunk's header, in the steps of HEADER in blosc_format.h. */
#include "encoders/blosc/blosc_header.h"

#include <string.h>

#include "encoders/little_endian.h"

/* Offsets in the extension, the last 16 bytes of the extended header. */
enum { FLAGS_2 = 14, FLAGS_3 = 15, METAS = 8 };

static enum wharf_reason check_flags(uint8_t flags_2, uint8_t flags_3)
{
    unsigned special = flags_3 >> WHARF_BLOSC_SPECIAL_SHIFT & 7;

    if (flags_2 || flags_3 & (WHARF_BLOSC_LAZY | WHARF_BLOSC_INSTRUMENTED) ||
        special > WHARF_BLOSC_UNINITIALISED)
        return WHARF_REASON_BLOSC_FLAGS;
    return WHARF_REASON_NONE;
}

static enum wharf_reason read_extension(const uint8_t *extension, struct wharf_blosc_header *header)
{
    uint8_t flags_3 = extension[FLAGS_3];
    enum wharf_reason reason = check_flags(extension[FLAGS_2], flags_3);

    if (reason != WHARF_REASON_NONE)
        return reason;
    header->special = (enum wharf_blosc_special)(flags_3 >> WHARF_BLOSC_SPECIAL_SHIFT & 7);
    header->has_dictionary = flags_3 & WHARF_BLOSC_HAS_DICTIONARY;
    memcpy(header->filters, extension, WHARF_BLOSC_N_FILTERS);
    memcpy(header->metas, extension + METAS, WHARF_BLOSC_N_FILTERS);
    /* The first writers of this version left the last filter undefined. */
    if (header->version == WHARF_BLOSC_VERSION_1 + 1)
        header->filters[WHARF_BLOSC_N_FILTERS - 1] = WHARF_BLOSC_FILTER_NONE;
    for (unsigned i = 0; i < WHARF_BLOSC_N_FILTERS; i++)
        if (header->filters[i] > WHARF_BLOSC_FILTER_TRUNCATE)
            return WHARF_REASON_BLOSC_FILTER;
    return WHARF_REASON_NONE;
}

static void filters_of_flags(struct wharf_blosc_header *header)
{
    if (header->flags & WHARF_BLOSC_DELTA)
        header->filters[WHARF_BLOSC_N_FILTERS - 2] = WHARF_BLOSC_FILTER_DELTA;
    if (header->flags & WHARF_BLOSC_SHUFFLED)
        header->filters[WHARF_BLOSC_N_FILTERS - 1] = WHARF_BLOSC_FILTER_SHUFFLE;
    else if (header->flags & WHARF_BLOSC_BITS_SHUFFLED)
        header->filters[WHARF_BLOSC_N_FILTERS - 1] = WHARF_BLOSC_FILTER_BITSHUFFLE;
}

static bool is_codec_known(const struct wharf_blosc_header *header)
{
    if (header->is_copy || header->special != WHARF_BLOSC_NOT_SPECIAL)
        return true;
    return header->inside < WHARF_BLOSC_N_INSIDE &&
           !(header->is_extended && header->inside == WHARF_BLOSC_SNAPPY);
}

/* Step 5, except for the starts. */
static bool is_special_right(const struct wharf_blosc_header *header)
{
    uint32_t value_nbytes = header->chunk_nbytes - header->header_nbytes;
    uint32_t element_nbytes = header->element_nbytes;

    switch (header->special) {
    case WHARF_BLOSC_NOT_SPECIAL:
        return !header->is_copy ||
               header->chunk_nbytes - header->header_nbytes == header->out_nbytes;
    case WHARF_BLOSC_ZEROS:
        return true;
    case WHARF_BLOSC_VALUES:
        return value_nbytes > 0 && header->out_nbytes % value_nbytes == 0;
    case WHARF_BLOSC_NANS:
        return (element_nbytes == 4 || element_nbytes == 8) &&
               header->out_nbytes % element_nbytes == 0;
    default:
        return header->out_nbytes % element_nbytes == 0;
    }
}

static bool has_starts(const struct wharf_blosc_header *header)
{
    if (header->is_copy || header->special != WHARF_BLOSC_NOT_SPECIAL)
        return true;
    return header->n_blocks <= (header->chunk_nbytes - header->header_nbytes) / 4;
}

/* The fields of 4 bytes are signed. */
static bool is_negative(uint32_t n)
{
    return n > INT32_MAX;
}

static bool is_size_wrong(const struct wharf_blosc_header *header)
{
    return header->element_nbytes == 0 || is_negative(header->out_nbytes) ||
           is_negative(header->block_nbytes) || is_negative(header->chunk_nbytes) ||
           (header->out_nbytes > 0 && header->block_nbytes == 0) ||
           header->chunk_nbytes < header->header_nbytes;
}

static enum wharf_reason read_fields(const uint8_t *in, size_t in_nbytes,
                                     struct wharf_blosc_header *header)
{
    const uint8_t both = WHARF_BLOSC_SHUFFLED | WHARF_BLOSC_BITS_SHUFFLED;

    if (in_nbytes < WHARF_BLOSC_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    header->version = in[0];
    header->flags = in[2];
    header->element_nbytes = in[3];
    header->out_nbytes = wharf_load_le32(in + 4);
    header->block_nbytes = wharf_load_le32(in + 8);
    header->chunk_nbytes = wharf_load_le32(in + 12);
    header->inside = header->flags >> WHARF_BLOSC_CODEC_SHIFT;
    header->is_copy = header->flags & WHARF_BLOSC_COPY;
    header->is_extended = (header->flags & both) == both;
    header->header_nbytes =
        header->is_extended ? WHARF_BLOSC_EXTENDED_NBYTES : WHARF_BLOSC_HEADER_NBYTES;
    if (header->version < WHARF_BLOSC_VERSION_1 || header->version > WHARF_BLOSC_VERSION_MAX)
        return WHARF_REASON_BLOSC_VERSION;
    return in_nbytes < header->header_nbytes ? WHARF_REASON_INPUT_TRUNCATED : WHARF_REASON_NONE;
}

enum wharf_reason wharf_blosc_read_header(const uint8_t *in, size_t in_nbytes,
                                          struct wharf_blosc_header *ret_header)
{
    struct wharf_blosc_header *header = ret_header;
    enum wharf_reason reason;

    *header = (struct wharf_blosc_header){.special = WHARF_BLOSC_NOT_SPECIAL};
    reason = read_fields(in, in_nbytes, header);
    if (reason != WHARF_REASON_NONE)
        return reason;
    if (is_size_wrong(header))
        return WHARF_REASON_BLOSC_HEADER;
    if (header->is_extended)
        reason = read_extension(in + WHARF_BLOSC_HEADER_NBYTES, header);
    else
        filters_of_flags(header);
    if (reason != WHARF_REASON_NONE)
        return reason;
    if (!is_codec_known(header))
        return WHARF_REASON_BLOSC_CODEC;
    if (header->chunk_nbytes > in_nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (header->block_nbytes > header->out_nbytes)
        header->block_nbytes = header->out_nbytes;
    if (header->out_nbytes > 0)
        header->n_blocks = (header->out_nbytes - 1) / header->block_nbytes + 1;
    return is_special_right(header) && has_starts(header) ? WHARF_REASON_NONE
                                                          : WHARF_REASON_BLOSC_HEADER;
}
