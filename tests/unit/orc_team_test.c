/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of an ORC file's stream that several threads decode. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/orc/orc_blocks.h"

enum { N_BLOCKS = 64, BLOCK_NBYTES = 8192, N_HELPERS = 3 };

static uint8_t plain[N_BLOCKS * BLOCK_NBYTES], file[2 * sizeof(plain)];
static size_t file_nbytes;
static uint64_t block_at[N_BLOCKS];

static struct wharf_orc_team *team;
static pthread_t reader;
static atomic_uint n_by_others;
static atomic_ullong fails_at = UINT64_MAX; /* reads from there on */

static int read_file(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    (void)context;
    n_by_others += !pthread_equal(pthread_self(), reader);
    if (offset >= fails_at)
        return -EIO;
    memcpy(buf, file + offset, nbytes);
    return 0;
}

/* Each block is one literal of Snappy's. */
static void make_file(void)
{
    static const uint8_t head[] = {0x80, BLOCK_NBYTES >> 7, 61 << 2, (BLOCK_NBYTES - 1) & 0xff,
                                   (BLOCK_NBYTES - 1) >> 8};
    const uint32_t nbytes = sizeof(head) + BLOCK_NBYTES;

    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = (uint8_t)(i * 2654435761u >> 13);
    for (unsigned i = 0; i < N_BLOCKS; i++) {
        uint8_t *to = file + file_nbytes;
        to[0] = (uint8_t)(nbytes << 1);
        to[1] = (uint8_t)(nbytes >> 7);
        to[2] = (uint8_t)(nbytes >> 15);
        memcpy(to + 3, head, sizeof(head));
        memcpy(to + 3 + sizeof(head), plain + i * BLOCK_NBYTES, BLOCK_NBYTES);
        block_at[i] = file_nbytes;
        file_nbytes += 3 + nbytes;
    }
}

static void *help(void *context)
{
    wharf_orc_team_help(context);
    return NULL;
}

static struct wharf_orc_bytes bytes_of_file(void)
{
    return (struct wharf_orc_bytes){
        .source = {read_file, NULL, file_nbytes},
        .compression = WHARF_ORC_SNAPPY,
        .block_nbytes = BLOCK_NBYTES,
        .team = team,
    };
}

/* Reads blocks until one fails, or n; how many were good. */
static unsigned read_blocks(unsigned n, struct wharf_orc_error *ret_error)
{
    static uint8_t out[BLOCK_NBYTES];
    struct wharf_orc_bytes bytes = bytes_of_file();
    struct wharf_orc_blocks blocks;
    size_t nbytes;
    unsigned i = 0;

    wharf_orc_blocks_init(&blocks, &bytes, 0, file_nbytes);
    for (; i < n && wharf_orc_blocks_have_more(&blocks); i++) {
        if (wharf_orc_blocks_next(&blocks, out, &nbytes, ret_error) < 0)
            break;
        cr_assert_eq(nbytes, BLOCK_NBYTES);
        cr_assert(memcmp(out, plain + i * BLOCK_NBYTES, nbytes) == 0, "block %u", i);
        cr_assert_eq(blocks.block_at, block_at[i]);
    }
    wharf_orc_blocks_deinit(&blocks);
    return i;
}

static pthread_t helpers[N_HELPERS];

static void begin(void)
{
    make_file();
    reader = pthread_self();
    cr_assert_eq(wharf_orc_team_new(1 + N_HELPERS, &team), 0);
    wharf_orc_team_begin(team, 1);
    for (unsigned i = 0; i < N_HELPERS; i++)
        cr_assert_eq(pthread_create(&helpers[i], NULL, help, team), 0);
}

static void end(void)
{
    wharf_orc_team_finish(team);
    for (unsigned i = 0; i < N_HELPERS; i++)
        pthread_join(helpers[i], NULL);
    wharf_orc_team_free(team);
}

/* Until others have decoded some: they may begin late. */
static void read_until_helped(void)
{
    struct wharf_orc_error error;
    unsigned before = n_by_others;

    while (n_by_others < before + 2)
        cr_assert_eq(read_blocks(N_BLOCKS, &error), N_BLOCKS);
}

/* Without a team one stripe's column was the work of one thread. */
Test(orc_team, helpers_decode_blocks_and_the_order_stays)
{
    begin();
    read_until_helped();
    end();
}

/* Blocks behind a bad one are decoded before it is known, and are told by nobody. */
Test(orc_team, the_first_bad_block_is_told_whoever_meets_it)
{
    begin();
    read_until_helped();
    for (unsigned bad = 0; bad < N_BLOCKS; bad += 7) {
        struct wharf_orc_error error;
        uint8_t kept = file[block_at[bad] + 3];
        file[block_at[bad] + 3] = 0xff;
        fails_at = bad + 1 < N_BLOCKS ? block_at[bad + 1] : UINT64_MAX;
        cr_assert_eq(read_blocks(N_BLOCKS, &error), bad);
        cr_assert_eq(error.trouble, WHARF_ORC_DAMAGED);
        cr_assert_eq(error.offset, block_at[bad]);
        file[block_at[bad] + 3] = kept;
        cr_assert_eq(read_blocks(N_BLOCKS, &error), bad + 1 < N_BLOCKS ? bad + 1 : N_BLOCKS);
        if (bad + 1 < N_BLOCKS) {
            cr_assert_eq(error.trouble, WHARF_ORC_SYSTEM);
            cr_assert_eq(error.error, -EIO);
        }
        fails_at = UINT64_MAX;
    }
    end();
}

/* A column ends before its stream does, or another of its streams is bad. */
Test(orc_team, readers_may_leave_at_any_block)
{
    struct wharf_orc_error error;

    begin();
    read_until_helped();
    for (unsigned n = 0; n < N_BLOCKS; n++)
        cr_assert_eq(read_blocks(n, &error), n);
    read_until_helped();
    end();
}
