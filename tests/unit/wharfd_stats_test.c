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
    unsigned n_pages = 0, n_buckets = 0;
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
            for (size_t k = 0; k < reply->stats->families[i]->n_samples; k++)
                n_buckets += strcmp(reply->stats->families[i]->samples[k]->suffix, "_bucket") == 0;
        stats.first = reply->stats->next;
    } while (stats.first && ++n_pages < 100);
    cr_assert_eq(stats.first, 0);
    cr_assert_geq(n_pages, 1);
    cr_assert_eq(n_buckets, 2 * 27);
    stats.first = UINT64_MAX;
    cr_assert_eq(test_client_call(client, &request, NULL, 0, &reply), -EINVAL);
    stats.first = 0xff;
    cr_assert_eq(test_client_call(client, &request, NULL, 0, &reply), -EINVAL);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}
