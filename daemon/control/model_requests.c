/* SPDX-License-Identifier: Apache-2.0 */
/* model_requests.c: the control messages about models. */
#include <fcntl.h>

#include "daemon/base/cleanup.h"
#include "daemon/control/connection.h"
#include "daemon/control/model.h"
#include "daemon/control/model_requests.h"
#include "daemon/control/region_place.h"
#include "daemon/control/replies.h"
#include "daemon/control/server.h"
#include "daemon/control/server_reap.h"
#include "daemon/core/limits.h"
#include "daemon/core/segment.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/session_end.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/schedule/unqueued_work.h"
#include "encoders/codec.h"

/* ---- registering --------------------------------------------------------------------------- */

/* Checks the request's own values.  Returns 0 or the error. */
static int check_register(struct wharf_connection *connection,
                          const Wharf__RegisterModelRequest *model, const char **ret_text)
{
    const struct wharf_session *session = connection->session;
    const struct wharf_codec_row *codec = wharf_codec_find(model->codec);

    *ret_text = "models were not agreed on: FEATURE_MODELS is missing";
    if (!(connection->features & WHARF_FEATURE_MODELS))
        return EOPNOTSUPP;
    *ret_text = "open the queue first: models belong to it";
    if (!session)
        return EINVAL;
    *ret_text = "the codec has no models that could be registered";
    if (!codec || !codec->ops->models)
        return EINVAL;
    *ret_text = "its number is below 256";
    if (model->model < WHARF_FIRST_MODEL)
        return EINVAL;
    *ret_text = "its number is not below 256 + max_models, the limit of one session";
    if (model->model - WHARF_FIRST_MODEL >= session->n_models)
        return wharf_connection_is_over(connection, WHARF_LIMIT_MODELS);
    *ret_text = "its number is in use";
    if (session->models[model->model - WHARF_FIRST_MODEL].is_there)
        return EEXIST;
    *ret_text = "nbytes is 0";
    return model->nbytes == 0 ? EINVAL : 0;
}

/* Maps the memfd, if it passed the filter and its seals forbid writing and punching holes. */
static int map_memfd(int fd, uint64_t nbytes, struct wharf_segment *ret_segment)
{
    int seals;

    if (fd < 0)
        return fd;
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_WRITE))
        return -EPERM;
    return wharf_segment_adopt(fd, nbytes, true, ret_segment);
}

/* Orders a model.  Until it is made, it is charged like a region. */
static int order(struct wharf_connection *connection, uint32_t id,
                 const Wharf__RegisterModelRequest *model, int fd, const char **ret_text)
{
    struct wharf_server *server = connection->server;
    struct wharf_model_order order = {
        .connection = connection,
        .tenant = connection->tenant,
        .request = id,
        .number = model->model,
        .codec = model->codec,
        .use = {.n_mappings = 1, .memory_nbytes = model->nbytes},
    };
    int r = map_memfd(fd, model->nbytes, &order.segment);

    if (r < 0)
        return r;
    r = wharf_core_charge(&server->core, order.tenant, &order.use, ret_text);
    if (r == 0) {
        r = wharf_model_maker_ask(server->model_maker, &order);
        if (r < 0)
            wharf_core_give_back(&server->core, order.tenant, &order.use);
    }
    if (r < 0)
        wharf_segment_free(&order.segment);
    else
        wharf_connection_hold(connection, WHARF_HOLD_MODEL);
    return r;
}

static const char *error_text(int r)
{
    if (r == -EPERM)
        return "the memfd is not sealed with F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE";
    return wharf_memory_error_text(r);
}

void wharf_model_register(struct wharf_connection *connection, uint32_t id,
                          const Wharf__RegisterModelRequest *model, int fd)
{
    const char *text;
    int code = check_register(connection, model, &text);

    if (code == 0) {
        text = NULL;
        code = -order(connection, id, model, fd, &text);
        text = text ? text : error_text(-code);
    }
    if (code)
        wharf_request_refuse(connection, id, code, "model %u: %s", (unsigned)model->model, text);
}

