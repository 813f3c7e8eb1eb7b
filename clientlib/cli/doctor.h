/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h: what `wharf doctor` looks at.
 *
 * Each part of it appends findings: what was looked at, what is there, and unless that is as it
 * should be, what it costs and the one command that mends it.  Files of the system are looked for
 * below `root`; limits and the kernel's calls are this machine's.
 */
#ifndef WHARF_CLI_DOCTOR_H
#define WHARF_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "clientlib/cli/metrics.h"
#include "clientlib/cli/options.h"
#include "clientlib/connect_error.h"
#include "clientlib/wharf.h"

enum wharf_cli_health {
    WHARF_CLI_HEALTH_OK,
    WHARF_CLI_HEALTH_WARNING, /* it works, at a cost */
    WHARF_CLI_HEALTH_MISSING, /* something does not work */
};

struct wharf_cli_finding {
    const char *check; /* its name: documented, so that scripts can look for it */
    enum wharf_cli_health health;
    char found[512];
    char cost[256]; /* "" where it is as it should be, and so is `mend` */
    char mend[512]; /* one command for a shell */
};

enum { WHARF_CLI_MAX_FINDINGS = 24 };

struct wharf_cli_doctor {
    const struct wharf_cli_options *options;
    const char *root; /* "" or a folder */
    const char *path; /* of the daemon's socket */
    unsigned n_gpus;  /* NVIDIA's, of this machine */

    /* Of the connection: filled by wharf_cli_doctor_look_at_daemon. */
    int connect_error; /* positive; 0: somebody listens */
    struct wharf_client_obstacle obstacle;
    pid_t daemon_pid;    /* 0: not known */
    struct wharf *wharf; /* NULL: the daemon was not reached */
    struct wharf_info info;
    struct wharf_cli_metrics metrics;

    struct wharf_cli_finding findings[WHARF_CLI_MAX_FINDINGS];
    unsigned n_findings;
};

/* ---- findings ------------------------------------------------------------------------------ */

/* Appends one, and returns it. */
__attribute__((format(printf, 4, 5))) struct wharf_cli_finding *
wharf_cli_doctor_note(struct wharf_cli_doctor *doctor, const char *check,
                      enum wharf_cli_health health, const char *format, ...);

/* What mends it. */
__attribute__((format(printf, 2, 3))) void wharf_cli_finding_mend(struct wharf_cli_finding *finding,
                                                                  const char *format, ...);

/* What it costs. */
__attribute__((format(printf, 2, 3))) void wharf_cli_finding_cost(struct wharf_cli_finding *finding,
                                                                  const char *format, ...);

/* For a problem with the cause of an earlier check: takes over its cost and command. */
void wharf_cli_finding_follow(const struct wharf_cli_doctor *doctor,
                              struct wharf_cli_finding *finding, const char *check);

/* Installing a package of wharf's own: from an archive that apt knows, else built in wharf's source
 * folder.  `is_again` is for one that lacks a file. */
void wharf_cli_finding_mend_by_package(struct wharf_cli_finding *finding, const char *name,
                                       bool is_again);

/* Starting the daemon again. */
void wharf_cli_finding_mend_by_restart(const struct wharf_cli_doctor *doctor,
                                       struct wharf_cli_finding *finding);

/* ---- the system's files --------------------------------------------------------------------- */

/* How many files match the pattern below the root; the first one's path goes to ret_path, unless
 * that is NULL. */
size_t wharf_cli_doctor_find(const struct wharf_cli_doctor *doctor, const char *pattern,
                             char *ret_path, size_t path_nbytes);

/* The first line of a file below the root, without its end.  Whether there is one. */
bool wharf_cli_doctor_read(const struct wharf_cli_doctor *doctor, const char *path, char *ret_line,
                           size_t line_nbytes);

/* Runs a program and keeps the first bytes of what it prints, which end with a zero.  Whether it
 * ended well; one that hangs is ended after ten seconds. */
bool wharf_cli_doctor_ask(char *const arguments[], char *text, size_t text_nbytes);

/* Whether PATH has the program. */
bool wharf_cli_doctor_has_program(const char *name);

/* ---- parts ---------------------------------------------------------------------------------- */

/* Connects, and appends what is found of group, socket and daemon. */
void wharf_cli_doctor_look_at_daemon(struct wharf_cli_doctor *doctor);

/* driver, toolkit and gpus; after the daemon.  Fills n_gpus. */
void wharf_cli_doctor_look_at_gpus(struct wharf_cli_doctor *doctor);

/* Limits of the daemon's process, or of this one where none runs; after daemon and GPUs. */
void wharf_cli_doctor_look_at_limits(struct wharf_cli_doctor *doctor);

/* Calls of the kernel that the daemon and its clients make. */
void wharf_cli_doctor_look_at_kernel(struct wharf_cli_doctor *doctor);

/* What serves programs as they are. */
void wharf_cli_doctor_look_at_callers(struct wharf_cli_doctor *doctor);

/* ---- the report ----------------------------------------------------------------------------- */

/* For people; with `only_bad` without what is as it should be. */
void wharf_cli_doctor_print_text(const struct wharf_cli_doctor *doctor, bool only_bad);

/* One JSON object, as wharf(1) describes it. */
void wharf_cli_doctor_print_json(const struct wharf_cli_doctor *doctor);

#endif
