/* SPDX-License-Identifier: Apache-2.0 */
/* bench_clients.c: clients of a daemon, for measurements (bench_clients.h). */
#include "clientlib/cli/bench_clients.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/message.h"
#include "clientlib/cli/service.h"
#include "clientlib/wharf.h"

enum {
    /* Jobs that a client has in flight at most: what a handle allows if nobody says. */
    MOST = WHARF_CLI_BENCH_MOST_IN_FLIGHT,
    /* wharf_alloc's pieces are multiples of it. */
    ARENA_UNIT = 64,
    MAX_ENGINES = 32,
};
_Static_assert(MOST <= WHARF_DEFAULT_MAX_JOBS, "jobs of a handle");

struct client {
    struct wharf_cli_service service; /* with `wharf` */
    struct wharf_job *jobs;           /* of its chunks, without destinations */
    const struct wharf_cli_bench_chunk **chunks;
    size_t n;
    unsigned depth; /* jobs in flight */
    void *outs[MOST];
    uint64_t n_by[MAX_ENGINES]; /* chunks that each engine ran */
};

struct wharf_cli_bench_clients {
    bool compare;
    unsigned n_rounds;
    unsigned n;
    struct client clients[];
};

/* ---- making -------------------------------------------------------------------------------- */

static size_t round_up(size_t nbytes)
{
    return (nbytes + ARENA_UNIT - 1) / ARENA_UNIT * ARENA_UNIT;
}

static int connect_client(struct client *client, const struct wharf_cli_options *options,
                          size_t chunk_nbytes)
{
    size_t nbytes = client->depth * round_up(chunk_nbytes);

    for (size_t i = 0; i < client->n; i++)
        nbytes += round_up(client->chunks[i]->packed_nbytes);
    /* The measurement is about a daemon: nothing stands in for it. */
    return wharf_cli_service_open(options, 1, nbytes, 0, &client->service) == WHARF_CLI_GO_ON &&
                   client->service.wharf
               ? 0
               : -ENOTCONN;
}

static int load_chunk(struct client *client, size_t at)
{
    const struct wharf_cli_bench_chunk *chunk = client->chunks[at];
    struct wharf_job *job = &client->jobs[at];
    void *in;
    int r = wharf_alloc(client->service.wharf, chunk->packed_nbytes, &in);

    if (r < 0)
        return r;
    memcpy(in, chunk->packed, chunk->packed_nbytes);
    *job = (struct wharf_job)WHARF_JOB_INIT;
    job->codec = chunk->codec;
    job->parameter = chunk->parameter;
    job->flags = chunk->flags;
    job->checksum = chunk->checksum;
    job->in = in;
    job->in_nbytes = chunk->packed_nbytes;
    job->out_avail = chunk->raw_nbytes;
    return 0;
}

static int load_client(struct client *client, size_t chunk_nbytes)
{
    int r = 0;

    for (size_t i = 0; i < client->n && r == 0; i++)
        r = load_chunk(client, i);
    for (unsigned i = 0; i < client->depth && r == 0; i++)
        r = wharf_alloc(client->service.wharf, chunk_nbytes, &client->outs[i]);
    return r;
}

/* Every n-th chunk from `first` on. */
static int share_chunks(struct client *client, const struct wharf_cli_bench_chunk *chunks,
                        size_t n_chunks, size_t first, unsigned n)
{
    client->chunks = calloc(n_chunks / n + 1, sizeof(*client->chunks));
    client->jobs = calloc(n_chunks / n + 1, sizeof(*client->jobs));
    if (!client->chunks || !client->jobs)
        return -ENOMEM;
    for (size_t i = first; i < n_chunks; i += n)
        client->chunks[client->n++] = &chunks[i];
    return 0;
}

int wharf_cli_bench_clients_new(const struct wharf_cli_options *options,
                                const struct wharf_cli_bench_chunk *chunks, size_t n_chunks,
                                size_t chunk_nbytes, unsigned n_clients, unsigned depth,
                                struct wharf_cli_bench_clients **ret_clients)
{
    struct wharf_cli_bench_clients *clients =
        calloc(1, sizeof(*clients) + n_clients * sizeof(clients->clients[0]));
    int r = 0;

    if (!clients)
        return -ENOMEM;
    clients->n_rounds = 1;
    for (; clients->n < n_clients && r == 0; clients->n++) {
        struct client *client = &clients->clients[clients->n];
        client->depth = depth;
        r = share_chunks(client, chunks, n_chunks, clients->n, n_clients);
        if (r == 0)
            r = connect_client(client, options, chunk_nbytes);
        if (r == 0)
            r = load_client(client, chunk_nbytes);
    }
    if (r < 0)
        wharf_cli_bench_clients_free(clients);
    else
        *ret_clients = clients;
    return r;
}

