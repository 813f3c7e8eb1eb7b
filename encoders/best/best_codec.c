/* SPDX-License-Identifier: Apache-2.0 */
/* best: encoders/line/LINES.md. */
#include "encoders/line/line_codec.h"

static const struct wharf_encoder_row rows[] = {
    WHARF_LINE_ENCODER_ROWS("lines"),
    {.name = NULL},
};

DEFINE_LINE_CODEC(BEST, best)
