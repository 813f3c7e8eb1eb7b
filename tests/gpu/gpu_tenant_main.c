/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_tenant_main.c: another process's use of the same GPU.
 *
 *     wharf_gpu_tenant trips SECONDS
 *     wharf_gpu_tenant saturate SECONDS
 *
 * as gpu_tenant.h says; of the round trips it prints one JSON object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/gpu_tenant.h"

static int print_trips(double seconds)
{
    printf("{");
    int status = gpu_tenant_round_trips(seconds);
    /* The object's members end their line. */
    printf("}\n");
    return status;
}

int main(int argc, char **argv)
{
    double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;

    if (seconds > 0 && strcmp(argv[1], "trips") == 0)
        return print_trips(seconds);
    if (seconds > 0 && strcmp(argv[1], "saturate") == 0)
        return gpu_tenant_saturate(seconds);
    fputs("usage: wharf_gpu_tenant trips|saturate SECONDS\n", stderr);
    return 2;
}
