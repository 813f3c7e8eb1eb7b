/* SPDX-License-Identifier: Apache-2.0 */
/*
 * touch.c: survives SIGBUS in clients' memory, by sigsetjmp and siglongjmp.
 *
 * INVARIANT: `innermost` is the innermost wharf_touch of this thread, to which the handler jumps.
 */
#include "daemon/base/touch.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

struct touch {
    sigjmp_buf where;
    struct touch *outer;
};

/* The innermost wharf_touch of this thread. */
static _Thread_local struct touch *volatile innermost;

/* Jumps out of a touch after a fault of this thread.  Any other SIGBUS ends the process, as by
 * default: a fault by occurring again, a signal that was sent by raise. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    const ucontext_t *interrupted = context;

    if (innermost && info->si_code > 0) {
        /* Restores the signal mask, as the handler's return would.  sigsetjmp could save it, but at
         * the cost of a system call each time. */
        pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, NULL);
        siglongjmp(innermost->where, 1);
    }
    signal(number, SIG_DFL);
    if (info->si_code <= 0)
        raise(number);
}

int wharf_touch_init(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

bool wharf_touch(void (*act)(void *context), void *context)
{
    struct touch touch = {.outer = innermost};

    if (sigsetjmp(touch.where, 0) != 0) {
        innermost = touch.outer;
        return false;
    }
    innermost = &touch;
    act(context);
    innermost = touch.outer;
    return true;
}

struct copy {
    void *to;
    const void *from;
    size_t nbytes;
};

static void copy(void *context)
{
    const struct copy *what = context;

    memcpy(what->to, what->from, what->nbytes);
}

bool wharf_touch_copy(void *to, const void *from, size_t nbytes)
{
    struct copy what = {to, from, nbytes};

    return nbytes == 0 || wharf_touch(copy, &what);
}
