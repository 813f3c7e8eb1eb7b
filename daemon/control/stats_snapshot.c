/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_snapshot.c: takes a snapshot of all tenants in bounded steps.
 *
 * The walk holds a position in the list of tenants between two holds of the lock; n_walks keeps
 * tenants from being dropped meanwhile.
 */
#include "daemon/control/stats_snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/process_stats.h"
#include "daemon/control/stats_fill.h"
#include "daemon/control/stats_page.h"
#include "daemon/control/stats_text.h"
#include "daemon/core/core.h"
#include "daemon/core/stats.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/session_end.h"

/* Tenants that are looked at, or copied, under one hold of the core lock: some 4 KiB of counters
 * each, which other processors have written. */
#define MOST_VISITS 16

/* What everybody else has of the core lock and of this thread's processor between two steps. */
#define PAUSE_NS 50000

/* Pages that are made between two pauses. */
#define MOST_PAGES 2

/* A tenant, as long as nobody is dropped. */
struct seen {
    const struct wharf_tenant *tenant;
    uint64_t busy_ns;
};

struct making {
    struct wharf_stats_snapshot *snapshot;
    struct wharf_core *core;
    struct wharf_stats_source source;
    struct wharf_stats_row all;
    struct wharf_stats_page page;
    struct seen *seen;
    size_t n_seen, n_seen_room;
    size_t n_rows_room;
    uint64_t n_visits; /* of this step */
    uint64_t most_histograms;
};

static void pause_for_others(void)
{
    const struct timespec time = {.tv_nsec = PAUSE_NS};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* An array with room for one more; false without memory. */
static bool grow(void **array, size_t *n_room, size_t n, size_t nbytes)
{
    if (n < *n_room)
        return true;
    size_t more = *n_room ? 2 * *n_room : 64;
    while (more <= n)
        more *= 2;
    void *larger = reallocarray(*array, more, nbytes);
    if (!larger)
        return false;
    *array = larger;
    *n_room = more;
    return true;
}

/* ---- steps under the core lock ------------------------------------------------------------ */

static void begin_step(struct making *making)
{
    wharf_core_enter(making->core);
    making->snapshot->n_steps++;
    making->n_visits = 0;
}

static void end_step(struct making *making)
{
    struct wharf_stats_snapshot *snapshot = making->snapshot;

    wharf_core_leave(making->core);
    snapshot->n_visits += making->n_visits;
    if (making->n_visits > snapshot->most_visits)
        snapshot->most_visits = making->n_visits;
}

/* From here until end_walk no tenant is dropped.  Those that come later are not in the snapshot. */
static void begin_walk(struct making *making)
{
    struct wharf_core *core = making->core;

    begin_step(making);
    /* What leases have done counts too. */
    wharf_core_recall_all(core, NULL);
    core->tenants.n_walks++;
    making->all.stats = core->tenants.dropped;
    making->source.n_tenants = core->tenants.n;
    making->source.n_tenants_seen = core->tenants.last_number;
    making->most_histograms = core->config.n_histogram_tenants;
    wharf_stats_copy_daemon(core, &making->source.daemon);
    end_step(making);
}

static void end_walk(struct making *making)
{
    begin_step(making);
    making->core->tenants.n_walks--;
    end_step(making);
}

static uint64_t busy_ns_of(const struct wharf_tenant *tenant)
{
    uint64_t ns = 0;

    for (unsigned i = 0; i < WHARF_STATS_N_ENGINES; i++)
        ns += tenant->stats.engines[i].busy_ns;
    return ns;
}

/* The next tenants, as many as there is room for; returns whether there are more. */
static bool see_some(struct making *making, struct wharf_list **at)
{
    struct wharf_list *end = &making->core->tenants.list;
    bool is_end = false;

    begin_step(making);
    if (!*at)
        *at = end;
    for (; making->n_visits < MOST_VISITS && making->n_seen < making->n_seen_room;
         making->n_visits++) {
        struct wharf_tenant *tenant = WHARF_LIST_ENTRY((*at)->next, struct wharf_tenant, link);
        is_end = (*at)->next == end || tenant->number > making->source.n_tenants_seen;
        if (is_end)
            break;
        *at = &tenant->link;
        wharf_stats_add_tenant(tenant, &making->all);
        making->seen[making->n_seen++] = (struct seen){tenant, busy_ns_of(tenant)};
    }
    end_step(making);
    return !is_end;
}

static int see_all(struct making *making)
{
    struct wharf_list *at = NULL;

    do {
        pause_for_others();
        void *seen = making->seen;
        if (!grow(&seen, &making->n_seen_room, making->n_seen, sizeof(*making->seen)))
            return -ENOMEM;
        making->seen = seen;
    } while (see_some(making, &at));
    return 0;
}

/* ---- which tenants have samples of their own ----------------------------------------------- */

/* The busiest first; of others those that have been there for longest. */
static int compare_busy(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    if (x->busy_ns != y->busy_ns)
        return x->busy_ns > y->busy_ns ? -1 : 1;
    return x->tenant->number < y->tenant->number ? -1 : 1;
}

/* Up to MOST_VISITS from `first` on.  Returns how many. */
static size_t copy_some(struct making *making, size_t first)
{
    struct wharf_stats_row *rows = making->source.rows;

    begin_step(making);
    for (; making->n_visits < MOST_VISITS && first + making->n_visits < making->n_seen;
         making->n_visits++)
        wharf_stats_copy_tenant(making->seen[first + making->n_visits].tenant,
                                &rows[making->source.n_rows + making->n_visits]);
    size_t n = making->n_visits;
    end_step(making);
    return n;
}

static bool has_room_for_rows(struct making *making)
{
    void *rows = making->source.rows;
    bool result = grow(&rows, &making->n_rows_room, making->source.n_rows + MOST_VISITS - 1,
                       sizeof(*making->source.rows));

    making->source.rows = rows;
    return result;
}

/* Takes those of the rows that were copied whose text fits; false: one does not. */
static bool take_rows(struct making *making, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct wharf_stats_row *row = &making->source.rows[making->source.n_rows];
        row->has_histograms = making->source.n_rows < making->most_histograms;
        size_t nbytes = wharf_stats_row_text_nbytes(&making->source, row, &making->page);
        if (making->snapshot->text_nbytes + nbytes > WHARF_STATS_MOST_TEXT_NBYTES)
            return false;
        making->snapshot->text_nbytes += nbytes;
        making->source.n_rows++;
    }
    return true;
}

