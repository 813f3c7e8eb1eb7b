/* SPDX-License-Identifier: Apache-2.0 */
/* wharfd_reload.c: reads the configuration again, in a thread. */
#include "daemon/wharfd_reload.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/config.h"
#include "daemon/base/config_report.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/wharfd_options.h"

static void *read_config(void *context)
{
    struct wharf_reloader *reloader = context;
    const uint64_t one = 1;

    wharf_options_load(reloader->options, &reloader->next, &reloader->report);
    /* Of an eventfd that is read after each write there is always room. */
    if (write(reloader->source.fd, &one, sizeof(one)) < 0)
        return NULL;
    return NULL;
}

static int start(struct wharf_reloader *reloader)
{
    wharf_config_report_init(&reloader->report);
    int r = pthread_create(&reloader->thread, NULL, read_config, reloader);
    reloader->is_busy = r == 0;
    return -r;
}

static void on_end(struct wharf_source *source, uint32_t ready)
{
    struct wharf_reloader *reloader = WHARF_LIST_ENTRY(source, struct wharf_reloader, source);
    uint64_t count;

    (void)ready;
    if (read(source->fd, &count, sizeof(count)) < 0)
        return;
    pthread_join(reloader->thread, NULL);
    struct wharf_config next = reloader->next;
    struct wharf_config_report report = reloader->report;
    reloader->is_busy = false;
    if (reloader->is_wanted_again)
        start(reloader);
    reloader->is_wanted_again = false;
    reloader->on_loaded(reloader, &next, &report);
    wharf_config_deinit(&next);
    wharf_config_report_deinit(&report);
}

int wharf_reloader_init(struct wharf_reloader *reloader, struct wharf_loop *loop,
                        const struct wharf_options_line *options, wharf_reloader_fn *on_loaded)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return -errno;
    reloader->loop = loop;
    reloader->options = options;
    reloader->on_loaded = on_loaded;
    reloader->is_busy = reloader->is_wanted_again = false;
    int r = wharf_loop_add(loop, &reloader->source, fd, POLLIN, on_end);
    if (r < 0)
        wharf_close_fd(fd);
    return r;
}

void wharf_reloader_deinit(struct wharf_reloader *reloader)
{
    wharf_loop_remove(reloader->loop, &reloader->source);
    if (reloader->is_busy)
        pthread_detach(reloader->thread);
    else
        wharf_close_fd(reloader->source.fd);
}

int wharf_reloader_begin(struct wharf_reloader *reloader)
{
    if (!reloader->is_busy)
        return start(reloader);
    reloader->is_wanted_again = true;
    return 0;
}
