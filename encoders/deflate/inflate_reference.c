/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_reference.c: the reference decoder: zlib decodes, and inflate_walk.h says where an error
 * stands.
 *
 * zlib tells what is wrong by a message, and not where.  Its verdict and the walk's have to agree.
 */
#include "encoders/deflate/inflate_reference.h"

#include <string.h>
#include <zlib.h>

#include "encoders/decode_poll.h"
#include "encoders/deflate/inflate_walk.h"
#include "encoders/gzip/gzip_header.h"
#include "encoders/outcome.h"
#include "encoders/zlib/zlib_header.h"

/* What zlib says of bad data, and what we call it. */
static const struct {
    const char *message;
    uint32_t reason;      /* in zlib and raw streams */
    uint32_t gzip_reason; /* in gzip */
} messages[] = {
    {"invalid block type", WHARF_REASON_DEFLATE_BLOCK_TYPE, WHARF_REASON_DEFLATE_BLOCK_TYPE},
    {"invalid stored block lengths", WHARF_REASON_DEFLATE_STORED_LENGTH,
     WHARF_REASON_DEFLATE_STORED_LENGTH},
    {"too many length or distance symbols", WHARF_REASON_DEFLATE_CODE_COUNT,
     WHARF_REASON_DEFLATE_CODE_COUNT},
    {"invalid code lengths set", WHARF_REASON_DEFLATE_PRECODE, WHARF_REASON_DEFLATE_PRECODE},
    {"invalid bit length repeat", WHARF_REASON_DEFLATE_LENGTH_REPEAT,
     WHARF_REASON_DEFLATE_LENGTH_REPEAT},
    {"invalid code -- missing end-of-block", WHARF_REASON_DEFLATE_NO_END,
     WHARF_REASON_DEFLATE_NO_END},
    {"invalid literal/lengths set", WHARF_REASON_DEFLATE_LITLEN_CODE,
     WHARF_REASON_DEFLATE_LITLEN_CODE},
    {"invalid distances set", WHARF_REASON_DEFLATE_DISTANCE_CODE,
     WHARF_REASON_DEFLATE_DISTANCE_CODE},
    {"invalid literal/length code", WHARF_REASON_DEFLATE_LITLEN_SYMBOL,
     WHARF_REASON_DEFLATE_LITLEN_SYMBOL},
    {"invalid distance code", WHARF_REASON_DEFLATE_DISTANCE_SYMBOL,
     WHARF_REASON_DEFLATE_DISTANCE_SYMBOL},
    {"invalid distance too far back", WHARF_REASON_DEFLATE_DISTANCE_TOO_FAR,
     WHARF_REASON_DEFLATE_DISTANCE_TOO_FAR},
    {"incorrect header check", WHARF_REASON_ZLIB_HEADER, WHARF_REASON_GZIP_MAGIC},
    {"unknown compression method", WHARF_REASON_ZLIB_METHOD, WHARF_REASON_GZIP_METHOD},
    {"invalid window size", WHARF_REASON_ZLIB_WINDOW, WHARF_REASON_NONE},
    {"unknown header flags set", WHARF_REASON_NONE, WHARF_REASON_GZIP_FLAGS},
    {"header crc mismatch", WHARF_REASON_NONE, WHARF_REASON_GZIP_HEADER_CRC},
    {"incorrect data check", WHARF_REASON_ZLIB_CHECKSUM, WHARF_REASON_GZIP_CHECKSUM},
    {"incorrect length check", WHARF_REASON_NONE, WHARF_REASON_GZIP_LENGTH},
};

/* NONE for a message that we do not know. */
static uint32_t reason_of_message(const char *message, int window_bits)
{
    for (size_t i = 0; message && i < sizeof(messages) / sizeof(messages[0]); i++)
        if (strcmp(message, messages[i].message) == 0)
            return window_bits == WHARF_REFERENCE_GZIP ? messages[i].gzip_reason
                                                       : messages[i].reason;
    return WHARF_REASON_NONE;
}

/* So much at a time, of what is left. */
static uInt piece(size_t left, uInt most)
{
    return left < most ? (uInt)left : most;
}

/* Inflates as far as input and output go, or until it is told to end with *stopped. */
static int inflate_all(z_stream *stream, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                       size_t out_avail, const struct wharf_codec_setting *setting,
                       uint32_t *stopped)
{
    int ret;

    do {
        stream->next_in = (Bytef *)(uintptr_t)(stream->total_in ? in + stream->total_in : in);
        stream->avail_in = piece(in_nbytes - stream->total_in, WHARF_POLL_IN_NBYTES);
        stream->next_out = stream->total_out ? out + stream->total_out : out;
        stream->avail_out = piece(out_avail - stream->total_out, WHARF_POLL_OUT_NBYTES);
        ret = inflate(stream, Z_NO_FLUSH);
        if (ret == Z_OK)
            *stopped = wharf_decode_poll(setting);
    } while (ret == Z_OK && *stopped == WHARF_OK);
    return ret;
}

