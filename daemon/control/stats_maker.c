/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_maker.c: makes snapshots in a thread, and serves pages of them.
 */
#include "daemon/control/stats_maker.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/background_queue.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/control/connection.h"
#include "daemon/control/replies.h"
#include "daemon/control/stats_snapshot.h"
#include "daemon/control/stats_text.h"

struct wharf_stats_maker {
    wharf_stats_text_fn *answer_text; /* to those who have asked for one */
    struct wharf_server *server;
    const char *io;
    struct wharf_background_queue background;
    struct wharf_list snapshots;    /* that are read, the one that was asked longest ago first */
    size_t kept_nbytes;             /* of these */
    struct wharf_list asking;       /* connections, for the next one */
    struct wharf_list served;       /* connections, by the one that is being made */
    struct wharf_list asking_texts; /* scrapes, likewise */
    struct wharf_list served_texts;
    bool is_making;
    uint64_t last_number;
};

static struct wharf_stats_snapshot *snapshot_of(struct wharf_list *link)
{
    return WHARF_LIST_ENTRY(link, struct wharf_stats_snapshot, link);
}

static void run(struct wharf_background_queue *background, struct wharf_list *link)
{
    struct wharf_stats_maker *maker =
        WHARF_LIST_ENTRY(background, struct wharf_stats_maker, background);

    wharf_stats_snapshot_make(snapshot_of(link), &maker->server->core, maker->io,
                              maker->server->started_ns);
}

int wharf_stats_maker_new(struct wharf_server *server, struct wharf_stats_maker **ret_maker)
{
    struct wharf_stats_maker *maker = calloc(1, sizeof(*maker));

    if (!maker)
        return -ENOMEM;
    maker->server = server;
    maker->io = wharf_loop_kind(server->loop) == WHARF_LOOP_URING ? "io_uring" : "epoll";
    wharf_list_init(&maker->snapshots);
    wharf_list_init(&maker->asking);
    wharf_list_init(&maker->served);
    wharf_list_init(&maker->asking_texts);
    wharf_list_init(&maker->served_texts);
    maker->background =
        (struct wharf_background_queue){.loop = server->loop, .name = "wharf-stats", .run = run};
    int r = wharf_background_queue_start(&maker->background);
    if (r < 0)
        free(maker);
    else
        *ret_maker = maker;
    return r;
}

static void free_all(struct wharf_list *snapshots)
{
    WHARF_LIST_FOR(link, snapshots)
    wharf_stats_snapshot_free(snapshot_of(link));
}

void wharf_stats_maker_free(struct wharf_stats_maker *maker)
{
    if (!maker)
        return;
    wharf_background_queue_stop(&maker->background);
    free_all(&maker->background.done);
    free_all(&maker->snapshots);
    free(maker);
}

/* ---- readers ------------------------------------------------------------------------------- */

/* It is not kept any more; what is left of it knows its readers. */
static void let_go(struct wharf_stats_maker *maker, struct wharf_stats_snapshot *snapshot)
{
    wharf_list_remove(&snapshot->link);
    maker->kept_nbytes -= snapshot->nbytes;
    wharf_stats_snapshot_drop_pages(snapshot);
    snapshot->error = -ESTALE;
}

static void release(struct wharf_stats_maker *maker, struct wharf_stats_snapshot *snapshot)
{
    if (snapshot->n_readers > 0)
        return;
    let_go(maker, snapshot);
    wharf_stats_snapshot_free(snapshot);
}

static void keep(struct wharf_stats_maker *maker, struct wharf_stats_snapshot *snapshot)
{
    while (!wharf_list_is_empty(&maker->snapshots) &&
           maker->kept_nbytes + snapshot->nbytes > WHARF_STATS_MOST_KEPT_NBYTES)
        let_go(maker, snapshot_of(maker->snapshots.next));
    wharf_list_append(&maker->snapshots, &snapshot->link);
    maker->kept_nbytes += snapshot->nbytes;
}

static void read_no_more(struct wharf_connection *connection)
{
    struct wharf_stats_snapshot *snapshot = connection->stats;

    if (!snapshot)
        return;
    connection->stats = NULL;
    snapshot->n_readers--;
    release(connection->server->stats_maker, snapshot);
}

static void send_page(struct wharf_connection *connection, uint32_t request, size_t page)
{
    struct wharf_stats_snapshot *snapshot = connection->stats;
    size_t from = page ? snapshot->ends[page - 1] : 0;
    bool is_last = page + 1 == snapshot->n_pages;

    wharf_list_remove(&snapshot->link);
    wharf_list_append(&connection->server->stats_maker->snapshots, &snapshot->link);
    wharf_connection_send_stats(connection, request, snapshot->bytes + from,
                                snapshot->ends[page] - from);
    if (is_last)
        read_no_more(connection);
}

