/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_steps_wrap.c: headers and trailers of zlib (RFC 1950) and gzip (RFC 1952), one field at a
 * time.
 *
 * Bits 8 to 15 of `flags` are gzip's flags, which follow the method in the header.
 */
#include "encoders/checksum.h"
#include "encoders/zlib/zlib_steps_parts.h"

enum {
    METHOD = 8,
    GZIP_HCRC = 0x0200,
    GZIP_EXTRA = 0x0400,
    GZIP_NAME = 0x0800,
    GZIP_COMMENT = 0x1000,
    GZIP_RESERVED = 0xe000,
};

static uint32_t swapped(uint64_t word)
{
    return __builtin_bswap32((uint32_t)word);
}

/* Adds the lowest n bytes of the bit buffer to the checksum of a gzip header. */
static void check_held(struct wharf_zlib_steps *steps, unsigned n)
{
    uint8_t bytes[4];

    for (unsigned i = 0; i < n; i++)
        bytes[i] = (uint8_t)(steps->hold >> 8 * i);
    steps->check = wharf_crc32(steps->check, bytes, n);
}

static bool has_header_check(const struct wharf_zlib_steps *steps)
{
    return (steps->flags & GZIP_HCRC) && (steps->wrap & WHARF_ZWRAP_CHECK);
}

static enum wharf_zstep zlib_head(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (!(steps->wrap & WHARF_ZWRAP_ZLIB) ||
        (((steps->hold & 0xff) << 8) + (steps->hold >> 8)) % 31)
        return wharf_zlib_call_bad(call, "incorrect header check");
    if ((steps->hold & 15) != METHOD)
        return wharf_zlib_call_bad(call, "unknown compression method");
    wharf_zlib_call_drop(call, 4);
    const unsigned wbits = (unsigned)(steps->hold & 15) + 8;
    if (steps->wbits == 0)
        steps->wbits = wbits;
    if (wbits > 15 || wbits > steps->wbits)
        return wharf_zlib_call_bad(call, "invalid window size");
    steps->dmax = 1u << wbits;
    steps->flags = 0;
    call->io->adler = steps->check = WHARF_ADLER32_INIT;
    steps->mode = steps->hold & 0x200 ? WHARF_ZMODE_DICTID : WHARF_ZMODE_TYPE;
    wharf_zlib_call_clear(call);
    return WHARF_ZSTEP_ON;
}

static enum wharf_zstep head(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (steps->wrap == 0) {
        steps->mode = WHARF_ZMODE_TYPEDO;
        return WHARF_ZSTEP_ON;
    }
    if (!wharf_zlib_call_need(call, 16))
        return WHARF_ZSTEP_LEAVE;
    if (!(steps->wrap & WHARF_ZWRAP_GZIP) || steps->hold != 0x8b1f)
        return zlib_head(call);
    if (steps->wbits == 0)
        steps->wbits = 15;
    steps->check = WHARF_CRC32_INIT;
    check_held(steps, 2);
    wharf_zlib_call_clear(call);
    steps->mode = WHARF_ZMODE_FLAGS;
    return WHARF_ZSTEP_ON;
}

static enum wharf_zstep gzip_flags(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (!wharf_zlib_call_need(call, 16))
        return WHARF_ZSTEP_LEAVE;
    steps->flags = (int)steps->hold;
    if ((steps->flags & 0xff) != METHOD)
        return wharf_zlib_call_bad(call, "unknown compression method");
    if (steps->flags & GZIP_RESERVED)
        return wharf_zlib_call_bad(call, "unknown header flags set");
    if (has_header_check(steps))
        check_held(steps, 2);
    wharf_zlib_call_clear(call);
    steps->mode = WHARF_ZMODE_TIME;
    return WHARF_ZSTEP_ON;
}

/* States TIME, OS and EXLEN: n bytes, of which only EXLEN's value is used. */
static enum wharf_zstep gzip_field(struct wharf_zlib_call *call, unsigned n)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (!wharf_zlib_call_need(call, 8 * n))
        return WHARF_ZSTEP_LEAVE;
    if (steps->mode == WHARF_ZMODE_EXLEN)
        steps->length = (uint32_t)steps->hold;
    if (has_header_check(steps))
        check_held(steps, n);
    wharf_zlib_call_clear(call);
    steps->mode++;
    return WHARF_ZSTEP_ON;
}

static void take_checked(struct wharf_zlib_call *call, size_t n)
{
    if (has_header_check(call->steps))
        call->steps->check = wharf_crc32(call->steps->check, call->in, n);
    call->in += n;
    call->in_left -= n;
}

