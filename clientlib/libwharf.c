/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls that need no handle. */
#include "clientlib/wharf.h"

#include "encoders/codec.h"

const char *wharf_version(void)
{
    return WHARF_VERSION;
}

const char *wharf_codec_name(uint32_t codec)
{
    const struct wharf_codec_row *row = wharf_codec_find(codec);

    return row ? row->name : NULL;
}

const char *wharf_codec_summary(uint32_t codec)
{
    const struct wharf_codec_row *row = wharf_codec_find(codec);

    return row ? row->summary : NULL;
}