/* ---- making -------------------------------------------------------------------------------- */

/* Without memory those who asked are told. */
static void refuse_all(struct wharf_list *connections, int error)
{
    struct wharf_connection *connection;

    while ((connection = WHARF_LIST_FIRST(connections, struct wharf_connection, stats_link))) {
        wharf_list_remove(&connection->stats_link);
        wharf_connection_release_stats(connection);
        wharf_request_refuse(connection, connection->stats_request, -error,
                             "the daemon has no memory for its statistics");
    }
}

/* Gives all scrapes the text; NULL: there is none. */
static void answer_all(const struct wharf_stats_maker *maker, struct wharf_list *scrapes,
                       struct wharf_stats_text *text)
{
    while (!wharf_list_is_empty(scrapes)) {
        struct wharf_list *link = scrapes->next;
        wharf_list_remove(link);
        maker->answer_text(link, text);
    }
}

/* Begins the next one, if somebody asked for it. */
static void start(struct wharf_stats_maker *maker)
{
    struct wharf_stats_snapshot *snapshot;

    if (maker->is_making ||
        (wharf_list_is_empty(&maker->asking) && wharf_list_is_empty(&maker->asking_texts)))
        return;
    snapshot = wharf_stats_snapshot_new(maker->last_number + 1);
    if (!snapshot) {
        refuse_all(&maker->asking, -ENOMEM);
        answer_all(maker, &maker->asking_texts, NULL);
        return;
    }
    maker->last_number++;
    maker->is_making = true;
    wharf_list_splice(&maker->served, &maker->asking);
    snapshot->wants_text = !wharf_list_is_empty(&maker->asking_texts);
    wharf_list_splice(&maker->served_texts, &maker->asking_texts);
    wharf_background_queue_add(&maker->background, &snapshot->link);
}

static void serve(struct wharf_stats_maker *maker, struct wharf_stats_snapshot *snapshot)
{
    struct wharf_connection *connection;

    /* Kept while they are answered. */
    snapshot->n_readers++;
    keep(maker, snapshot);
    while ((connection = WHARF_LIST_FIRST(&maker->served, struct wharf_connection, stats_link))) {
        wharf_list_remove(&connection->stats_link);
        connection->stats = snapshot;
        snapshot->n_readers++;
        wharf_connection_release_stats(connection);
        send_page(connection, connection->stats_request, 0);
    }
    answer_all(maker, &maker->served_texts, snapshot->text);
    wharf_stats_text_free(WHARF_STEAL(snapshot->text));
    snapshot->n_readers--;
    release(maker, snapshot);
}

void wharf_stats_take_made(struct wharf_server *server)
{
    struct wharf_stats_maker *maker = server->stats_maker;
    struct wharf_list *link;

    while ((link = wharf_background_queue_take(&maker->background))) {
        struct wharf_stats_snapshot *snapshot = snapshot_of(link);
        maker->is_making = false;
        if (snapshot->error)
            refuse_all(&maker->served, snapshot->error);
        serve(maker, snapshot);
        start(maker);
    }
}

/* ---- requests ------------------------------------------------------------------------------ */

void wharf_stats_ask(struct wharf_connection *connection, uint32_t request)
{
    struct wharf_stats_maker *maker = connection->server->stats_maker;

    read_no_more(connection);
    connection->stats_request = request;
    wharf_connection_hold_stats(connection);
    wharf_list_append(&maker->asking, &connection->stats_link);
    start(maker);
}

void wharf_stats_ask_text(struct wharf_server *server, struct wharf_list *link,
                          wharf_stats_text_fn *answer)
{
    server->stats_maker->answer_text = answer;
    wharf_list_append(&server->stats_maker->asking_texts, link);
    start(server->stats_maker);
}

int wharf_stats_send(struct wharf_connection *connection, uint32_t request, uint64_t first)
{
    size_t page;

    if (!connection->stats)
        return -EINVAL;
    if (connection->stats->error)
        return connection->stats->error;
    if (!wharf_stats_snapshot_page(connection->stats, first, &page))
        return -EINVAL;
    send_page(connection, request, page);
    return 0;
}

void wharf_stats_forget(struct wharf_connection *connection)
{
    wharf_list_remove(&connection->stats_link);
    read_no_more(connection);
}