void wharf_cli_bench_clients_free(struct wharf_cli_bench_clients *clients)
{
    for (unsigned i = 0; clients && i < clients->n; i++) {
        wharf_cli_service_close(&clients->clients[i].service);
        free(clients->clients[i].jobs);
        free(clients->clients[i].chunks);
    }
    free(clients);
}

void wharf_cli_bench_clients_compare(struct wharf_cli_bench_clients *clients, bool compare)
{
    clients->compare = compare;
}

void wharf_cli_bench_clients_go_round(struct wharf_cli_bench_clients *clients, unsigned n_rounds)
{
    clients->n_rounds = n_rounds;
}

uint32_t wharf_cli_bench_clients_engines(const struct wharf_cli_bench_clients *clients)
{
    uint32_t engines = 0;

    for (uint32_t engine = 0; engine < MAX_ENGINES; engine++)
        engines |= (uint32_t)(wharf_cli_bench_clients_count(clients, engine) > 0) << engine;
    return engines;
}

uint64_t wharf_cli_bench_clients_count(const struct wharf_cli_bench_clients *clients,
                                       uint32_t engine)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < clients->n; i++)
        n += clients->clients[i].n_by[engine];
    return n;
}

/* ---- decoding ------------------------------------------------------------------------------ */

/* Where a client stands among its chunks, each as often as there are rounds. */
struct turn {
    size_t n_all;
    size_t n_sent;
    size_t n_back;
    unsigned free_outs[MOST];
    unsigned n_free;
};

/* Its jobs carry the number of the chunk and of the destination. */
static uint64_t name_of(size_t chunk, unsigned out)
{
    return (uint64_t)chunk * MOST + out;
}

static int send_some(struct client *client, struct turn *turn)
{
    struct wharf_job jobs[MOST];
    unsigned n = 0;
    int r;

    while (n < turn->n_free && turn->n_sent + n < turn->n_all) {
        unsigned out = turn->free_outs[turn->n_free - 1 - n];
        size_t chunk = (turn->n_sent + n) % client->n;

        jobs[n] = client->jobs[chunk];
        jobs[n].out = client->outs[out];
        jobs[n].user_data = name_of(chunk, out);
        n++;
    }
    if (n == 0)
        return 0;
    r = wharf_submit(client->service.wharf, jobs, n);
    if (r < 0)
        return r == -EAGAIN && turn->n_sent > turn->n_back ? 0 : r;
    turn->n_sent += (unsigned)r;
    turn->n_free -= (unsigned)r;
    return 0;
}

static int check(const struct wharf_cli_bench_clients *clients, struct client *client,
                 const struct wharf_completion *completion)
{
    const struct wharf_cli_bench_chunk *chunk = client->chunks[completion->user_data / MOST];
    const void *out = client->outs[completion->user_data % MOST];

    if (completion->engine != WHARF_ENGINE_AUTO && completion->engine < MAX_ENGINES)
        client->n_by[completion->engine]++;
    if (completion->reason == WHARF_REASON_GPU_CODEC)
        return -EOPNOTSUPP;
    if (completion->result == WHARF_BAD_REQUEST || completion->result == WHARF_QUOTA)
        return -EDQUOT;
    if (completion->result != WHARF_OK || completion->out_nbytes != chunk->raw_nbytes)
        return -EBADMSG;
    return clients->compare && chunk->raw && memcmp(out, chunk->raw, chunk->raw_nbytes) != 0
               ? -EBADMSG
               : 0;
}

static int take_some(const struct wharf_cli_bench_clients *clients, struct client *client,
                     struct turn *turn)
{
    struct wharf_completion completions[MOST];
    int n = wharf_cli_service_wait(&client->service, completions, MOST);
    int r = n < 0 ? n : 0;

    for (int i = 0; i < n; i++) {
        int checked = check(clients, client, &completions[i]);
        r = r < 0 ? r : checked;
        turn->free_outs[turn->n_free++] = completions[i].user_data % MOST;
        turn->n_back++;
    }
    return r;
}

int wharf_cli_bench_clients_decode(void *context, size_t number, unsigned hand)
{
    const struct wharf_cli_bench_clients *clients = context;
    struct client *client = &((struct wharf_cli_bench_clients *)context)->clients[number];
    struct turn turn = {.n_all = client->n * clients->n_rounds, .n_free = client->depth};
    int r = 0;

    (void)hand;
    for (unsigned i = 0; i < client->depth; i++)
        turn.free_outs[i] = i;
    while (turn.n_back < turn.n_all && r == 0) {
        r = send_some(client, &turn);
        if (r == 0)
            r = take_some(clients, client, &turn);
    }
    return r;
}
