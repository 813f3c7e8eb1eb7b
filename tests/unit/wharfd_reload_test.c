/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration read again: what takes effect, and what clients keep that they were told. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "encoders/codec.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_wharfd.h"

#define MiB ((uint64_t)1 << 20)

static struct test_wharfd wharfd;

static void write_config(const char *text)
{
    FILE *file = fopen(wharfd.config, "we");

    fputs(text, file);
    fclose(file);
    kill(wharfd.pid, SIGHUP);
}

Test(wharfd_reload, settings_take_effect_or_keep)
{
    test_wharfd_start_by(&wharfd, "auto", "[quota]\nmax_entries = 64\n");
    struct test_client *client = test_client_greeted(wharfd.socket);

    write_config("[quota]\nmax_entries = 16\n[cpu]\nworkers = 9\n");
    cr_assert(test_wharfd_says(&wharfd, "read the configuration again"));
    cr_assert(test_wharfd_says(&wharfd, "[cpu] workers takes effect when the daemon starts anew"));
    struct test_client *later = test_client_greeted(wharfd.socket);
    cr_assert_eq(test_client_open_with(later, 64, 0, 0, 0), -EDQUOT);
    write_config("[quota]\nmax_entries = sixteen\n");
    cr_assert(test_wharfd_says(&wharfd, ":2: max_entries = sixteen: not a number"));
    cr_assert_eq(test_client_open_with(later, 16, 0, 0, 0), 0);
    cr_assert_eq(test_client_open_with(client, 64, 0, 0, 0), 0);
    test_client_free(later);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* ---- limits that clients were told --------------------------------------------------------- */

enum { COPY_NBYTES = 100 << 10, N_CHUNKS = 100, CHUNK_NBYTES = 16, COMPRESS_NBYTES = 32 << 10 };

/* The result of a stored chunk that is copied within the arena. */
static uint32_t run_copy(struct test_client *client)
{
    struct wharf_submission s = {.opcode = WHARF_OP_DECODE,
                                 .codec = WHARF_CODEC_STORED,
                                 .src_nbytes = COPY_NBYTES,
                                 .dst_offset = COPY_NBYTES,
                                 .dst_nbytes = COPY_NBYTES};
    struct wharf_completion completion;

    cr_assert_eq(test_client_submit(client, &s), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    return completion.result;
}

/* That of a batch of small ones, whose table begins the arena. */
static uint32_t run_batch(struct test_client *client)
{
    struct wharf_submission s = {.opcode = WHARF_OP_BATCH,
                                 .codec = WHARF_CODEC_STORED,
                                 .src_nbytes = N_CHUNKS * sizeof(struct wharf_chunk)};
    struct wharf_completion completion;

    for (unsigned i = 0; i < N_CHUNKS; i++) {
        struct wharf_chunk chunk = {.src_offset = COPY_NBYTES,
                                    .src_nbytes = CHUNK_NBYTES,
                                    .dst_offset = COPY_NBYTES + (i + 1) * CHUNK_NBYTES,
                                    .dst_nbytes = CHUNK_NBYTES};
        memcpy(client->arena + i * sizeof(chunk), &chunk, sizeof(chunk));
    }
    cr_assert_eq(test_client_submit(client, &s), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    return completion.result;
}

/* One region, and then another one, which is one too many by the new limit. */
static int register_two(struct test_client *client)
{
    int fd = test_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
    int r = test_client_register(client, 1, fd, 4096, false);

    if (r == 0)
        r = test_client_register(client, 2, fd, 4096, false);
    close(fd);
    return r;
}

/* The result of a chunk that is compressed. */
static uint32_t run_compress(struct test_client *client)
{
    struct wharf_submission s = {.opcode = WHARF_OP_DECODE,
                                 .codec = WHARF_CODEC_STORED,
                                 .flags = WHARF_JOB_COMPRESS,
                                 .src_nbytes = COMPRESS_NBYTES,
                                 .dst_offset = COPY_NBYTES,
                                 .dst_nbytes = COMPRESS_NBYTES};
    struct wharf_completion completion;

    cr_assert_eq(test_client_submit(client, &s), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    return completion.result;
}

/* The second model, which is one too many by the new limit.  Its number is checked first; then it
 * is refused, because it is empty. */
static int register_second_model(struct test_client *client)
{
    Wharf__RegisterModelRequest model = WHARF__REGISTER_MODEL_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;

    model.model = WHARF_FIRST_MODEL + 1;
    model.codec = WHARF_CODEC_RANS;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MODEL;
    request.register_model = &model;
    int fd = test_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    int r = test_client_call(client, &request, &fd, 1, &reply);
    close(fd);
    return r;
}

static struct test_client *greeted_with_features(void)
{
    struct test_client *client = test_client_connected(wharfd.socket);

    client->optional_features = (uint64_t)1 << WHARF__FEATURE__FEATURE_COMPRESS |
                                (uint64_t)1 << WHARF__FEATURE__FEATURE_MODELS;
    cr_assert_eq(test_client_hello(client), 0);
    return client;
}

/* What the limits of this client let it have: the old ones, or the new ones. */
static void expect_limits(struct test_client *client, bool old)
{
    cr_assert_eq(client->limits.max_entries, old ? 64 : 16);
    cr_assert_eq(client->limits.max_regions, old ? 2 : 1);
    cr_assert_eq(client->limits.max_job_nbytes, old ? 2 * COPY_NBYTES : 2 * COPY_NBYTES - 1024);
    cr_assert_eq(client->limits.max_batch_chunks, old ? N_CHUNKS : N_CHUNKS - 1);
    cr_assert_eq(run_copy(client), old ? WHARF_OK : WHARF_BAD_REQUEST);
    cr_assert_eq(run_batch(client), old ? WHARF_OK : WHARF_BAD_REQUEST);
    cr_assert_eq(client->limits.max_models, old ? 2 : 1);
    cr_assert_eq(client->limits.max_compress_nbytes, old ? COMPRESS_NBYTES : COMPRESS_NBYTES / 2);
    cr_assert_eq(run_compress(client), old ? WHARF_OK : WHARF_BAD_REQUEST);
    cr_assert_eq(register_two(client), old ? 0 : -EDQUOT);
    cr_assert_eq(register_second_model(client), old ? -EINVAL : -EDQUOT);
}

/* Jobs of the size that a client had been told of ended with BAD_REQUEST; so did its batches, and
 * its queue was refused.  Those who were greeted, and those who have a queue. */
Test(wharfd_reload, leaves_clients_the_limits_that_they_were_told)
{
    test_wharfd_start_by(&wharfd, "auto",
                         "[quota]\nmax_entries = 64\nmax_arena = 1M\nmax_regions = 2\n"
                         "max_job = 200K\nmax_batch_chunks = 100\n"
                         "max_models = 2\nmax_compress = 32K\n");
    struct test_client *open = greeted_with_features();
    cr_assert_eq(test_client_open_with(open, 64, MiB, 0, 0), 0);
    struct test_client *greeted = greeted_with_features();

    write_config("[quota]\nmax_entries = 16\nmax_arena = 512K\nmax_regions = 1\n"
                 "max_job = 199K\nmax_batch_chunks = 99\n"
                 "max_models = 1\nmax_compress = 16K\n");
    cr_assert(test_wharfd_says(&wharfd, "read the configuration again"));
    expect_limits(open, true);
    cr_assert_eq(test_client_open_with(greeted, 64, MiB, 0, 0), 0);
    expect_limits(greeted, true);
    struct test_client *later = greeted_with_features();
    cr_assert_eq(test_client_open_with(later, 16, MiB, 0, 0), -EDQUOT);
    cr_assert_eq(test_client_open_with(later, 16, MiB / 2, 0, 0), 0);
    expect_limits(later, false);
    test_client_free(later);
    test_client_free(greeted);
    test_client_free(open);
    test_wharfd_finish(&wharfd);
}

/* ---- start words --------------------------------------------------------------------------- */

static struct test_client *greeted_with_words(void)
{
    struct test_client *client = test_client_connected(wharfd.socket);

    client->optional_features = (uint64_t)1 << WHARF__FEATURE__FEATURE_DONE_WORDS |
                                (uint64_t)1 << WHARF__FEATURE__FEATURE_START_WORDS;
    cr_assert_eq(test_client_hello(client), 0);
    return client;
}

/* A queue, and a word that its jobs can wait for. */
static uint64_t *open_with_word(struct test_client *client)
{
    int fd = test_memfd(4096, 0);

    cr_assert_eq(test_client_open_with(client, 16, MiB, 0, 0), 0);
    uint64_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(word, MAP_FAILED);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE), 0);
    cr_assert_eq(test_client_register(client, 1, fd, 4096, true), 0, "%s", client->error);
    close(fd);
    return word;
}

static void submit_held(struct test_client *client)
{
    const struct wharf_submission_words words = {.start_region = 1, .start_serial = 1};
    const struct wharf_submission s = {.opcode = WHARF_OP_DECODE,
                                       .codec = WHARF_CODEC_STORED,
                                       .flags = WHARF_SUBMISSION_START_WORD,
                                       .src_nbytes = 1024,
                                       .dst_offset = 4096,
                                       .dst_nbytes = 1024};

    wharf_ring_submit_words(&client->ring, &words);
    cr_assert_eq(test_client_submit(client, &s), 0);
}

static struct wharf_completion reap_held(struct test_client *client)
{
    struct wharf_completion completion;

    cr_assert_eq(test_client_reap(client, &completion), 0);
    return completion;
}

/* Jobs of a client that was told an hour wait for an hour, whatever later ones are told. */
Test(wharfd_reload, leaves_clients_the_start_time_that_they_were_told)
{
    test_wharfd_start_by(&wharfd, "auto", "[quota]\nmax_start = 60min\n");
    struct test_client *client = greeted_with_words();
    write_config("[quota]\nmax_start = 10ms\n");
    cr_assert(test_wharfd_says(&wharfd, "read the configuration again"));
    uint64_t *word = open_with_word(client);
    submit_held(client);
    struct test_client *later = greeted_with_words();
    uint64_t *later_word = open_with_word(later);
    cr_assert_eq(client->limits.max_start_ns, 3600 * (uint64_t)1000000000);
    cr_assert_eq(later->limits.max_start_ns, 10 * 1000000);
    submit_held(later);
    struct wharf_completion late = reap_held(later);
    cr_assert_eq(late.result, WHARF_DEADLINE);
    cr_assert_eq(late.reason, WHARF_REASON_START_TIME);
    /* Submitted before, with the later client's limit it would have ended before. */
    cr_assert_eq(wharf_ring_load_cq_tail(&client->d->cq_tail), 0);
    wharf_ring_store_start(word, WHARF_START_VALUE(1));
    cr_assert_eq(reap_held(client).result, WHARF_OK);
    munmap(word, 4096);
    munmap(later_word, 4096);
    test_client_free(later);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}
