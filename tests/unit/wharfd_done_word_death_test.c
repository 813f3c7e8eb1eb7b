/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that wait for jobs of a whole daemon, on processors and a GPU that is played, while
 * workers, daemons and clients are killed.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "tests/lib/test_gpu_memory.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_words.h"
#include "tests/lib/test_worker.h"

static struct test_wharfd wharfd;

static struct test_words new_words(struct wharf *wharf, const struct test_chunks *chunks)
{
    return (struct test_words){
        .wharf = wharf,
        .chunks = chunks,
        .n_jobs = 400,
        .n_in_flight = 40,
        .batch_one_in = 4,
        .cancel_one_in = 10,
        .start_one_in = 2,
        .limit_s = 600,
    };
}

static void check_gpu(uint32_t engine, bool is_device)
{
    struct test_chunks chunks;

    test_wharfd_start_gpu(&wharfd, "simt", "");
    test_chunks_init(&chunks, 1, 60, 2000, 8);
    struct wharf *wharf = test_wharfd_open(&wharfd, engine, 0, 0);
    struct test_words words = new_words(wharf, &chunks);
    struct test_gpu_memory memory = test_gpu_memory_new(NULL, test_words_nbytes(&words));
    if (is_device) {
        words.memory = memory.at;
        cr_assert_eq(test_gpu_memory_register(wharf, &memory), 0, "%s", wharf_error_message());
    }
    cr_assert_eq(test_words_run(&words), 0, "%s", words.error);
    wharf_close(wharf);
    test_gpu_memory_free(&memory);
    test_chunks_deinit(&chunks);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_done_word_death, start_words_of_a_handle_take_a_megabyte)
{
    enum { MOST_WORDS = 1 << 17, PAGE_WORDS = 512 };
    uint64_t *most, *page;

    test_wharfd_start(&wharfd, "");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
    cr_assert_eq(wharf_make_start_words(wharf, MOST_WORDS, &most), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_make_start_words(wharf, 1, &page), -EDQUOT);
    cr_assert_eq(wharf_unregister(wharf, most), 0);
    cr_assert_eq(wharf_make_start_words(wharf, 1, &page), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_make_start_words(wharf, MOST_WORDS - PAGE_WORDS + 1, &most), -EDQUOT);
    cr_assert_eq(wharf_make_start_words(wharf, MOST_WORDS - PAGE_WORDS, &most), 0, "%s",
                 wharf_error_message());
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_done_word_death, tells_of_jobs_on_a_gpu)
{
    check_gpu(WHARF_ENGINE_SIMT, false);
}

Test(wharfd_done_word_death, tells_of_jobs_in_gpu_memory)
{
    check_gpu(WHARF_ENGINE_AUTO, true);
}

static struct test_worker_killer killer;

static void kill_worker(const struct test_words *words)
{
    struct test_storm storm = {.tick_data = words->tick_data};

    test_worker_kill_ready(&storm);
}

#define MOST_KILLS 5

Test(wharfd_done_word_death, job_that_is_told_never_runs_again_when_workers_are_killed,
     .timeout = 600)
{
    struct test_chunks chunks;

    test_wharfd_start_gpu(&wharfd, "simt", "hang_timeout = 10min\n");
    killer = (struct test_worker_killer){.random = {3},
                                         .wharfd = &wharfd,
                                         .within_ns = 40 * WHARF_NS_PER_MS,
                                         .most_kills = MOST_KILLS};
    test_chunks_init(&chunks, 2, 60, 1000, 8);
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
    struct test_words words = new_words(wharf, &chunks);
    struct test_gpu_memory memory = test_gpu_memory_new(NULL, test_words_nbytes(&words));
    words.memory = memory.at;
    words.tick = kill_worker;
    words.tick_data = &killer;
    cr_assert_eq(test_gpu_memory_register(wharf, &memory), 0, "%s", wharf_error_message());
    for (unsigned n = 0; n < (killer.n_kills < 3 ? 2000 : 20) && killer.n_kills < MOST_KILLS; n++) {
        words.seed = n;
        words.n_done = 0;
        cr_assert_eq(test_words_run(&words), 0, "%s", words.error);
    }
    cr_expect_gt(killer.n_kills, 2);
    wharf_close(wharf);
    test_gpu_memory_free(&memory);
    test_chunks_deinit(&chunks);
    test_wharfd_finish(&wharfd);
}

/* How many jobs were done when it was killed last, and how often it is still to be killed. */
static uint64_t n_done_before;
static unsigned n_kills_left;

/* Each time that some jobs are done, wherever it is with the others by then. */
static void restart_daemon(const struct test_words *words)
{
    if (n_kills_left == 0 || words->n_done == n_done_before)
        return;
    test_wharfd_kill(&wharfd);
    test_wharfd_restart(&wharfd);
    n_done_before = words->n_done;
    n_kills_left--;
}

Test(wharfd_done_word_death, job_that_is_told_never_runs_again_when_daemons_are_killed,
     .timeout = 600)
{
    struct test_chunks chunks;

    test_wharfd_start(&wharfd, "");
    test_chunks_init(&chunks, 4, 60, 3000, 8);
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
    for (unsigned n = 0; n < 5; n++) {
        struct test_words words = new_words(wharf, &chunks);
        words.seed = n;
        words.tick = restart_daemon;
        words.n_jobs = 600;
        n_done_before = 0;
        n_kills_left = 8;
        cr_assert_eq(test_words_run(&words), 0, "%s", words.error);
    }
    wharf_close(wharf);
    test_chunks_deinit(&chunks);
    test_wharfd_finish(&wharfd);
}

/* A client that dies in any state leaves a daemon that serves others. */
Test(wharfd_done_word_death, clients_may_die_with_words_in_flight, .timeout = 600)
{
    struct test_chunks chunks;

    test_wharfd_start_gpu(&wharfd, "simt", "");
    test_chunks_init(&chunks, 5, 60, 2000, 8);
    for (unsigned n = 0; n < 10; n++) {
        pid_t pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0) {
            struct wharf *own = test_wharfd_open(&wharfd, n % 2 ? WHARF_ENGINE_SIMT : 0, 0, 0);
            struct test_words words = new_words(own, &chunks);
            words.n_jobs = UINT64_MAX;
            words.seed = n;
            test_words_run(&words);
            _exit(1);
        }
        usleep(10000 + n * 7000);
        kill(pid, SIGKILL);
        cr_assert_eq(waitpid(pid, NULL, 0), pid);
    }
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
    struct test_words words = new_words(wharf, &chunks);
    cr_assert_eq(test_words_run(&words), 0, "%s", words.error);
    wharf_close(wharf);
    test_chunks_deinit(&chunks);
    test_wharfd_finish(&wharfd);
}
