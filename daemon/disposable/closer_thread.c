/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closer_thread.c: the closer, a thread with a bounded queue of empty sockets.
 */
#include "daemon/disposable/closer_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"

enum { MOST_WAITING = 256 };

struct wharf_closer_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    int waiting[MOST_WAITING]; /* lock, as all below */
    unsigned n_waiting;
    bool stop;
};

/* Waits for sockets and takes all of them.  Returns how many; 0: the thread is to end. */
static unsigned take_all(struct wharf_closer_thread *closer, int fds[MOST_WAITING])
{
    pthread_mutex_lock(&closer->lock);
    while (closer->n_waiting == 0 && !closer->stop)
        pthread_cond_wait(&closer->wanted, &closer->lock);
    unsigned n = closer->n_waiting;
    memcpy(fds, closer->waiting, n * sizeof(fds[0]));
    closer->n_waiting = 0;
    pthread_mutex_unlock(&closer->lock);
    return n;
}

static void *work(void *data)
{
    int fds[MOST_WAITING];
    unsigned n;

    pthread_setname_np(pthread_self(), "wharf-closer");
    while ((n = take_all(data, fds)) > 0)
        for (unsigned i = 0; i < n; i++)
            wharf_close_fd(fds[i]);
    return NULL;
}

int wharf_closer_thread_new(struct wharf_closer_thread **ret_closer)
{
    struct wharf_closer_thread *closer = calloc(1, sizeof(*closer));

    if (!closer)
        return -ENOMEM;
    pthread_mutex_init(&closer->lock, NULL);
    pthread_cond_init(&closer->wanted, NULL);
    int r = pthread_create(&closer->thread, NULL, work, closer);
    if (r != 0) {
        pthread_cond_destroy(&closer->wanted);
        pthread_mutex_destroy(&closer->lock);
        free(closer);
        return -r;
    }
    *ret_closer = closer;
    return 0;
}

void wharf_closer_thread_free(struct wharf_closer_thread *closer)
{
    if (!closer)
        return;
    pthread_mutex_lock(&closer->lock);
    closer->stop = true;
    pthread_cond_signal(&closer->wanted);
    pthread_mutex_unlock(&closer->lock);
    pthread_join(closer->thread, NULL);
    pthread_cond_destroy(&closer->wanted);
    pthread_mutex_destroy(&closer->lock);
    free(closer);
}

void wharf_closer_thread_take(struct wharf_closer_thread *closer, int fd)
{
    pthread_mutex_lock(&closer->lock);
    bool has_room = closer->n_waiting < MOST_WAITING;
    if (has_room)
        closer->waiting[closer->n_waiting++] = fd;
    if (closer->n_waiting == 1)
        pthread_cond_signal(&closer->wanted);
    pthread_mutex_unlock(&closer->lock);
    if (!has_room)
        wharf_close_fd(fd);
}
