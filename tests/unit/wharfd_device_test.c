/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPU a daemon has, and how much of it: what is configured reaches the worker, and what it
 * cannot have is said.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/lib/test_wharfd.h"

static struct test_wharfd wharfd;

static void expect_share(const char *setting, const char *said)
{
    char config[128];

    snprintf(config, sizeof(config), "[gpu]\nengine = simt\n%s\n", setting);
    test_wharfd_start(&wharfd, config);
    cr_expect(test_wharfd_says(&wharfd, said), "%s", setting);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    test_wharfd_remove(&wharfd);
}

/* The layer has three warps, of which one polls. */
Test(wharfd_device, share_is_kept_and_said)
{
    expect_share("share = 100", "simt, 2 warps");
    expect_share("share = 70", "has 70 percent of its GPU: fewer warps");
    expect_share("share = 70", "simt, 1 warps");
    expect_share("share = 1", "simt, 1 warps");
}

static void expect_refusal(const char *device)
{
    char config[128], said[128];

    snprintf(config, sizeof(config), "[gpu]\nengine = simt\ndevice = %s\n", device);
    snprintf(said, sizeof(said), "there is no device %s: the only one is 0", device);
    test_wharfd_prepare(&wharfd, config);
    test_wharfd_spawn(&wharfd);
    cr_expect_eq(test_wharfd_wait(&wharfd), 1);
    cr_expect(test_wharfd_says(&wharfd, said), "%s", device);
    test_wharfd_remove(&wharfd);
}

/* With an engine that was asked for by name the daemon does not start without its device. */
Test(wharfd_device, device_that_is_not_there_is_named)
{
    expect_refusal("1");
    expect_refusal("00");
    expect_refusal("-1");
    expect_refusal("GPU-5d1f2b3c-0000-1111-2222-333344445555");
    expect_refusal("MIG-5d1f2b3c-0000-1111-2222-333344445555");
}
