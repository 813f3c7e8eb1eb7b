/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h: models that clients register, once for many jobs; and the thread that makes them ready.
 *
 * A model comes as a memfd that nobody can write any more, so it needs no copy.  What jobs use is
 * its image (struct wharf_model_ops of encoders/codec.h), in memory of the daemon's own that is
 * made and charged once.  Making one of the largest takes some tenths of a second, so a thread of
 * its own does that, for one tenant after the other; the connection that asked is not read from
 * meanwhile.
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

/* What is to be made of what. */
struct wharf_model_order {
    struct wharf_connection *connection; /* NULL: it is gone */
    struct wharf_tenant *tenant;
    uint32_t request; /* whose reply is waited for */
    uint32_t number;
    uint32_t codec;               /* one that has models */
    struct wharf_segment segment; /* a memfd that nobody can write, mapped; owned */
    struct wharf_use use;         /* charged for it, until its answer is taken */
};

/* What became of it. */
struct wharf_model_made {
    struct wharf_model_order order; /* its segment is freed */
    int error;                      /* 0; -EBADMSG and the reason, -EDQUOT, -ENOMEM or another */
    const char *limit;              /* with -EDQUOT, what wharf_tenant_charge says */
    enum wharf_reason reason;
    int64_t used_ns;              /* making it has taken */
    struct wharf_segment segment; /* if error is 0 */
    struct wharf_use use;         /* likewise: charged */
};

struct wharf_model_maker;

/* Starts the thread, which wakes the loop when it has made something.  0 or -errno. */
int wharf_model_maker_new(struct wharf_core *core, struct wharf_loop *loop,
                          struct wharf_model_maker **ret_maker);

/* Ends it; what was made and not taken is freed.  NULL is allowed. */
void wharf_model_maker_free(struct wharf_model_maker *maker);

/* Takes an order.  0 or -ENOMEM: then it stays the caller's. */
int wharf_model_maker_ask(struct wharf_model_maker *maker, const struct wharf_model_order *order);

/* The connection is gone, which has one order at most.  If that is not begun it is the caller's
 * again: returns true.  Else what is made comes with NULL in the connection's place. */
bool wharf_model_maker_forget(struct wharf_model_maker *maker,
                              const struct wharf_connection *connection,
                              struct wharf_model_order *ret_order);

/* What was made, one at a time; its order is still charged.  Returns whether there was something.
 */
bool wharf_model_maker_next(struct wharf_model_maker *maker, struct wharf_model_made *ret_made);

#endif
