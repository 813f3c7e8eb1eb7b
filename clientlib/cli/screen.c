/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c: uses the terminal's alternate screen (screen.h). */
#include "clientlib/cli/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "clientlib/now.h"

/* The other screen, without a cursor, where long lines end at the edge; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

/* What ends a process, or stops it for a while: SIGTSTP. */
static const int watched[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGTSTP,
};

static volatile sig_atomic_t is_entered, has_keys;
static struct termios before; /* of standard input, if has_keys */

/* All that follows is called from signal handlers, too. */

static void put(const char *text, size_t nbytes)
{
    ssize_t n = write(STDOUT_FILENO, text, nbytes);

    (void)n; /* a terminal that is gone */
}

/* A process in the background that sets the terminal is stopped. */
static bool is_in_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void give_back(void)
{
    if (has_keys && is_in_foreground())
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    if (is_entered)
        put(LEAVE, sizeof(LEAVE) - 1);
    is_entered = has_keys = 0;
}

static void take(void)
{
    struct termios keys;

    if (is_in_foreground() && tcgetattr(STDIN_FILENO, &before) == 0) {
        keys = before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        keys.c_cc[VMIN] = 1;
        keys.c_cc[VTIME] = 0;
        has_keys = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
    }
    put(ENTER, sizeof(ENTER) - 1);
    is_entered = 1;
}

static void on_signal(int number);

static void watch(int number)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction old;

    sigemptyset(&action.sa_mask);
    /* What the caller ignores, as nohup does, stays ignored. */
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(number, &action, NULL);
}

static void unwatch(int number)
{
    struct sigaction current;

    if (sigaction(number, NULL, &current) == 0 && current.sa_handler == on_signal)
        signal(number, SIG_DFL);
}

/* The terminal first; then the signal does what it does to any process.  It is blocked until the
 * handler has returned, so SIGTSTP stops the process inside, and goes on there. */
static void on_signal(int number)
{
    int saved = errno;
    sigset_t own;

    give_back();
    signal(number, SIG_DFL);
    raise(number);
    sigemptyset(&own);
    sigaddset(&own, number);
    sigprocmask(SIG_UNBLOCK, &own, NULL);
    /* Only what stops comes here, when the process goes on. */
    watch(number);
    take();
    errno = saved;
}

/* ---- outside of handlers ------------------------------------------------------------------- */

void wharf_cli_screen_enter(void)
{
    if (!isatty(STDOUT_FILENO))
        return;
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
        watch(watched[i]);
    take();
}

void wharf_cli_screen_leave(void)
{
    fflush(stdout);
    give_back();
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
        unwatch(watched[i]);
}

bool wharf_cli_screen_clear(void)
{
    if (!is_entered)
        return false;
    fputs("\033[H\033[2J", stdout);
    return true;
}

unsigned wharf_cli_screen_rows(void)
{
    struct winsize size;

    return is_entered && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

/* Whether the next key is the one that ends it.  A terminal that has none any more is not asked
 * again. */
static bool is_quit(void)
{
    char key;
    ssize_t n = read(STDIN_FILENO, &key, 1);

    if (n == 0 || (n < 0 && errno != EINTR))
        has_keys = 0;
    return n == 1 && (key == 'q' || key == 'Q');
}

bool wharf_cli_screen_rest(uint64_t until_ns)
{
    for (;;) {
        uint64_t now_ns = wharf_client_now_ns();
        struct pollfd keys = {.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN};

        if (now_ns >= until_ns)
            return false;
        struct timespec left = {.tv_sec = (time_t)((until_ns - now_ns) / 1000000000),
                                .tv_nsec = (long)((until_ns - now_ns) % 1000000000)};
        if (ppoll(&keys, 1, &left, NULL) > 0 && is_quit())
            return true;
    }
}
