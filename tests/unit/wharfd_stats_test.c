/* SPDX-License-Identifier: Apache-2.0 */
/* The running daemon's statistics. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "encoders/codec.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_wharfd.h"

#define MiB ((uint64_t)1 << 20)

static struct test_wharfd wharfd;

Test(wharfd_stats, statistics_count_what_was_done)
{
    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_client *client = test_client_start(wharfd.socket, 64, MiB);
    struct wharf_completion completion;

    for (unsigned i = 0; i < 30; i++) {
        struct wharf_submission s = {
            .opcode = WHARF_OP_DECODE,
            .codec = i < 20 ? WHARF_CODEC_STORED : WHARF_CODEC_GZIP,
            .src_nbytes = 1000,
            .dst_offset = 5000,
            .dst_nbytes = 1000,
        };
        cr_assert_eq(test_client_submit(client, &s), 0);
        cr_assert_eq(test_client_reap(client, &completion), 0);
    }
    struct wharf_submission bad = {.opcode = 200};
    cr_assert_eq(test_client_submit(client, &bad), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    cr_assert_eq(test_client_metric(client, "wharf_jobs_total", "", "ok"), 20);
    cr_assert_eq(test_client_metric(client, "wharf_jobs_total", "", "bad_data"), 10);
    cr_assert_eq(test_client_metric(client, "wharf_jobs_total", "", "bad_request"), 1);
    cr_assert_eq(test_client_metric(client, "wharf_chunks_total", "", "cpu"), 30);
    cr_assert_eq(test_client_metric(client, "wharf_output_bytes_total", "", "cpu"), 20000);
    cr_assert_eq(test_client_metric(client, "wharf_job_run_seconds", "_count", "cpu"), 30);
    cr_assert_eq(test_client_metric(client, "wharf_job_run_seconds", "_bucket", "+Inf"), 30);
    cr_assert_gt(test_client_metric(client, "wharf_job_run_seconds", "_sum", "cpu"), 0);
    cr_assert_eq(test_client_metric(client, "wharf_sessions_total", "", NULL), 1);
    cr_assert_eq(test_client_metric(client, "wharf_connections", "", NULL), 1);
    cr_assert_gt(test_client_metric(client, "wharf_memory_bytes", "", NULL), (double)MiB);
    cr_assert_gt(test_client_metric(client, "wharf_uptime_seconds", "", NULL), 0);
    cr_assert_eq(test_client_metric(client, "wharf_info", "", WHARF_VERSION), 1);
    cr_assert_eq(test_client_metric(client, "no_such_metric", "", NULL), -1);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* Every page is a good message, they end, and no group of samples comes twice. */
Test(wharfd_stats, pages_of_statistics_end)
{
    Wharf__StatsRequest stats = WHARF__STATS_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;
    unsigned n_pages = 0, n_buckets[2] = {0};
    struct wharf_completion completion;

    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_client *client = test_client_start(wharfd.socket, 64, MiB);
    struct wharf_submission s = {
        .opcode = WHARF_OP_DECODE, .codec = WHARF_CODEC_STORED, .src_nbytes = 1, .dst_offset = 1};
    s.dst_nbytes = 1;
    cr_assert_eq(test_client_submit(client, &s), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    request.body_case = WHARF__REQUEST__BODY_STATS;
    request.stats = &stats;
    do {
        cr_assert_eq(test_client_call(client, &request, NULL, 0, &reply), 0);
        for (size_t i = 0; i < reply->stats->n_families; i++)
            for (size_t k = 0; k < reply->stats->families[i]->n_samples; k++) {
                const Wharf__Sample *sample = reply->stats->families[i]->samples[k];
                bool is_tenants =
                    sample->n_labels > 0 && strcmp(sample->labels[0]->name, "tenant") == 0;
                n_buckets[is_tenants] += strcmp(sample->suffix, "_bucket") == 0;
            }
        stats.first = reply->stats->next;
    } while (stats.first && ++n_pages < 100);
    cr_assert_eq(stats.first, 0);
    cr_assert_geq(n_pages, 1);
    /* Of the tenant, and of all together. */
    cr_assert_eq(n_buckets[true], 3 * 27);
    /* And of each class. */
    cr_assert_eq(n_buckets[false], 5 * 27);
    stats.first = UINT64_MAX;
    cr_assert_eq(test_client_call(client, &request, NULL, 0, &reply), -EINVAL);
    stats.first = 0xff;
    cr_assert_eq(test_client_call(client, &request, NULL, 0, &reply), -EINVAL);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* ---- snapshots ----------------------------------------------------------------------------- */

static void read_to_the_end(struct test_client *client, uint64_t next)
{
    while (next) {
        uint64_t before = next;
        cr_assert_eq(test_client_stats_page(client, before, &next), 0);
        cr_assert(next == 0 || next > before);
    }
}

Test(wharfd_stats, each_connection_reads_the_snapshot_that_it_asked_for)
{
    uint64_t next[2], other;

    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_client *first = test_client_greeted(wharfd.socket);
    struct test_client *second = test_client_greeted(wharfd.socket);
    cr_assert_eq(test_client_stats_page(first, 0, &next[0]), 0);
    cr_assert_neq(next[0], 0, "there is but one page");
    cr_assert_eq(test_client_stats_page(second, next[0], &other), -EINVAL);
    cr_assert_eq(test_client_stats_page(second, 0, &next[1]), 0);
    cr_assert_eq(test_client_stats_page(second, next[0], &other), -EINVAL);
    cr_assert_eq(test_client_stats_page(first, next[1], &other), -EINVAL);
    cr_assert_gt(next[1], next[0]);
    read_to_the_end(second, next[1]);
    read_to_the_end(first, next[0]);
    /* It is over then; one can be given up. */
    cr_assert_eq(test_client_stats_page(first, next[0], &other), -EINVAL);
    cr_assert_eq(test_client_stats_page(second, 0, &other), 0);
    cr_assert_eq(test_client_stats_page(second, 0, &next[1]), 0);
    cr_assert_eq(test_client_stats_page(second, other, &other), -EINVAL);
    read_to_the_end(second, next[1]);
    test_client_free(first);
    test_client_free(second);
    test_wharfd_finish(&wharfd);
}

/* Who asks and goes leaves nothing behind that is sent to somebody else. */
Test(wharfd_stats, clients_may_go_while_their_statistics_are_made)
{
    Wharf__StatsRequest stats = WHARF__STATS_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    uint64_t next;

    test_wharfd_start_by(&wharfd, "auto", "");
    request.body_case = WHARF__REQUEST__BODY_STATS;
    request.stats = &stats;
    struct test_client *stays = test_client_greeted(wharfd.socket);
    for (unsigned i = 0; i < 100; i++) {
        struct test_client *goes = test_client_greeted(wharfd.socket);
        cr_assert_eq(test_client_send(goes, &request, NULL, 0), 0);
        test_client_free(goes);
        cr_assert_eq(test_client_stats_page(stays, 0, &next), 0);
    }
    read_to_the_end(stays, next);
    test_client_free(stays);
    test_wharfd_finish(&wharfd);
}
