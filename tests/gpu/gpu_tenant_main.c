/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_tenant_main.c: another process's use of the same GPU, as gpu_tenant.h says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/gpu_tenant.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: wharf_gpu_tenant trips|saturate SECONDS\n"
    "\n"
    "Uses the GPU as another process would, beside what is measured there.\n"
    "\n"
    "  trips      64 KiB in, a kernel, 64 KiB out, one after the other; prints a JSON object\n"
    "  saturate   kernels without a pause that copy 256 MiB in the GPU's memory\n";

static int print_latencies(double seconds)
{
    printf("{");
    int status = gpu_tenant_round_trips(seconds);
    /* The object's members end their line. */
    printf("}\n");
    return status;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;

    if (seconds > 0 && strcmp(argv[1], "trips") == 0)
        return print_latencies(seconds);
    if (seconds > 0 && strcmp(argv[1], "saturate") == 0)
        return gpu_tenant_saturate(seconds);
    return test_usage(help);
}
