/* SPDX-License-Identifier: Apache-2.0 */
/* stored_encode.h: the encoder that changes nothing.  It has no levels. */
#ifndef WHARF_ENCODERS_STORED_STORED_ENCODE_H
#define WHARF_ENCODERS_STORED_STORED_ENCODE_H

#include "encoders/codec.h"

extern const struct wharf_encoder_row wharf_stored_encoder_rows[];
extern const struct wharf_encoder_ops wharf_stored_encoder;

#endif
