/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_pack.h: a container's chunks, compressed by a daemon.
 *
 * Each of the command's threads has one job in flight, so the daemon has as many at a time as the
 * command would compress itself.
 */
#ifndef WHARF_CLI_DAEMON_PACK_H
#define WHARF_CLI_DAEMON_PACK_H

#include "clientlib/cli/pack_settings.h"
#include "clientlib/cli/service.h"
#include "encoders/container_write.h"

enum { WHARF_CLI_DAEMON_PACK_TEXT = 200 };

/* Why a chunk was not compressed, for the thread that tells of it. */
struct wharf_cli_daemon_pack_failure {
    int error; /* -errno, or 0: there is none */
    char text[WHARF_CLI_DAEMON_PACK_TEXT];
};

/*
 * Compresses one chunk, or stores it if that is no smaller, as wharf_container_pack does.  Safe
 * from several threads.  Returns 0, or a negative errno with *ret_failure filled.
 */
int wharf_cli_daemon_pack(const struct wharf_cli_service *service,
                          const struct wharf_cli_pack_settings *settings, const uint8_t *raw,
                          uint32_t raw_nbytes, uint8_t *buf,
                          struct wharf_container_packed *ret_packed,
                          struct wharf_cli_daemon_pack_failure *ret_failure);

/* Whether the daemon can do what is asked for; says what is wrong.  Returns WHARF_CLI_GO_ON or the
 * exit status. */
int wharf_cli_daemon_pack_check(const struct wharf_cli_service *service,
                                const struct wharf_cli_pack_settings *settings);

#endif
