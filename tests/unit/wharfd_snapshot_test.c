/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of statistics: what they take, and what is in them.  Of time nothing is expected: steps
 * are counted. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/control/stats_snapshot.h"
#include "daemon/core/core.h"
#include "daemon/core/stats.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"
#include "proto/control.h"

#define S ((uint64_t)WHARF_NS_PER_S)

static struct wharf_config config;
static struct wharf_core core;
static struct wharf_loop *loop;

static void set_up(void)
{
    wharf_config_init(&config);
    cr_assert_eq(wharf_loop_new(WHARF_LOOP_EPOLL, &loop), 0);
    cr_assert_eq(wharf_core_init(&core, &config, loop), 0);
}

static void tear_down(void)
{
    wharf_core_deinit(&core);
    wharf_loop_free(loop);
    wharf_config_deinit(&config);
}

static void count(struct wharf_tenant *tenant, uint64_t n)
{
    struct wharf_engine_stats *stats = &tenant->stats.engines[WHARF_ENGINE_CPU];

    tenant->stats.n_connections += 1;
    stats->n_jobs[WHARF_OK] += n;
    stats->n_chunks += n;
    stats->busy_ns += n * 1000;
    wharf_histogram_add(&stats->run, 1000);
}

/* Those up to `n` that are not there yet; later ones are busier. */
static void add_tenants(unsigned n)
{
    struct wharf_use use = {.n_connections = 1};
    char name[32];

    wharf_core_enter(&core);
    for (unsigned i = core.tenants.n; i < n; i++) {
        snprintf(name, sizeof(name), "uid:%u", 100000 + i);
        struct wharf_tenant *tenant = wharf_tenants_get(&core.tenants, name, &config);
        cr_assert_not_null(tenant);
        wharf_tenant_charge_anyway(tenant, &use);
        wharf_tenant_unref(tenant);
        count(tenant, i + 1);
    }
    wharf_core_leave(&core);
}

static struct wharf_stats_snapshot *take(void)
{
    struct wharf_stats_snapshot *snapshot = wharf_stats_snapshot_new(1);

    cr_assert_not_null(snapshot);
    wharf_stats_snapshot_make(snapshot, &core, "epoll", wharf_now_ns());
    cr_assert_eq(snapshot->error, 0);
    cr_assert_eq(core.tenants.n_walks, 0);
    return snapshot;
}

/* ---- reading one --------------------------------------------------------------------------- */

struct sum {
    double value; /* of all that were looked for */
    unsigned n;
    size_t text_nbytes; /* of all samples, as Prometheus reads them */
};

static size_t text_nbytes_of(const Wharf__MetricFamily *family, const Wharf__Sample *sample)
{
    size_t nbytes = strlen(family->name) + strlen(sample->suffix) + 2;
    char value[32];

    for (size_t i = 0; i < sample->n_labels; i++)
        nbytes += strlen(sample->labels[i]->name) + strlen(sample->labels[i]->value) + 4;
    return nbytes + (size_t)snprintf(value, sizeof(value), "%.15g", sample->value);
}

static void look_at_page(const Wharf__StatsReply *page, const char *name, const char *suffix,
                         struct sum *sum)
{
    for (size_t i = 0; i < page->n_families; i++) {
        const Wharf__MetricFamily *family = page->families[i];
        for (size_t k = 0; k < family->n_samples; k++) {
            sum->text_nbytes += text_nbytes_of(family, family->samples[k]);
            if (strcmp(family->name, name) != 0 || strcmp(family->samples[k]->suffix, suffix) != 0)
                continue;
            sum->value += family->samples[k]->value;
            sum->n++;
        }
    }
}

/* Each page is a message, fits a packet, and says which is next. */
static struct sum look(const struct wharf_stats_snapshot *snapshot, const char *name,
                       const char *suffix)
{
    struct sum sum = {0, 0, 0};
    uint8_t packet[WHARF_CONTROL_MAX_NBYTES];
    size_t from = 0, number, packet_nbytes;

    for (size_t i = 0; i < snapshot->n_pages; i++) {
        size_t nbytes = snapshot->ends[i] - from;
        cr_assert_eq(wharf_control_wrap_stats(UINT32_MAX, snapshot->bytes + from, nbytes, packet,
                                              &packet_nbytes),
                     0);
        Wharf__Reply *reply = wharf__reply__unpack(NULL, packet_nbytes, packet);
        cr_assert_not_null(reply);
        cr_assert_eq(reply->id, UINT32_MAX);
        cr_assert_eq(reply->body_case, WHARF__REPLY__BODY_STATS);
        look_at_page(reply->stats, name, suffix, &sum);
        if (i + 1 == snapshot->n_pages) {
            cr_assert_eq(reply->stats->next, 0);
        } else {
            cr_assert(wharf_stats_snapshot_page(snapshot, reply->stats->next, &number));
            cr_assert_eq(number, i + 1);
        }
        wharf__reply__free_unpacked(reply, NULL);
        from = snapshot->ends[i];
    }
    return sum;
}

