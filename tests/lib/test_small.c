/* SPDX-License-Identifier: Apache-2.0 */
/* test_small.c: submits small jobs, and checks their outputs. */
#include "tests/lib/test_small.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test_data.h"

const uint8_t *test_small_plain(void)
{
    static uint8_t plain[TEST_SMALL_NBYTES];

    if (plain[0] == 0)
        test_data_find("text")->fill(1, plain, sizeof(plain));
    return plain;
}

static size_t offset_of(uint64_t user_data)
{
    return (user_data & 0xff) * TEST_SMALL_STEP;
}

/* Writes the source once for all jobs: writing it again would disturb those that read it. */
static void submit(struct test_core_client *client, uint16_t region, uint64_t offset,
                   uint64_t user_data)
{
    static size_t nbytes;

    if (client->arena[0] == 0)
        nbytes = test_core_put_chunk(client, 0, test_small_plain(), TEST_SMALL_NBYTES);
    struct wharf_submission s =
        test_core_decode_of(user_data, 0, nbytes, offset, TEST_SMALL_NBYTES);
    s.dst_region = region;
    test_core_submit(client, &s);
}

void test_small_submit(struct test_core_client *client, uint64_t user_data)
{
    uint64_t offset = TEST_SMALL_OUT + offset_of(user_data);

    memset(client->arena + offset, 0, TEST_SMALL_NBYTES);
    submit(client, WHARF_REGION_ARENA, offset, user_data);
}

void test_small_submit_to(struct test_core_client *client, uint8_t *memory, uint64_t user_data)
{
    memset(memory + offset_of(user_data), 0, TEST_SMALL_NBYTES);
    submit(client, 1, offset_of(user_data), user_data);
}

struct wharf_completion test_small_reap_from(struct test_core_client *client, const uint8_t *memory)
{
    struct wharf_completion completion = test_core_reap(client);
    const uint8_t *out = memory + offset_of(completion.user_data);

    if (completion.result == WHARF_OK && memcmp(out, test_small_plain(), TEST_SMALL_NBYTES) == 0)
        return completion;
    fprintf(stderr, "job %llx: result %u, or its output is wrong\n",
            (unsigned long long)completion.user_data, completion.result);
    abort();
}

struct wharf_completion test_small_reap(struct test_core_client *client)
{
    return test_small_reap_from(client, client->arena + TEST_SMALL_OUT);
}

struct wharf_completion test_small_run(struct test_core_client *client, uint64_t user_data)
{
    test_small_submit(client, user_data);
    return test_small_reap(client);
}
