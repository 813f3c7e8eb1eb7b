/* SPDX-License-Identifier: Apache-2.0 */
/* crew.c: threads that work through numbered items (crew.h). */
#include "clientlib/cli/crew.h"
#include "clientlib/now.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct hand {
    struct wharf_cli_crew *crew;
    pthread_t thread;
    unsigned number;
};

struct wharf_cli_crew {
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t begun;
    pthread_cond_t finished;
    uint64_t round;    /* goes up by one with each run */
    unsigned n_active; /* threads that have not finished it */
    bool over;

    /* The run: set while no thread is active. */
    wharf_cli_crew_work *work;
    void *context;
    size_t n_items;
    atomic_size_t next_item;
    atomic_int error;

    unsigned n_hands;
    struct hand hands[];
};

/* Waits for a round after `round`; false when there will be none. */
static bool wait_for_round(struct wharf_cli_crew *crew, uint64_t round)
{
    bool go_on;

    pthread_mutex_lock(&crew->lock);
    while (!crew->over && crew->round == round)
        pthread_cond_wait(&crew->begun, &crew->lock);
    go_on = !crew->over;
    pthread_mutex_unlock(&crew->lock);
    return go_on;
}

static void finish_round(struct wharf_cli_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    if (--crew->n_active == 0)
        pthread_cond_signal(&crew->finished);
    pthread_mutex_unlock(&crew->lock);
}

static void *run_hand(void *argument)
{
    const struct hand *hand = argument;
    struct wharf_cli_crew *crew = hand->crew;

    for (uint64_t round = 0; wait_for_round(crew, round); round++) {
        size_t item;

        while ((item = atomic_fetch_add(&crew->next_item, 1)) < crew->n_items) {
            int r = crew->work(crew->context, item, hand->number);

            if (r < 0)
                atomic_store(&crew->error, r);
        }
        finish_round(crew);
    }
    return NULL;
}

int wharf_cli_crew_new(unsigned n_hands, struct wharf_cli_crew **ret_crew)
{
    struct wharf_cli_crew *crew = calloc(1, sizeof(*crew) + n_hands * sizeof(crew->hands[0]));

    if (!crew)
        return -ENOMEM;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->begun, NULL);
    pthread_cond_init(&crew->finished, NULL);
    for (; crew->n_hands < n_hands; crew->n_hands++) {
        struct hand *hand = &crew->hands[crew->n_hands];
        int error;

        hand->crew = crew;
        hand->number = crew->n_hands;
        error = pthread_create(&hand->thread, NULL, run_hand, hand);
        if (error) {
            wharf_cli_crew_free(crew);
            return -error;
        }
    }
    *ret_crew = crew;
    return 0;
}

void wharf_cli_crew_free(struct wharf_cli_crew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->over = true;
    pthread_cond_broadcast(&crew->begun);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < crew->n_hands; i++)
        pthread_join(crew->hands[i].thread, NULL);
    pthread_cond_destroy(&crew->finished);
    pthread_cond_destroy(&crew->begun);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

int wharf_cli_crew_run(struct wharf_cli_crew *crew, wharf_cli_crew_work *work, void *context,
                       size_t n_items, uint64_t *ret_ns)
{
    uint64_t start_ns = wharf_client_now_ns();

    crew->work = work;
    crew->context = context;
    crew->n_items = n_items;
    atomic_store(&crew->next_item, 0);
    atomic_store(&crew->error, 0);
    pthread_mutex_lock(&crew->lock);
    crew->n_active = crew->n_hands;
    crew->round++;
    pthread_cond_broadcast(&crew->begun);
    while (crew->n_active)
        pthread_cond_wait(&crew->finished, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    *ret_ns = wharf_client_now_ns() - start_ns;
    return atomic_load(&crew->error);
}
