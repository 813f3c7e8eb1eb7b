/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control packets: any bytes as a request and as a reply.  What can be read can be written again,
 * in as many bytes as was computed for it.  (Not always with the same meaning: protobuf-c keeps an
 * unknown field of number 0, which it cannot read again.)
 */
#include <stdlib.h>
#include <string.h>

#include "proto/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static struct wharf_control_memory memory;
static volatile size_t touched;
static uint8_t packed[WHARF_CONTROL_MAX_NBYTES];

static void check(int good)
{
    if (!good)
        abort();
}

/* What a receiver looks at in every message: strings up to their ends. */
static size_t touch_request(const Wharf__Request *request)
{
    if (request->body_case == WHARF__REQUEST__BODY_HELLO)
        return strlen(request->hello->client_name);
    return request->id;
}

static size_t touch_reply(const Wharf__Reply *reply)
{
    size_t n = 0;

    if (reply->body_case == WHARF__REPLY__BODY_ERROR)
        return strlen(reply->error->text);
    if (reply->body_case == WHARF__REPLY__BODY_STATS) {
        for (size_t i = 0; i < reply->stats->n_families; i++)
            n += strlen(reply->stats->families[i]->name) + reply->stats->families[i]->n_samples;
    }
    return n;
}

static void try_request(const uint8_t *data, size_t nbytes)
{
    const Wharf__Request *request;
    size_t packed_nbytes = 0;

    if (wharf_control_unpack_request(&memory, data, nbytes, &request) < 0)
        return;
    touched = touch_request(request);
    if (wharf_control_pack_request(request, packed, &packed_nbytes) == 0)
        check(packed_nbytes == protobuf_c_message_get_packed_size(&request->base));
}

static void try_reply(const uint8_t *data, size_t nbytes)
{
    const Wharf__Reply *reply;
    size_t packed_nbytes = 0;

    if (wharf_control_unpack_reply(&memory, data, nbytes, &reply) < 0)
        return;
    touched = touch_reply(reply);
    if (wharf_control_pack_reply(reply, packed, &packed_nbytes) == 0)
        check(packed_nbytes == protobuf_c_message_get_packed_size(&reply->base));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    try_request(data, nbytes);
    try_reply(data, nbytes);
    return 0;
}
