/* SPDX-License-Identifier: Apache-2.0 */
/* zstd_encode.h: what files of zstd need of libzstd's encoder beyond wharf_zstd_encoder. */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_ENCODE_H
#define WHARF_ENCODERS_ZSTD_ZSTD_ENCODE_H

#include "encoders/codec.h"

/* From now on its frames have a checksum. */
void wharf_zstd_encode_checksums(struct wharf_encoder *encoder);

#endif
