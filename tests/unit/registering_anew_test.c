/* SPDX-License-Identifier: Apache-2.0 */
/* What is registered, while the library registers it with the next daemon. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clientlib/handle.h"
#include "clientlib/link.h"
#include "clientlib/pump.h"
#include "clientlib/wharf.h"
#include "tests/lib/test_daemon.h"
#include "tests/lib/test_wait.h"

enum { PAGE = 4096, N_REGIONS = 20 };

static struct wharf_memory memory_new(void)
{
    struct wharf_memory memory = WHARF_MEMORY_INIT;

    memory.kind = WHARF_MEMORY_MEMFD;
    memory.fd = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(memory.fd, PAGE), 0);
    cr_assert_eq(fcntl(memory.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    memory.nbytes = PAGE;
    memory.address = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
    cr_assert_neq(memory.address, MAP_FAILED);
    return memory;
}

static enum wharf_client_link_state step(struct wharf *wharf)
{
    pthread_mutex_lock(&wharf->lock);
    wharf_client_link_listen(wharf, 0);
    wharf_client_pump(wharf);
    enum wharf_client_link_state state = wharf->link.state;
    pthread_mutex_unlock(&wharf->lock);
    return state;
}

/* Goes on until the next daemon is being told of the regions; whether that was seen. */
static int catch_registering(struct wharf *wharf, struct test_daemon *daemon)
{
    enum wharf_client_link_state state;
    uint64_t n_ups = wharf->link.n_ups;

    test_daemon_kill(daemon);
    /* Where the next daemon's answers are there at once, one step is all the way to it. */
    while ((state = step(wharf)) == WHARF_CLIENT_LINK_UP && wharf->link.n_ups == n_ups)
        usleep(1000);
    while (state != WHARF_CLIENT_LINK_UP && state != WHARF_CLIENT_LINK_REGISTERING)
        state = step(wharf);
    return state == WHARF_CLIENT_LINK_REGISTERING;
}

/* The daemon was not told that it is over, and refused the number from then on. */
Test(registering_anew, what_is_unregistered_meanwhile_is_gone, .timeout = 600)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_memory memories[N_REGIONS];
    struct wharf *wharf;

    test_daemon_start(daemon);
    options.socket_path = daemon->path;
    options.flags = WHARF_OPEN_DAEMON;
    options.patience_ms = TEST_PATIENCE_MS;
    cr_assert_eq(wharf_open(&options, &wharf), 0, "%s", wharf_error_message());
    for (unsigned i = 0; i < N_REGIONS; i++) {
        memories[i] = memory_new();
        cr_assert_eq(wharf_register(wharf, &memories[i]), 0, "%s", wharf_error_message());
    }
    for (unsigned n_caught = 0; n_caught < 3;) {
        /* The first one, of which the daemon has been told, and the last one, of which not yet. */
        unsigned which = n_caught % 2 ? N_REGIONS - 1 : 0;
        n_caught += (unsigned)catch_registering(wharf, daemon);
        cr_assert_eq(wharf_unregister(wharf, memories[which].address), 0, "%s",
                     wharf_error_message());
        cr_assert_eq(wharf_register(wharf, &memories[which]), 0, "%s", wharf_error_message());
    }
    wharf_close(wharf);
    test_daemon_stop(daemon);
    test_daemon_free(daemon);
}
