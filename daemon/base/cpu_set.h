/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_set.h: the processors that decoding may use. */
#ifndef WHARF_DAEMON_BASE_CPU_SET_H
#define WHARF_DAEMON_BASE_CPU_SET_H

#include <sched.h>
#include <stdint.h>

struct wharf_config;

/* The error for a setting that names only processors that this process may not use. */
#define WHARF_CPU_SET_NONE "cpus = %s: of these the daemon may use none"

/* Reads a list such as "0-7,16".  Returns 0, or -EINVAL for anything else. */
int wharf_cpu_set_parse(const char *text, cpu_set_t *ret_set);

/*
 * Chooses processors and the number of workers, from the settings and this process's affinity.
 * Returns 0, or -EINVAL if the list is malformed or names no processor that may be used.
 */
int wharf_cpu_set_choose(const struct wharf_config *config, cpu_set_t *ret_set,
                         uint32_t *ret_n_workers);

#endif
