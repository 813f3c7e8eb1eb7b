/* SPDX-License-Identifier: Apache-2.0 */
/* value_type.h: the option --type, of codecs whose output is values. */
#ifndef WHARF_CLI_VALUE_TYPE_H
#define WHARF_CLI_VALUE_TYPE_H

#include <stdint.h>

#include "encoders/rle_values.h"

/* What a type's name may be, for messages. */
#define WHARF_CLI_TYPE_SYNTAX "one of u8, u16, u32, u64, i8, i16, i32 and i64"

/* Whether a codec needs a type and has one, or neither: WHARF_CLI_GO_ON, or the exit status with
 * which the command is to end, and what is wrong was said.  `type` is -1 if there is none. */
int wharf_cli_check_type(const char *command, uint32_t codec, int type);

#endif
