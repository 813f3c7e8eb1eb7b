/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/notify.h"

#include <inttypes.h>
#include <systemd/sd-daemon.h>

#include "daemon/base/clock.h"

void wharf_notify_ready(const char *status)
{
    sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void wharf_notify_status(const char *status)
{
    sd_notifyf(0, "STATUS=%s", status);
}

void wharf_notify_reloading(void)
{
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, wharf_now_ns() / WHARF_NS_PER_US);
}

void wharf_notify_stopping(uint64_t timeout_ns)
{
    sd_notifyf(0, "STOPPING=1\nSTATUS=Finishing jobs\nEXTEND_TIMEOUT_USEC=%" PRIu64,
               timeout_ns / WHARF_NS_PER_US);
}

void wharf_notify_alive(void)
{
    sd_notify(0, "WATCHDOG=1");
}

uint64_t wharf_notify_watchdog_ns(void)
{
    uint64_t us;

    if (sd_watchdog_enabled(0, &us) <= 0)
        return WHARF_NEVER;
    return us * WHARF_NS_PER_US;
}