/* The reason of a stream that stopped with `ret`, input and output both taken as far as they go. */
static uint32_t reason_of_stop(z_stream *stream, int ret, int window_bits)
{
    Bytef next;

    if (ret == Z_BUF_ERROR) {
        /* Either input or output is at its end, or both: see what a byte more of output does. */
        stream->next_out = &next;
        stream->avail_out = 1;
        ret = inflate(stream, Z_NO_FLUSH);
        if (stream->avail_out == 0)
            return WHARF_REASON_OUTPUT_FULL;
        if (ret == Z_BUF_ERROR || ret == Z_OK)
            return WHARF_REASON_INPUT_TRUNCATED;
    }
    if (ret == Z_STREAM_END)
        return WHARF_REASON_NONE;
    if (ret == Z_NEED_DICT)
        return WHARF_REASON_ZLIB_DICTIONARY;
    return reason_of_message(ret == Z_DATA_ERROR ? stream->msg : NULL, window_bits);
}

/* What stands before the Deflate data: its size, or its fault. */
static uint32_t walk_header(int window_bits, const uint8_t *in, size_t in_nbytes,
                            size_t *ret_nbytes)
{
    struct wharf_gzip_header header;

    *ret_nbytes = 0;
    if (window_bits == WHARF_REFERENCE_RAW)
        return WHARF_REASON_NONE;
    if (window_bits == WHARF_REFERENCE_ZLIB) {
        *ret_nbytes = WHARF_ZLIB_HEADER_NBYTES;
        return wharf_zlib_header(in, in_nbytes);
    }
    wharf_gzip_header_init(&header);
    return wharf_gzip_header_read(&header, in, in_nbytes, ret_nbytes);
}

static int is_trailer_reason(uint32_t reason)
{
    return reason == WHARF_REASON_INPUT_TRUNCATED || reason == WHARF_REASON_ZLIB_CHECKSUM ||
           reason == WHARF_REASON_GZIP_CHECKSUM || reason == WHARF_REASON_GZIP_LENGTH;
}

static uint32_t result_of_reason(uint32_t reason)
{
    switch (reason) {
    case WHARF_REASON_OUTPUT_FULL:
        return WHARF_OUTPUT_TOO_SMALL;
    case WHARF_REASON_ZLIB_DICTIONARY:
        return WHARF_UNSUPPORTED;
    case WHARF_REASON_ZLIB_CHECKSUM:
    case WHARF_REASON_GZIP_CHECKSUM:
    case WHARF_REASON_GZIP_LENGTH:
        return WHARF_BAD_CHECKSUM;
    default:
        return WHARF_BAD_DATA;
    }
}

/* Finds where the error stands that zlib says there is. */
static void locate(int window_bits, const uint8_t *in, size_t in_nbytes, size_t out_avail,
                   uint32_t reason, const struct wharf_codec_setting *setting,
                   struct wharf_outcome *ret_outcome)
{
    struct wharf_inflate_walk walk = {.bit_pos = 0};
    size_t header_nbytes;

    walk.reason = walk_header(window_bits, in, in_nbytes, &header_nbytes);
    if (walk.reason == WHARF_REASON_NONE) {
        wharf_inflate_walk(in, in_nbytes, header_nbytes, out_avail, setting, &walk);
        if (walk.reason == WHARF_REASON_NONE && is_trailer_reason(reason))
            walk.reason = reason;
    }
    if (walk.stopped)
        wharf_outcome_fail(ret_outcome, walk.stopped, WHARF_REASON_NONE, 0);
    else if (walk.reason != reason)
        wharf_outcome_fail(ret_outcome, WHARF_INTERNAL, WHARF_REASON_NONE, 0);
    else
        wharf_outcome_fail(ret_outcome, result_of_reason(reason), reason, walk.bit_pos);
}

void wharf_inflate_reference(int window_bits, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                             size_t out_avail, const struct wharf_codec_setting *setting,
                             struct wharf_outcome *ret_outcome)
{
    z_stream stream = {0};
    uint32_t stopped = WHARF_OK;
    uint8_t none;

    if (inflateInit2(&stream, window_bits) != Z_OK) {
        wharf_outcome_fail(ret_outcome, WHARF_NO_MEMORY, WHARF_REASON_NONE, 0);
        return;
    }
    /* zlib does not take NULL, not even with no bytes behind it. */
    int ret = inflate_all(&stream, in ? in : &none, in_nbytes, out ? out : &none, out_avail,
                          setting, &stopped);
    uint64_t in_taken = stream.total_in;
    uint64_t out_nbytes = stream.total_out;
    if (stopped)
        wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
    else if (ret == Z_STREAM_END)
        wharf_outcome_ok(ret_outcome, in_taken, out_nbytes);
    else
        locate(window_bits, in, in_nbytes, out_avail, reason_of_stop(&stream, ret, window_bits),
               setting, ret_outcome);
    inflateEnd(&stream);
}
