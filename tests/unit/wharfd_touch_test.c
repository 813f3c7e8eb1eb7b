/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of clients that is not to be had when the daemon touches it: a SIGBUS, which was the
 * daemon's end.  Pages past the end of a file give the same as pages that the system has promised
 * to somebody else.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/touch.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"

#define MiB ((uint64_t)1 << 20)
#define PAGE 4096u

enum { PLAIN = 3 * PAGE, SOURCE = 0, OUTPUT = 1 << 20, TABLE = 2 << 20, RESULTS = 3 << 20 };

static struct test_core_client client, other;
static uint8_t *plain;
static size_t packed_nbytes;

static void set_up(void)
{
    test_core_set_up();
    test_core_client_init(&client, 1, "uid:1", 8, 4 * MiB);
    test_core_client_init(&other, 2, "uid:2", 8, 4 * MiB);
    plain = test_data_new(test_data_find("text"), 1, PLAIN);
    packed_nbytes = test_core_put_chunk(&client, SOURCE, plain, PLAIN);
    test_core_put_chunk(&other, SOURCE, plain, PLAIN);
}

static void tear_down(void)
{
    test_core_client_deinit(&client);
    test_core_client_deinit(&other);
    test_core_stop();
    free(plain);
}

/* Takes a page of the client's arena away from the daemon. */
static void take_page(uint64_t offset)
{
    uint8_t *page = (uint8_t *)client.session->regions[0].segment.address + offset;
    int fd = memfd_create("empty", MFD_CLOEXEC);

    /* Under the lock, so that the thread sanitizer knows what comes first. */
    void *mapped =
        TEST_CORE_LOCKED(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0));
    cr_assert_eq(mapped, page);
    close(fd);
}

static struct wharf_completion run(struct test_core_client *whose,
                                   const struct wharf_submission *submission)
{
    test_core_submit(whose, submission);
    return test_core_reap(whose);
}

static struct wharf_submission decode(void)
{
    return test_core_decode_of(1, SOURCE, packed_nbytes, OUTPUT, PLAIN);
}

/* Nothing is held or lost: as many more as there are workers, and then some. */
static void expect_no_memory(const struct wharf_submission *submission)
{
    struct wharf_submission good = decode();

    for (unsigned i = 0; i < 10; i++) {
        struct wharf_completion completion = run(&client, submission);
        cr_assert_eq(completion.result, WHARF_NO_MEMORY);
        cr_assert_eq(completion.out_nbytes, 0);
        completion = run(&other, &good);
        cr_assert_eq(completion.result, WHARF_OK);
        cr_assert_arr_eq(other.arena + OUTPUT, plain, PLAIN);
    }
    cr_assert_eq(TEST_CORE_LOCKED(client.session->tenant->used.memory_nbytes), 0);
}

Test(wharfd_touch, job_whose_output_cannot_be_had_ends, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    struct wharf_submission s = decode();

    cr_assert_eq(run(&client, &s).result, WHARF_OK);
    take_page(OUTPUT + PAGE);
    expect_no_memory(&s);
    /* What does not need that page goes on. */
    s.dst_offset = TABLE;
    cr_assert_eq(run(&client, &s).result, WHARF_OK);
}

Test(wharfd_touch, job_whose_source_cannot_be_had_ends, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    struct wharf_submission s = decode();

    take_page(SOURCE);
    expect_no_memory(&s);
}

Test(wharfd_touch, job_of_the_reference_engine_ends, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    struct wharf_submission s = decode();

    client.session->engine = WHARF_ENGINE_REFERENCE;
    cr_assert_eq(run(&client, &s).result, WHARF_OK);
    cr_assert_arr_eq(client.arena + OUTPUT, plain, PLAIN);
    take_page(OUTPUT);
    expect_no_memory(&s);
}

/* A batch of two chunks of which the second one's output is on the page OUTPUT. */
static struct wharf_submission put_batch(void)
{
    struct wharf_chunk chunks[2] = {
        {.src_offset = SOURCE,
         .dst_offset = RESULTS + PAGE,
         .src_nbytes = (uint32_t)packed_nbytes,
         .dst_nbytes = PLAIN},
        {.src_offset = SOURCE,
         .dst_offset = OUTPUT,
         .src_nbytes = (uint32_t)packed_nbytes,
         .dst_nbytes = PLAIN},
    };

    memcpy(client.arena + TABLE, chunks, sizeof(chunks));
    return (struct wharf_submission){
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_ZLIB,
        .user_data = 1,
        .src_offset = TABLE,
        .src_nbytes = sizeof(chunks),
        .dst_offset = RESULTS,
        .dst_nbytes = 2 * sizeof(struct wharf_chunk_result),
    };
}

Test(wharfd_touch, chunk_of_a_batch_ends_and_the_others_are_decoded, .init = set_up,
     .fini = tear_down, .timeout = 600)
{
    struct wharf_submission s = put_batch();
    struct wharf_chunk_result results[2];

    take_page(OUTPUT);
    expect_no_memory(&s);
    memcpy(results, client.arena + RESULTS, sizeof(results));
    cr_assert_eq(results[0].result, WHARF_OK);
    cr_assert_eq(results[1].result, WHARF_NO_MEMORY);
    cr_assert_arr_eq(client.arena + RESULTS + PAGE, plain, PLAIN);
}

Test(wharfd_touch, batch_whose_table_cannot_be_had_ends, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    struct wharf_submission s = put_batch();

    take_page(TABLE);
    expect_no_memory(&s);
}

Test(wharfd_touch, batch_whose_results_cannot_be_had_ends, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    struct wharf_submission s = put_batch();

    take_page(RESULTS);
    expect_no_memory(&s);
}

/* ---- the touch itself ---------------------------------------------------------------------- */

static volatile uint8_t *missing;

static void touch_inside(void *context)
{
    (void)context;
    *missing = 1;
}

static void touch_twice(void *context)
{
    bool *was_whole = context;

    *was_whole = wharf_touch(touch_inside, NULL);
    *missing = 2;
}

/* As with a piece that is run in the middle of another one. */
Test(wharfd_touch, each_touch_ends_by_itself, .init = set_up, .fini = tear_down, .timeout = 600)
{
    bool inner_was_whole = true;

    take_page(OUTPUT);
    missing = (uint8_t *)client.session->regions[0].segment.address + OUTPUT;
    cr_assert(!wharf_touch(touch_twice, &inner_was_whole));
    cr_assert(!inner_was_whole);
    missing += PAGE;
    cr_assert(wharf_touch(touch_twice, &inner_was_whole));
    cr_assert(inner_was_whole);
    cr_assert_eq(*missing, 2);
}

/* Anything else is a mistake of the daemon's, which must not go on with it. */
Test(wharfd_touch, fault_elsewhere_is_the_end, .init = set_up, .fini = tear_down, .timeout = 600)
{
    int status;

    take_page(OUTPUT);
    missing = (uint8_t *)client.session->regions[0].segment.address + OUTPUT;
    pid_t pid = fork();
    if (pid == 0) {
        *missing = 1;
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    /* The address sanitizer has an exit status for it. */
    cr_assert(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    pid = fork();
    if (pid == 0) {
        raise(SIGBUS);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}
