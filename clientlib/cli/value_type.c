/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/value_type.h"

#include "clientlib/cli/message.h"
#include "clientlib/cli/options.h"
#include "clientlib/wharf.h"

int wharf_cli_check_type(const char *command, uint32_t codec, int type)
{
    int is_needed = wharf_codec_find(codec)->ops->unit_nbytes != NULL;

    if (is_needed && type < 0)
        return wharf_cli_say_usage(command, "codec %s needs --type: " WHARF_CLI_TYPE_SYNTAX,
                                   wharf_codec_name(codec));
    if (!is_needed && type >= 0)
        return wharf_cli_say_usage(command, "codec %s has no --type", wharf_codec_name(codec));
    return WHARF_CLI_GO_ON;
}
