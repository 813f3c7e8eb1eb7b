/* SPDX-License-Identifier: Apache-2.0 */
/* test_handle.c: opens handles of both kinds. */
#include "tests/lib/test_handle.h"
#include "tests/lib/test_wait.h"

#include <stdio.h>
#include <stdlib.h>

struct test_handle test_handle_open(enum test_handle_kind kind, const struct wharf_options *options)
{
    struct wharf_options own = WHARF_OPTIONS_INIT;
    struct test_handle handle = {.kind = kind, .name = "embedded"};

    if (options)
        own = *options;
    own.flags = WHARF_OPEN_EMBEDDED;
    if (kind == TEST_HANDLE_DAEMON) {
        handle.name = "daemon";
        handle.daemon = test_daemon_new();
        test_daemon_start(handle.daemon);
        own.flags = WHARF_OPEN_DAEMON;
        own.socket_path = handle.daemon->path;
        if (own.patience_ms == 0)
            own.patience_ms = TEST_PATIENCE_MS;
    }
    if (wharf_open(&own, &handle.wharf) < 0) {
        fprintf(stderr, "test_handle: %s\n", wharf_error_message());
        exit(1);
    }
    return handle;
}

void test_handle_close(struct test_handle *handle)
{
    wharf_close(handle->wharf);
    test_daemon_free(handle->daemon);
}
