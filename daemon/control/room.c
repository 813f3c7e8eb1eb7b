/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.c: lets requests wait for quota that is being returned and for the start of processes, and
 * reserves places for operators.
 */
#include "daemon/control/room.h"

#include <errno.h>
#include <poll.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/control/connection.h"
#include "daemon/control/file_requests.h"
#include "daemon/control/queue_use.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"

/* The longest wait. */
#define MOST_NS ((uint64_t)WHARF_NS_PER_S)

/* The first interval between checks; each later one equals the time waited so far. */
#define LOOK_NS (2 * (uint64_t)WHARF_NS_PER_MS)

/* Connections of one tenant that are over its quota while they wait. */
#define MOST_OVER 64

/* Connections that are checked for a hang-up: the newest ones, because a client that closes and
 * opens in turn closes those. */
#define MOST_LOOKED_AT 256

/* Connections of operators that no limit applies to, and the queue that one may have: `wharf drain`
 * and `wharf status` need one job of one page. */
#define MOST_RESERVED 4
#define RESERVED_ENTRIES 16
#define RESERVED_ARENA_NBYTES 65536

/* The approximate processor time of a check, which the tenant is charged. */
#define LOOK_COST_NS (10 * (uint64_t)WHARF_NS_PER_US)

/* What a start of a process costs its tenant, divided by the number of workers, so that these take
 * a sixteenth of the processors at most: running the program, whose libraries have to be linked,
 * takes about 2.5 ms.  And how many a tenant may have at once after a pause, as when all workers of
 * a program begin. */
#define START_NS (40 * (uint64_t)WHARF_NS_PER_MS)
#define MOST_STARTS 32

/* Its socket, and up to three descriptors in flight to the client. */
static const struct wharf_use use_of_one = {.n_connections = 1, .n_descriptors = 4};

/* ---- what is coming back ------------------------------------------------------------------- */

/* Whether a connection of the tenant has hung up, which the loop has not handled yet. */
static bool has_hung_up(const struct wharf_tenant *tenant)
{
    struct pollfd fds[MOST_LOOKED_AT];
    nfds_t n = 0;

    for (const struct wharf_list *link = tenant->connections.prev;
         link != &tenant->connections && n < MOST_LOOKED_AT; link = link->prev)
        fds[n++] = (struct pollfd){
            .fd = WHARF_LIST_ENTRY(link, struct wharf_connection, tenant_link)->fd,
            .events = POLLRDHUP,
        };
    return poll(fds, n, 0) > 0;
}

static bool is_coming(const struct wharf_connection *connection)
{
    struct wharf_core *core = &connection->server->core;
    const struct wharf_tenant *tenant = connection->tenant;

    wharf_loop_charge(connection->server->loop, tenant->loop_party, LOOK_COST_NS);
    if (tenant->n_endings > 0)
        return true;
    wharf_core_enter(core);
    bool is_leaving = tenant->n_gpu_leaving > 0;
    wharf_core_leave(core);
    return is_leaving || has_hung_up(tenant);
}

/* ---- waiting ------------------------------------------------------------------------------- */

static void look_again(struct wharf_timer *timer);

static void wait_on(struct wharf_connection *connection)
{
    uint64_t now_ns = wharf_now_ns(), waited_ns = now_ns - connection->room_since_ns;

    wharf_timer_set(connection->server->loop, &connection->room_timer,
                    now_ns + (waited_ns > LOOK_NS ? waited_ns : LOOK_NS), look_again);
}