static double value_of(const struct wharf_stats_snapshot *snapshot, const char *name)
{
    return look(snapshot, name, "").value;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* Each sample of a tenant was looked for among all tenants, on the loop thread. */
Test(wharfd_snapshot, steps_are_linear_and_bounded, .init = set_up, .fini = tear_down)
{
    for (unsigned n = 500; n <= 4000; n *= 2) {
        add_tenants(n);
        struct wharf_stats_snapshot *snapshot = take();
        cr_assert_eq(snapshot->n_rows, n > 3500 ? snapshot->n_rows : n);
        cr_assert_leq(snapshot->n_visits, 2 * n);
        cr_assert_leq(snapshot->most_visits, 16);
        cr_assert_leq(snapshot->n_steps, 2 * (n / 16 + 8) + n / 64);
        wharf_stats_snapshot_free(snapshot);
    }
}

/* The core lock is to be had between steps, and tenants that come during one do not prolong it. */
Test(wharfd_snapshot, pages_hold_every_tenant_once, .init = set_up, .fini = tear_down)
{
    add_tenants(1000);
    struct wharf_stats_snapshot *snapshot = take();
    struct sum connections = look(snapshot, "wharf_connections", "");

    cr_assert_eq(connections.n, 1000);
    cr_assert_eq(connections.value, 1000);
    cr_assert_eq(value_of(snapshot, "wharf_tenants"), 1000);
    cr_assert_eq(value_of(snapshot, "wharf_tenants_listed"), 1000);
    cr_assert_eq(value_of(snapshot, "wharf_all_connections"), 1000);
    cr_assert_eq(value_of(snapshot, "wharf_jobs_total"), 1000 * 1001 / 2);
    cr_assert_eq(value_of(snapshot, "wharf_all_jobs_total"), 1000 * 1001 / 2);
    wharf_stats_snapshot_free(snapshot);
}

Test(wharfd_snapshot, the_busiest_have_histograms_and_all_together, .init = set_up,
     .fini = tear_down)
{
    struct wharf_stats_snapshot *snapshot;

    core.config.n_histogram_tenants = 7;
    add_tenants(300);
    snapshot = take();
    cr_assert_eq(look(snapshot, "wharf_job_run_seconds", "_count").n, 7);
    cr_assert_eq(look(snapshot, "wharf_all_job_run_seconds", "_count").n, 1);
    cr_assert_eq(look(snapshot, "wharf_all_job_run_seconds", "_count").value, 300);
    wharf_stats_snapshot_free(snapshot);
    core.config.n_histogram_tenants = 0;
    snapshot = take();
    cr_assert_eq(look(snapshot, "wharf_job_run_seconds", "_count").n, 0);
    wharf_stats_snapshot_free(snapshot);
}

/* The busiest of them are listed, and all are in the sums. */
Test(wharfd_snapshot, any_number_of_tenants_fits_five_megabytes, .init = set_up, .fini = tear_down)
{
    add_tenants(6000);
    struct wharf_stats_snapshot *snapshot = take();
    struct sum seen = look(snapshot, "wharf_chunks_total", "");

    cr_assert_leq(snapshot->text_nbytes, 5000000);
    cr_assert_leq(seen.text_nbytes, 5000000);
    cr_assert_geq(seen.text_nbytes, 4000000);
    cr_assert_geq(seen.n, 3000);
    cr_assert_eq(seen.n, snapshot->n_rows);
    double n = snapshot->n_rows;
    cr_assert_eq(seen.value, n * (6000 + 6000 - n + 1) / 2, "%g", seen.value);
    cr_assert_eq(value_of(snapshot, "wharf_all_chunks_total"), 6000.0 * 6001 / 2);
    cr_assert_eq(value_of(snapshot, "wharf_tenants"), 6000);
    cr_assert_eq(value_of(snapshot, "wharf_tenants_listed"), n);
    wharf_stats_snapshot_free(snapshot);
}

/* Prometheus takes a counter that goes back for one that began anew, and counts it twice. */
Test(wharfd_snapshot, sums_do_not_go_back_when_tenants_are_dropped, .init = set_up,
     .fini = tear_down)
{
    struct wharf_use use = {.n_connections = 1};

    add_tenants(100);
    struct wharf_stats_snapshot *before = take();
    wharf_core_enter(&core);
    for (unsigned i = 0; i < 60; i++) {
        wharf_tenant_give_back(WHARF_LIST_FIRST(&core.tenants.list, struct wharf_tenant, link),
                               &use);
        wharf_tenants_tidy(&core.tenants, &config, wharf_now_ns() + 7200 * S, 1);
    }
    cr_assert_eq(core.tenants.n, 40);
    wharf_core_leave(&core);
    struct wharf_stats_snapshot *after = take();
    cr_assert_eq(look(after, "wharf_connections", "").n, 40);
    cr_assert_eq(value_of(after, "wharf_all_connections"), 40);
    cr_assert_eq(value_of(after, "wharf_all_connections_total"), 100);
    cr_assert_eq(value_of(after, "wharf_all_jobs_total"), value_of(before, "wharf_all_jobs_total"));
    cr_assert_eq(look(after, "wharf_all_job_run_seconds", "_count").value, 100);
    cr_assert_eq(value_of(after, "wharf_tenants_seen_total"), 100);
    wharf_stats_snapshot_free(before);
    wharf_stats_snapshot_free(after);
}
