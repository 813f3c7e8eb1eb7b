/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_header.h: reads Deflate block headers.  Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_HEADER_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_HEADER_H

#include "encoders/deflate/inflate_state.h"

/*
 * Reads the block header at bit_pos.  Returns NONE with bit_pos behind the header, the phase that
 * of the block's body, and the tables ready; or the reason, with bit_pos and phase as they were.
 */
uint32_t wharf_inflate_header(struct wharf_inflate *inflate);

#endif
