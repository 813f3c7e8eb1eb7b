/* SPDX-License-Identifier: Apache-2.0 */
/* value_type.c: checks the option --type. */
#include "clientlib/cli/value_type.h"

#include "clientlib/cli/message.h"
#include "clientlib/cli/options.h"
#include "clientlib/wharf.h"
#include "encoders/rans/rans.h"

/* rans numbers its symbols as the types are numbered, and without a type they are bytes. */
_Static_assert(WHARF_RLE_U8 == WHARF_RANS_PARAMETER_BYTES &&
                   WHARF_RLE_U16 == WHARF_RANS_PARAMETER_U16,
               "types and rans' parameters");

int wharf_cli_check_type(const char *command, uint32_t codec, int type)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(codec)->ops;
    int is_known = wharf_codec_has_types(ops);

    if (codec == WHARF_CODEC_RANS && type >= 0 && !wharf_codec_unit_nbytes(ops, (uint32_t)type))
        return wharf_cli_say_usage(command, "codec %s has the types u8 (the default) and u16",
                                   wharf_codec_name(codec));
    if (is_known && type < 0 && codec != WHARF_CODEC_RANS)
        return wharf_cli_say_usage(command, "codec %s needs --type: " WHARF_CLI_TYPE_SYNTAX,
                                   wharf_codec_name(codec));
    if (!is_known && type >= 0)
        return wharf_cli_say_usage(command, "codec %s has no --type", wharf_codec_name(codec));
    return WHARF_CLI_GO_ON;
}
