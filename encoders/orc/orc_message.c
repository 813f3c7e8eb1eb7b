/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_message.c: parses protobuf messages of ORC files with a limit on memory.
 *
 * A small hostile message can make a parser allocate much more than its own size.  Here the
 * allocator has a budget proportional to the message, and parsing fails when it is spent.
 */
#include "encoders/orc/orc_message.h"

#include <stdlib.h>

/* An empty message takes 2 bytes of its parent, and up to 100 bytes of memory with the pointer to
 * it: 50 for each byte.  The rest is a margin. */
#define MEMORY_PER_BYTE 64
#define LEAST_MEMORY_NBYTES ((size_t)1 << 16)

struct budget {
    size_t left_nbytes;
};

static void *take(void *data, size_t nbytes)
{
    struct budget *budget = data;

    if (nbytes > budget->left_nbytes)
        return NULL;
    budget->left_nbytes -= nbytes;
    return malloc(nbytes);
}

static void give_back(void *data, void *pointer)
{
    (void)data;
    free(pointer);
}

static void *parse(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t nbytes)
{
    struct budget budget = {LEAST_MEMORY_NBYTES + MEMORY_PER_BYTE * nbytes};
    ProtobufCAllocator allocator = {take, give_back, &budget};

    return protobuf_c_message_unpack(type, &allocator, nbytes, bytes);
}

Wharf__Orc__PostScript *wharf_orc_parse_postscript(const uint8_t *bytes, size_t nbytes)
{
    return parse(&wharf__orc__post_script__descriptor, bytes, nbytes);
}

Wharf__Orc__Footer *wharf_orc_parse_footer(const uint8_t *bytes, size_t nbytes)
{
    return parse(&wharf__orc__footer__descriptor, bytes, nbytes);
}

Wharf__Orc__StripeFooter *wharf_orc_parse_stripe_footer(const uint8_t *bytes, size_t nbytes)
{
    return parse(&wharf__orc__stripe_footer__descriptor, bytes, nbytes);
}

void wharf_orc_message_free(void *message)
{
    ProtobufCAllocator allocator = {take, give_back, NULL};

    if (message)
        protobuf_c_message_free_unpacked(message, &allocator);
}
