/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls about the daemon itself. */
#include <errno.h>
#include <stdlib.h>

#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "clientlib/link.h"
#include "clientlib/request.h"

static int send_ping(struct wharf *wharf, void *data)
{
    Wharf__PingRequest ping = WHARF__PING_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    (void)data;
    request.body_case = WHARF__REQUEST__BODY_PING;
    request.ping = &ping;
    return wharf_client_link_send(&wharf->link, &request, NULL, 0);
}

int wharf_ping(struct wharf *wharf)
{
    return wharf_client_ask(wharf, send_ping, NULL);
}

static int send_drain(struct wharf *wharf, void *data)
{
    Wharf__DrainRequest drain = WHARF__DRAIN_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    uint64_t *n_ups = data;

    /* Asked for once: the daemon that answers next is another one, and may stay. */
    if (*n_ups && wharf->link.n_ups != *n_ups)
        return 1;
    *n_ups = wharf->link.n_ups;
    request.body_case = WHARF__REQUEST__BODY_DRAIN;
    request.drain = &drain;
    return wharf_client_link_send(&wharf->link, &request, NULL, 0);
}

int wharf_drain(struct wharf *wharf)
{
    uint64_t n_ups = 0;

    return wharf_client_ask(wharf, send_drain, &n_ups);
}

/* ---- statistics ---------------------------------------------------------------------------- */

enum { MAX_LABELS = 64 };

static int send_stats(struct wharf *wharf, void *data)
{
    Wharf__StatsRequest stats = WHARF__STATS_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    stats.first = *(uint64_t *)data;
    request.body_case = WHARF__REQUEST__BODY_STATS;
    request.stats = &stats;
    return wharf_client_link_send(&wharf->link, &request, NULL, 0);
}

static void give_sample(const Wharf__MetricFamily *family, const Wharf__Sample *sample,
                        void (*each)(void *data, const struct wharf_metric *metric), void *data)
{
    struct wharf_metric_label labels[MAX_LABELS];
    struct wharf_metric metric = {
        .family = family->name,
        .help = family->help,
        .type = (uint32_t)family->type,
        .labels = labels,
        .suffix = sample->suffix,
        .value = sample->value,
    };

    for (; metric.n_labels < MAX_LABELS && metric.n_labels < sample->n_labels; metric.n_labels++) {
        const Wharf__Label *label = sample->labels[metric.n_labels];
        labels[metric.n_labels] = (struct wharf_metric_label){label->name, label->value};
    }
    each(data, &metric);
}

static void give_page(const Wharf__StatsReply *page,
                      void (*each)(void *data, const struct wharf_metric *metric), void *data)
{
    for (size_t f = 0; f < page->n_families; f++)
        for (size_t s = 0; s < page->families[f]->n_samples; s++)
            give_sample(page->families[f], page->families[f]->samples[s], each, data);
}

/* With request_lock.  *first is the page, and the next one afterwards. */
static int get_page(struct wharf *wharf, uint64_t *first, struct wharf_client_answer *answer,
                    void (*each)(void *data, const struct wharf_metric *metric), void *data)
{
    int r;

    pthread_mutex_lock(&wharf->lock);
    r = wharf_client_request(wharf, send_stats, first, answer);
    wharf_client_leave(wharf);
    if (r < 0)
        return r;
    /* Pages go upwards, so that they come to an end. */
    if (answer->reply->body_case != WHARF__REPLY__BODY_STATS ||
        (answer->reply->stats->next && answer->reply->stats->next <= *first))
        return wharf_client_fail(-EPROTO, "the daemon's reply is not to what was asked");
    give_page(answer->reply->stats, each, data);
    *first = answer->reply->stats->next;
    return 0;
}

int wharf_stats(struct wharf *wharf, void (*each)(void *data, const struct wharf_metric *metric),
                void *data)
{
    struct wharf_client_answer *answer;
    uint64_t first = 0;
    int r = wharf_client_check(wharf);

    if (r < 0)
        return r;
    if (!each)
        return wharf_client_fail(-EINVAL, "there is nobody to give statistics to");
    if (!wharf->is_daemon)
        return wharf_client_fail(-ENOTCONN, "this handle works without a daemon");
    answer = malloc(sizeof(*answer));
    if (!answer)
        return wharf_client_fail(-ENOMEM, "out of memory");
    pthread_mutex_lock(&wharf->request_lock);
    do {
        r = get_page(wharf, &first, answer, each, data);
    } while (r == 0 && first);
    pthread_mutex_unlock(&wharf->request_lock);
    free(answer);
    return r;
}
