/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4_frame.h: takes files of LZ4 frames apart, as frame_piece.h says; what is in them is in
 * lz4_frame_format.h.
 */
#ifndef WHARF_ENCODERS_LZ4_LZ4_FRAME_H
#define WHARF_ENCODERS_LZ4_LZ4_FRAME_H

#include "encoders/frame_piece.h"
#include "encoders/lz4/lz4_frame_format.h"

/* The splitter of files of LZ4 frames. */
wharf_frame_next_fn wharf_lz4_frame_next;

#endif