static int copy_busiest(struct making *making)
{
    size_t n = 0;

    if (making->n_seen > 1)
        qsort(making->seen, making->n_seen, sizeof(*making->seen), compare_busy);
    making->snapshot->text_nbytes = wharf_stats_other_text_nbytes(&making->source, &making->page);
    for (size_t first = 0; first < making->n_seen; first += n) {
        if (!has_room_for_rows(making))
            return -ENOMEM;
        pause_for_others();
        n = copy_some(making, first);
        if (!take_rows(making, n))
            break;
    }
    making->snapshot->n_rows = making->source.n_rows;
    return 0;
}

static int walk(struct making *making)
{
    begin_walk(making);
    int r = see_all(making);
    if (r == 0)
        r = copy_busiest(making);
    end_walk(making);
    return r;
}

/* ---- pages --------------------------------------------------------------------------------- */

static int keep_page(struct wharf_stats_snapshot *snapshot, const Wharf__StatsReply *stats)
{
    void *ends = snapshot->ends, *bytes = snapshot->bytes;
    size_t nbytes = protobuf_c_message_get_packed_size(&stats->base);
    bool is_good =
        grow(&ends, &snapshot->n_pages_room, snapshot->n_pages, sizeof(*snapshot->ends)) &&
        grow(&bytes, &snapshot->n_room, snapshot->nbytes + WHARF_CONTROL_MAX_NBYTES, 1);

    snapshot->ends = ends;
    snapshot->bytes = bytes;
    if (!is_good)
        return -ENOMEM;
    protobuf_c_message_pack(&stats->base, snapshot->bytes + snapshot->nbytes);
    snapshot->nbytes += nbytes;
    snapshot->ends[snapshot->n_pages++] = snapshot->nbytes;
    return 0;
}

