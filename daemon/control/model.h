/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h: the model maker, a thread that prepares the models that clients register.
 *
 * A model arrives as a memfd that is sealed against writing, so it needs no copy.  Jobs use its
 * image (struct wharf_model_ops of encoders/codec.h), which is the daemon's own memory, made and
 * charged once.  Making a large one takes tenths of a second.  So a thread does that, for one
 * tenant after the other; the requesting connection is held meanwhile.
 */
#ifndef WHARF_DAEMON_CONTROL_MODEL_H
#define WHARF_DAEMON_CONTROL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/segment.h"
#include "daemon/core/tenant.h"
#include "proto/wharf_result.h"

struct wharf_connection;
struct wharf_core;
struct wharf_loop;
struct wharf_session;

/* An order to make an image. */
struct wharf_model_order {
    struct wharf_connection *connection; /* NULL: it is gone */
    struct wharf_tenant *tenant;
    uint32_t request; /* the request to answer */
    uint32_t number;
    uint32_t codec;               /* one that has models */
    struct wharf_segment segment; /* a memfd that nobody can write, mapped; owned */
    struct wharf_use use;         /* charged for it, until its answer is taken */
};

/* The result of an order. */
struct wharf_model_made {
    struct wharf_model_order order; /* its segment is freed */
    int error;                      /* 0, -EBADMSG with `reason`, -EDQUOT, -ENOMEM or another */
    const char *limit;              /* with -EDQUOT, the text of wharf_tenant_charge */
    enum wharf_reason reason;
    int64_t used_ns;              /* processor time for making it */
    struct wharf_segment segment; /* if error is 0 */
    struct wharf_use use;         /* likewise: charged */
};

struct wharf_model_maker;

/* Starts the thread, which wakes the loop when it has made something.  0 or -errno. */
int wharf_model_maker_new(struct wharf_core *core, struct wharf_loop *loop,
                          struct wharf_model_maker **ret_maker);

/* Ends it, and frees results that were not taken.  NULL is allowed. */
void wharf_model_maker_free(struct wharf_model_maker *maker);

/* Takes an order.  0 or -ENOMEM: then it stays the caller's. */
int wharf_model_maker_ask(struct wharf_model_maker *maker, const struct wharf_model_order *order);

/* The connection, which has at most one order, is gone.  If the order was not started, returns it
 * and true; otherwise its result will have a NULL connection. */
bool wharf_model_maker_forget(struct wharf_model_maker *maker,
                              const struct wharf_connection *connection,
                              struct wharf_model_order *ret_order);

/* Takes the next result; its order is still charged.  Returns whether there was one. */
bool wharf_model_maker_next(struct wharf_model_maker *maker, struct wharf_model_made *ret_made);

#endif
