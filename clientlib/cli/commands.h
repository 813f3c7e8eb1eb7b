/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h: the list of commands. */
#ifndef WHARF_CLI_COMMANDS_H
#define WHARF_CLI_COMMANDS_H

#include "clientlib/cli/options.h"

extern const struct wharf_cli_command wharf_cli_pack;
extern const struct wharf_cli_command wharf_cli_unpack;
extern const struct wharf_cli_command wharf_cli_cat;
extern const struct wharf_cli_command wharf_cli_test;
extern const struct wharf_cli_command wharf_cli_list;
extern const struct wharf_cli_command wharf_cli_index;
extern const struct wharf_cli_command wharf_cli_columns;
extern const struct wharf_cli_command wharf_cli_decode;
extern const struct wharf_cli_command wharf_cli_bench;
extern const struct wharf_cli_command wharf_cli_why_command;
extern const struct wharf_cli_command wharf_cli_rans;
extern const struct wharf_cli_command wharf_cli_run;
extern const struct wharf_cli_command wharf_cli_status;
extern const struct wharf_cli_command wharf_cli_stats;
extern const struct wharf_cli_command wharf_cli_top;
extern const struct wharf_cli_command wharf_cli_ping;
extern const struct wharf_cli_command wharf_cli_drain;
extern const struct wharf_cli_command wharf_cli_doctor_command;
extern const struct wharf_cli_command wharf_cli_cdi;

/* Options and no command: `tar -I wharf`, `wharf -d FILE`, `wharf -9`.  Returns the exit status. */
int wharf_cli_run_filter(int argc, char **argv);

#endif