static bool may_wait(struct wharf_connection *connection)
{
    uint64_t now_ns = wharf_now_ns();

    if (connection->room_since_ns && now_ns - connection->room_since_ns >= MOST_NS)
        return false;
    if (!is_coming(connection))
        return false;
    if (!connection->room_since_ns)
        connection->room_since_ns = now_ns;
    return true;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* Whether the request is charged, and the least use that it needs. */
static bool is_charged(const struct wharf_connection *connection, const Wharf__Request *request,
                       struct wharf_use *ret_use)
{
    struct wharf_region region = {.is_there = true};
    struct wharf_use start;

    switch (request->body_case) {
    case WHARF__REQUEST__BODY_OPEN_QUEUE:
        *ret_use = wharf_request_queue_use(connection, request->open_queue);
        return true;
    case WHARF__REQUEST__BODY_REGISTER_MEMORY:
        region.is_device = request->register_memory->kind == WHARF__MEMORY_KIND__MEMORY_KIND_GPU;
        region.is_file = request->register_memory->kind == WHARF__MEMORY_KIND__MEMORY_KIND_FILE;
        region.segment.nbytes = request->register_memory->nbytes;
        *ret_use = wharf_region_use(&region);
        if (!wharf_files_need_process(connection, request))
            return true;
        start = wharf_files_start_use(connection);
        wharf_use_add(ret_use, &start);
        return true;
    case WHARF__REQUEST__BODY_REGISTER_MODEL:
        *ret_use = (struct wharf_use){
            .n_descriptors = 2, .n_mappings = 1, .memory_nbytes = request->register_model->nbytes};
        return true;
    default:
        return false;
    }
}

/* Whether the request would start a process before its tenant's next turn; then holds it until
 * that. */
static bool awaits_start(struct wharf_connection *connection, const Wharf__Request *request)
{
    struct wharf_tenant *tenant = connection->tenant;
    uint32_t n_workers = connection->server->core.workers.n_workers;
    uint64_t now_ns = wharf_now_ns(), start_ns = START_NS / (n_workers ? n_workers : 1);

    if (!wharf_files_need_process(connection, request))
        return false;
    if (tenant->starts_paid_ns < now_ns)
        tenant->starts_paid_ns = now_ns;
    uint64_t next_ns = tenant->starts_paid_ns + start_ns;
    if (next_ns <= now_ns + MOST_STARTS * start_ns) {
        tenant->starts_paid_ns = next_ns;
        return false;
    }
    wharf_connection_hold(connection, WHARF_HOLD_ROOM);
    wharf_timer_set(connection->server->loop, &connection->room_timer,
                    next_ns - MOST_STARTS * start_ns, look_again);
    return true;
}

bool wharf_room_awaits(struct wharf_connection *connection, const Wharf__Request *request)
{
    struct wharf_core *core = &connection->server->core;
    struct wharf_use use;

    if (!is_charged(connection, request, &use))
        return false;
    wharf_core_enter(core);
    bool fits = wharf_tenant_has_room(connection->tenant, &use, NULL);
    wharf_core_leave(core);
    if (fits || !may_wait(connection)) {
        connection->room_since_ns = 0;
        return awaits_start(connection, request);
    }
    wharf_connection_hold(connection, WHARF_HOLD_ROOM);
    wait_on(connection);
    return true;
}

/* ---- reserved places ----------------------------------------------------------------------- */

static bool reserve(struct wharf_connection *connection, const char *text)
{
    struct wharf_server *server = connection->server;

    if (!connection->reserved_text && connection->is_operator &&
        server->n_reserved < MOST_RESERVED) {
        connection->reserved_text = text ? text : "over a limit of this user";
        server->n_reserved++;
    }
    return connection->reserved_text != NULL;
}

static bool is_small(const Wharf__OpenQueueRequest *open)
{
    return open->n_entries <= RESERVED_ENTRIES && open->arena_nbytes <= RESERVED_ARENA_NBYTES;
}

bool wharf_room_reserve_queue(struct wharf_connection *connection,
                              const Wharf__OpenQueueRequest *open, const char *text)
{
    return is_small(open) && reserve(connection, text);
}

const char *wharf_room_refuses_queue(const struct wharf_connection *connection,
                                     const Wharf__OpenQueueRequest *open)
{
    return is_small(open) ? NULL : connection->reserved_text;
}

/* ---- connections --------------------------------------------------------------------------- */

int wharf_room_charge(struct wharf_connection *connection, const char **ret_text)
{
    struct wharf_core *core = &connection->server->core;
    struct wharf_tenant *tenant = connection->tenant;

    wharf_core_enter(core);
    bool fits = wharf_tenant_has_room(tenant, &use_of_one, NULL);
    wharf_core_leave(core);
    connection->is_over = !fits && tenant->n_over < MOST_OVER && may_wait(connection);
    wharf_core_enter(core);
    int r = connection->is_over ? wharf_tenant_charge_over_quota(tenant, &use_of_one, ret_text)
                                : wharf_tenant_charge(tenant, &use_of_one, ret_text);
    if (r < 0)
        connection->is_over = false;
    if (r < 0 && reserve(connection, *ret_text)) {
        wharf_tenant_charge_anyway(tenant, &use_of_one);
        connection->is_over = !fits;
        r = 0;
    }
    if (r == 0)
        connection->use = use_of_one;
    if (r == 0 && !wharf_connection_is_awaiting_room(connection))
        tenant->stats.n_connections++;
    wharf_core_leave(core);
    tenant->n_over += connection->is_over;
    return r == 0 && connection->is_over ? -EINPROGRESS : r;
}

void wharf_room_await(struct wharf_connection *connection)
{
    wait_on(connection);
}

void wharf_room_forget(struct wharf_connection *connection)
{
    wharf_timer_clear(connection->server->loop, &connection->room_timer);
    connection->server->n_reserved -= connection->reserved_text != NULL;
    connection->reserved_text = NULL;
    connection->tenant->n_over -= connection->is_over;
    connection->is_over = false;
}

struct wharf_use wharf_room_use_over(const struct wharf_tenant *tenant)
{
    return (struct wharf_use){
        .n_connections = tenant->n_over * use_of_one.n_connections,
        .n_descriptors = tenant->n_over * use_of_one.n_descriptors,
    };
}

/* Whether there is room for it beside all that are not over the quota. */
static bool take_room(struct wharf_connection *connection)
{
    struct wharf_core *core = &connection->server->core;
    struct wharf_tenant *tenant = connection->tenant;
    struct wharf_use over = wharf_room_use_over(tenant);

    wharf_core_enter(core);
    bool fits = wharf_tenant_has_room(tenant, &use_of_one, &over);
    tenant->stats.n_connections += fits;
    wharf_core_leave(core);
    if (!fits)
        return false;
    tenant->n_over--;
    connection->is_over = false;
    connection->room_since_ns = 0;
    return true;
}

/* Refuses a connection, or gives it a reserved place. */
static void refuse(struct wharf_connection *connection)
{
    struct wharf_core *core = &connection->server->core;
    const char *text = NULL;

    /* It says which limit, counts it, and cannot be granted: the connection itself is charged. */
    wharf_core_enter(core);
    int r = wharf_tenant_charge(connection->tenant, &use_of_one, &text);
    if (r == 0)
        wharf_tenant_give_back(connection->tenant, &use_of_one);
    bool is_reserved = reserve(connection, text);
    connection->tenant->stats.n_connections += is_reserved;
    wharf_core_leave(core);
    if (is_reserved)
        wharf_connection_let_in(connection);
    else
        wharf_connection_refuse(connection, EDQUOT, "%s",
                                text ? text : "over a limit of this user");
}

static void look_again(struct wharf_timer *timer)
{
    struct wharf_connection *connection =
        WHARF_LIST_ENTRY(timer, struct wharf_connection, room_timer);

    if (!wharf_connection_is_awaiting_room(connection))
        wharf_connection_release(connection, WHARF_HOLD_ROOM);
    else if (take_room(connection))
        wharf_connection_let_in(connection);
    else if (may_wait(connection))
        wait_on(connection);
    else
        refuse(connection);
}