static int make_pages(struct making *making)
{
    struct wharf_stats_snapshot *snapshot = making->snapshot;
    struct wharf_stats_page *page = &making->page;
    struct wharf_stats_cursor cursor = {.family = 0};
    bool goes_on = true;
    int r = 0;

    while (goes_on && r == 0) {
        wharf_stats_page_init(page, 0);
        goes_on = wharf_stats_fill(page, &making->source, &cursor);
        page->stats.n_families = page->n_families;
        page->stats.next =
            goes_on ? wharf_stats_snapshot_place(snapshot, snapshot->n_pages + 1) : 0;
        r = keep_page(snapshot, &page->stats);
        if (snapshot->n_pages % MOST_PAGES == 0)
            pause_for_others();
    }
    return r;
}

/* It is kept for a while. */
static void trim(struct wharf_stats_snapshot *snapshot)
{
    uint8_t *bytes = realloc(snapshot->bytes, snapshot->nbytes);

    if (bytes)
        snapshot->bytes = bytes;
}

/* ---- all of it ----------------------------------------------------------------------------- */

void wharf_stats_snapshot_make(struct wharf_stats_snapshot *snapshot, struct wharf_core *core,
                               const char *io, uint64_t started_ns)
{
    struct making *making = calloc(1, sizeof(*making));

    snapshot->error = -ENOMEM;
    if (!making)
        return;
    making->snapshot = snapshot;
    making->core = core;
    making->all.has_histograms = true;
    making->source.all = &making->all;
    making->source.daemon.io = io;
    wharf_process_stats_read(&making->source.daemon.process);
    making->source.daemon.uptime_s = 1e-9 * (double)(wharf_now_ns() - started_ns);
    snapshot->error = walk(making);
    if (snapshot->error == 0)
        snapshot->error = make_pages(making);
    free(making->seen);
    free(making->source.rows);
    free(making);
    if (snapshot->error) {
        wharf_stats_snapshot_drop_pages(snapshot);
        return;
    }
    trim(snapshot);
    if (snapshot->wants_text)
        snapshot->text = wharf_stats_text_new(snapshot->bytes, snapshot->ends, snapshot->n_pages);
}

struct wharf_stats_snapshot *wharf_stats_snapshot_new(uint64_t number)
{
    struct wharf_stats_snapshot *snapshot = calloc(1, sizeof(*snapshot));

    if (!snapshot)
        return NULL;
    wharf_list_init(&snapshot->link);
    snapshot->number = number;
    return snapshot;
}

void wharf_stats_snapshot_drop_pages(struct wharf_stats_snapshot *snapshot)
{
    free(snapshot->bytes);
    free(snapshot->ends);
    snapshot->bytes = NULL;
    snapshot->ends = NULL;
    snapshot->n_pages = snapshot->nbytes = snapshot->n_room = snapshot->n_pages_room = 0;
}

void wharf_stats_snapshot_free(struct wharf_stats_snapshot *snapshot)
{
    if (!snapshot)
        return;
    wharf_stats_snapshot_drop_pages(snapshot);
    wharf_stats_text_free(snapshot->text);
    free(snapshot);
}

/* Later pages have higher places, and so have later snapshots'. */
#define PAGE_NBITS 24

uint64_t wharf_stats_snapshot_place(const struct wharf_stats_snapshot *snapshot, size_t page)
{
    return snapshot->number << PAGE_NBITS | page;
}

bool wharf_stats_snapshot_page(const struct wharf_stats_snapshot *snapshot, uint64_t first,
                               size_t *ret_page)
{
    size_t page = (size_t)(first & (((uint64_t)1 << PAGE_NBITS) - 1));

    if (first >> PAGE_NBITS != snapshot->number || page == 0 || page >= snapshot->n_pages)
        return false;
    *ret_page = page;
    return true;
}
