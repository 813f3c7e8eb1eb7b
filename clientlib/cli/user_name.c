/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user_name.c: a thread looks names up and keeps them, since that can hang.  The main thread waits
 * for it, for a second at most.
 */
#include "clientlib/cli/user_name.h"

#include <pthread.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/utf8.h"

enum { N_KEPT = 1024, PATIENCE_S = 1 };

struct user {
    bool is_known;
    uid_t uid;
    char name[WHARF_CLI_USER_NAME_NBYTES];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_thread;
    bool is_given_up;
    bool is_asked; /* for `uid`; the thread clears it when it has entered the answer */
    uid_t uid;
    struct user users[N_KEPT]; /* each uid has one place, with others */
} names = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *answer(void *context)
{
    pthread_mutex_lock(&names.lock);
    for (;;) {
        while (!names.is_asked)
            pthread_cond_wait(&names.changed, &names.lock);
        struct user user = {.is_known = true, .uid = names.uid};
        pthread_mutex_unlock(&names.lock);
        const struct passwd *found = getpwuid(user.uid);
        if (found)
            snprintf(user.name, sizeof(user.name), "%s", found->pw_name);
        pthread_mutex_lock(&names.lock);
        names.users[user.uid % N_KEPT] = user;
        names.is_asked = false;
        pthread_cond_broadcast(&names.changed);
    }
    return context;
}

/* Under the lock, as all below.  The thread ends with the process. */
static bool start(void)
{
    pthread_t thread;

    if (names.has_thread)
        return true;
    if (pthread_create(&thread, NULL, answer, NULL) != 0)
        return false;
    pthread_detach(thread);
    names.has_thread = true;
    return true;
}

static void ask(uid_t uid)
{
    struct timespec until;

    if (names.is_given_up || !start())
        return;
    names.uid = uid;
    names.is_asked = true;
    pthread_cond_broadcast(&names.changed);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    while (names.is_asked && !names.is_given_up)
        names.is_given_up = pthread_cond_timedwait(&names.changed, &names.lock, &until) != 0;
}

/* Whether a terminal takes it for a command: of ASCII, or one of U+0080 to U+009F. */
static bool is_control(const unsigned char *at, int nbytes)
{
    return *at < ' ' || *at == 0x7f || (nbytes == 2 && *at == 0xc2 && at[1] < 0xa0);
}

/* What is no character in UTF-8, or a command, becomes a question mark, each byte of it. */
static void make_printable(char *name)
{
    unsigned char *at = (unsigned char *)name;

    while (*at) {
        int nbytes = wharf_utf8_nbytes(at), n_bad = nbytes ? nbytes : 1;
        if (nbytes == 0 || is_control(at, nbytes))
            memset(at, '?', (size_t)n_bad);
        at += n_bad;
    }
}

void wharf_cli_user_name(const char *tenant, char name[WHARF_CLI_USER_NAME_NBYTES])
{
    name[0] = 0;
    if (strncmp(tenant, "uid:", 4) != 0)
        return;
    uid_t uid = (uid_t)strtoul(tenant + 4, NULL, 10);
    const struct user *user = &names.users[uid % N_KEPT];
    pthread_mutex_lock(&names.lock);
    if (!user->is_known || user->uid != uid)
        ask(uid);
    if (user->is_known && user->uid == uid)
        memcpy(name, user->name, WHARF_CLI_USER_NAME_NBYTES);
    pthread_mutex_unlock(&names.lock);
    make_printable(name);
}
