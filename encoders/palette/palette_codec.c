/* SPDX-License-Identifier: Apache-2.0 */
/* palette: encoders/line/LINES.md.  The encoders are in the order of the format's types. */
#include "encoders/line/line_codec.h"

static const struct wharf_encoder_row rows[] = {
    WHARF_LINE_ENCODER_ROWS("bf16"),
    WHARF_LINE_ENCODER_ROWS("f16"),
    WHARF_LINE_ENCODER_ROWS("e4m3"),
    WHARF_LINE_ENCODER_ROWS("e5m2"),
    {.name = NULL},
};

DEFINE_LINE_CODEC(PALETTE, palette)
