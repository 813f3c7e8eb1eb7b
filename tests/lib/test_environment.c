/* SPDX-License-Identifier: Apache-2.0 */
/* test_environment.c: reads WHARF_TEST_GPU. */
#include "tests/lib/test_environment.h"

#include <stdlib.h>
#include <string.h>

#include "proto/wharf_job.h"

const char *test_environment_gpu(void)
{
    const char *name = getenv("WHARF_TEST_GPU");

    return name && *name ? name : NULL;
}

uint32_t test_environment_engine(void)
{
    const char *name = test_environment_gpu();

    return !name                       ? WHARF_ENGINE_AUTO
           : strcmp(name, "simt") == 0 ? WHARF_ENGINE_SIMT
                                       : WHARF_ENGINE_GPU;
}