/* Only the loop thread adds and removes models, and the connection was held: its place is free. */
int wharf_model_enter(struct wharf_core *core, struct wharf_session *session,
                      const struct wharf_model_made *made)
{
    int r = wharf_core_enter_alone(core, session);

    if (r < 0)
        return r;
    wharf_core_leave(core);
    struct wharf_gpu_memory *memory =
        wharf_gpu_memory_new(core, session, made->segment.fd, made->segment.nbytes, true);
    if (memory) {
        memory->is_model = true;
        memory->model = &session->models[made->order.number - WHARF_FIRST_MODEL];
    }
    wharf_core_enter(core);
    session->models[made->order.number - WHARF_FIRST_MODEL] = (struct wharf_session_model){
        .is_there = true,
        .codec = (uint16_t)made->order.codec,
        .segment = made->segment,
        .memory = memory,
        .use = made->use,
    };
    wharf_gpu_memory_add(core, memory);
    wharf_use_add(&session->use, &made->use);
    wharf_core_leave_alone(core, session);
    return 0;
}

/* Enters the model or frees it.  Returns 0 or a negative errno value. */
static int enter_or_free(struct wharf_server *server, const struct wharf_model_made *made)
{
    const struct wharf_connection *connection = made->order.connection;
    int r = made->error;

    if (r == 0)
        r = connection ? wharf_model_enter(&server->core, connection->session, made) : -ECANCELED;
    if (made->error == 0 && r < 0)
        wharf_server_reap_segment(server, &made->segment, made->order.tenant, &made->use);
    return r;
}

static void take_made(struct wharf_server *server, const struct wharf_model_made *made)
{
    struct wharf_connection *connection = made->order.connection;
    int r = enter_or_free(server, made);

    wharf_core_enter(&server->core);
    if (connection)
        wharf_core_charge_unqueued(&server->core, connection->session, made->used_ns);
    wharf_tenant_give_back(made->order.tenant, &made->order.use);
    wharf_core_leave(&server->core);
    if (!connection)
        return;
    wharf_connection_release(connection, WHARF_HOLD_MODEL);
    if (r == 0)
        wharf_request_done(connection, made->order.request);
    else if (r == -ETIME)
        wharf_connection_part_from_blocked(connection);
    else if (r == -EBADMSG)
        wharf_request_refuse(connection, made->order.request, EBADMSG, "model %u is no model: %s",
                             (unsigned)made->order.number, wharf_reason_string(made->reason));
    else
        wharf_request_refuse(connection, made->order.request, -r, "model %u: %s",
                             (unsigned)made->order.number,
                             made->limit ? made->limit : error_text(r));
}

void wharf_model_forget(struct wharf_connection *connection)
{
    struct wharf_server *server = connection->server;
    struct wharf_model_order order;

    if (wharf_model_maker_forget(server->model_maker, connection, &order))
        wharf_server_reap_segment(server, &order.segment, order.tenant, &order.use);
}

void wharf_model_take_made(struct wharf_server *server)
{
    struct wharf_model_made made;

    while (wharf_model_maker_next(server->model_maker, &made))
        take_made(server, &made);
}

/* ---- and its end --------------------------------------------------------------------------- */

int wharf_model_remove(struct wharf_core *core, struct wharf_session *session, uint32_t number,
                       struct wharf_segment *ret_segment, struct wharf_use *ret_use)
{
    int r = wharf_core_enter_alone(core, session);

    if (r < 0)
        return r;
    struct wharf_session_model *model = wharf_session_model(session, number);
    if (!model) {
        r = -ENOENT;
    } else if (model->n_users) {
        r = -EBUSY;
    } else {
        *ret_segment = model->segment;
        *ret_use = model->use;
        wharf_core_part_with(core, session, model->memory, ret_use);
        *model = (struct wharf_session_model){.is_there = false};
    }
    wharf_core_leave_alone(core, session);
    return r;
}

void wharf_model_unregister(struct wharf_connection *connection, uint32_t id, uint32_t number)
{
    struct wharf_server *server = connection->server;
    struct wharf_segment segment;
    struct wharf_use use;
    int r = -ENOENT;

    if (connection->session)
        r = wharf_model_remove(&server->core, connection->session, number, &segment, &use);
    if (r == 0)
        wharf_server_reap_segment(server, &segment, connection->tenant, &use);
    wharf_request_removed(connection, id, r, "model", number);
}