static enum wharf_zstep gzip_extra(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (steps->flags & GZIP_EXTRA) {
        size_t n = steps->length < call->in_left ? steps->length : call->in_left;
        take_checked(call, n);
        steps->length -= (uint32_t)n;
        if (steps->length)
            return WHARF_ZSTEP_LEAVE;
    }
    steps->length = 0;
    steps->mode = WHARF_ZMODE_NAME;
    return WHARF_ZSTEP_ON;
}

/* States NAME and COMMENT: bytes up to a zero. */
static enum wharf_zstep gzip_text(struct wharf_zlib_call *call, int flag)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (steps->flags & flag) {
        size_t n = 0;
        while (n < call->in_left && call->in[n])
            n++;
        const bool found = n < call->in_left;
        take_checked(call, n + found);
        if (!found)
            return WHARF_ZSTEP_LEAVE;
    }
    steps->length = 0;
    steps->mode++;
    return WHARF_ZSTEP_ON;
}

static enum wharf_zstep gzip_header_check(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (steps->flags & GZIP_HCRC) {
        if (!wharf_zlib_call_need(call, 16))
            return WHARF_ZSTEP_LEAVE;
        if ((steps->wrap & WHARF_ZWRAP_CHECK) && steps->hold != (steps->check & 0xffff))
            return wharf_zlib_call_bad(call, "header crc mismatch");
        wharf_zlib_call_clear(call);
    }
    call->io->adler = steps->check = WHARF_CRC32_INIT;
    steps->mode = WHARF_ZMODE_TYPE;
    return WHARF_ZSTEP_ON;
}

static enum wharf_zstep dictionary(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (steps->mode == WHARF_ZMODE_DICTID) {
        if (!wharf_zlib_call_need(call, 32))
            return WHARF_ZSTEP_LEAVE;
        call->io->adler = steps->check = swapped(steps->hold);
        wharf_zlib_call_clear(call);
        steps->mode = WHARF_ZMODE_DICT;
    }
    return WHARF_ZSTEP_NEED_DICT;
}

static enum wharf_zstep trailer_check(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (steps->wrap) {
        if (!wharf_zlib_call_need(call, 32))
            return WHARF_ZSTEP_LEAVE;
        wharf_zlib_call_flush(call);
        call->out_mark = call->out_left;
        const uint32_t stated = steps->flags ? (uint32_t)steps->hold : swapped(steps->hold);
        if ((steps->wrap & WHARF_ZWRAP_CHECK) && stated != steps->check)
            return wharf_zlib_call_bad(call, "incorrect data check");
        wharf_zlib_call_clear(call);
    }
    steps->mode = WHARF_ZMODE_LENGTH;
    return WHARF_ZSTEP_ON;
}

static enum wharf_zstep trailer_length(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (steps->wrap && steps->flags) {
        if (!wharf_zlib_call_need(call, 32))
            return WHARF_ZSTEP_LEAVE;
        if ((steps->wrap & WHARF_ZWRAP_CHECK) && steps->hold != (uint32_t)steps->total)
            return wharf_zlib_call_bad(call, "incorrect length check");
        wharf_zlib_call_clear(call);
    }
    steps->mode = WHARF_ZMODE_DONE;
    return WHARF_ZSTEP_LEAVE;
}

enum wharf_zstep wharf_zlib_steps_wrap(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    switch (steps->mode) {
    case WHARF_ZMODE_HEAD:
        return head(call);
    case WHARF_ZMODE_FLAGS:
        return gzip_flags(call);
    case WHARF_ZMODE_TIME:
        return gzip_field(call, 4);
    case WHARF_ZMODE_OS:
        return gzip_field(call, 2);
    case WHARF_ZMODE_EXLEN:
        if (steps->flags & GZIP_EXTRA)
            return gzip_field(call, 2);
        steps->mode = WHARF_ZMODE_EXTRA;
        return WHARF_ZSTEP_ON;
    case WHARF_ZMODE_EXTRA:
        return gzip_extra(call);
    case WHARF_ZMODE_NAME:
        return gzip_text(call, GZIP_NAME);
    case WHARF_ZMODE_COMMENT:
        return gzip_text(call, GZIP_COMMENT);
    case WHARF_ZMODE_HCRC:
        return gzip_header_check(call);
    case WHARF_ZMODE_DICTID:
    case WHARF_ZMODE_DICT:
        return dictionary(call);
    case WHARF_ZMODE_CHECK:
        return trailer_check(call);
    case WHARF_ZMODE_LENGTH:
        return trailer_length(call);
    default: /* DONE and BAD */
        return WHARF_ZSTEP_LEAVE;
    }
}
