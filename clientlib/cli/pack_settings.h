/* SPDX-License-Identifier: Apache-2.0 */
/* pack_settings.h: how chunks of a container are to be compressed. */
#ifndef WHARF_CLI_PACK_SETTINGS_H
#define WHARF_CLI_PACK_SETTINGS_H

#include <stdint.h>

#include "encoders/codec.h"

struct wharf_cli_pack_settings {
    uint32_t codec; /* enum wharf_codec */
    struct wharf_encoder_options encoder;
    uint32_t chunk_nbytes;
};

#endif
