/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_format.h: the layout of wharf containers, version 1.
 *
 * FORMAT.md is the specification; this is the same in structs.  All integers are little-endian,
 * and so are the machines that wharf runs on, so the structs are the bytes.
 *
 *   file    = member, member, ...                (`cat a b > c` makes a container of a then b)
 *   member  = file header, frame, frame, ..., end frame
 *   frame   = 64-byte header, payload, zeros up to a multiple of 16 bytes
 *
 * Every header and every payload stands at a multiple of 16 bytes from the start of the file.
 */
#ifndef WHARF_ENCODERS_CONTAINER_FORMAT_H
#define WHARF_ENCODERS_CONTAINER_FORMAT_H

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "wharf's containers are read and written by little-endian machines only"
#endif

/*
 * The first byte has its top bit set (7-bit channels clear it), CR LF and LF each alone show what
 * text mode does to line ends, and 1a stops a listing on DOS.
 */
#define WHARF_CONTAINER_MAGIC "\x89WHR\r\n\x1a\n"
#define WHARF_CONTAINER_VERSION 1
/* What wharf calls a file that it packs. */
#define WHARF_CONTAINER_SUFFIX ".whr"

enum {
    WHARF_CONTAINER_MAGIC_NBYTES = 8,
    WHARF_CONTAINER_FILE_HEADER_NBYTES = 32,
    WHARF_CONTAINER_FRAME_HEADER_NBYTES = 64,
    WHARF_CONTAINER_ALIGN = 16,

    /* Output bytes in a chunk.  A reader needs memory for one chunk's payload and output, and
     * neither can be more than the limit, whatever a file says.  128 KiB is enough for a window of
     * 32 KiB to cost little, and leaves 8000 chunks in a GiB for a GPU to work on at once. */
    WHARF_CONTAINER_CHUNK_MIN_NBYTES = 1,
    WHARF_CONTAINER_CHUNK_MAX_NBYTES = 16 << 20,
    WHARF_CONTAINER_CHUNK_DEFAULT_NBYTES = 128 << 10,

    WHARF_CONTAINER_PARAMETERS_NBYTES = 16,

    /* The index is a tree whose nodes have this many entries.  A chunk takes at least 80 bytes, so
     * a container of under 2^62 bytes has under 2^56 of them: seven levels hold 256^7. */
    WHARF_CONTAINER_FANOUT = 256,
    WHARF_CONTAINER_LEVELS = 7,
    WHARF_CONTAINER_CHUNK_MIN_FILE_NBYTES = 80,
};

/* No offset or size is more than this: it fits an off_t, and no sum of a few can wrap. */
#define WHARF_CONTAINER_OFFSET_MAX (((uint64_t)1 << 62) - 1)

/* enum wharf_container_flag: struct wharf_container_file_header.flags. */
enum wharf_container_flag {
    WHARF_CONTAINER_FLAG_TOTAL_KNOWN = 1 << 0, /* total_nbytes is the member's output size */
};

struct wharf_container_file_header {
    uint8_t magic[8];
    uint16_t version;
    uint16_t flags;
    uint32_t chunk_max_nbytes; /* no chunk of this member has more output bytes */
    uint64_t total_nbytes;     /* 0 unless FLAG_TOTAL_KNOWN */
    uint32_t reserved;         /* 0 */
    uint32_t header_crc;       /* CRC-32 of the 28 bytes before */
};

/* The markers as they stand in the file: "WCHK", "WIDX", "WEND". */
enum wharf_container_marker {
    WHARF_CONTAINER_MARKER_CHUNK = 0x4b484357,
    WHARF_CONTAINER_MARKER_INDEX = 0x58444957,
    WHARF_CONTAINER_MARKER_END = 0x444e4557,
};

/*
 * The header of every frame.  Positions and counts are the member's own (a member does not know
 * what stands before it), so members can be joined and taken apart.
 *
 *   field            chunk                     index node                end
 *   codec_or_level   enum wharf_codec          1: entries are chunks,    0
 *                                              2: they are nodes of level 1, ...
 *   payload_nbytes   compressed size           16 * number of entries    0
 *   raw_nbytes       output size, 1 or more    0                         0
 *   sequence         its number, from 0        its first chunk's number  number of chunks
 *   raw_offset       where its output begins   its first chunk's         the output's size
 *   parameters       struct                    0                         struct
 *                    wharf_container_chunk_parameters          wharf_container_end_parameters
 *   content_crc      CRC-32 of the output      CRC-32 of the payload     0
 */
struct wharf_container_frame_header {
    uint32_t marker;
    uint16_t codec_or_level;
    uint16_t flags; /* 0 */
    uint32_t payload_nbytes;
    uint32_t raw_nbytes;
    uint64_t sequence;
    uint64_t raw_offset;
    uint8_t parameters[WHARF_CONTAINER_PARAMETERS_NBYTES];
    uint32_t content_crc;
    uint32_t previous_crc; /* header_crc of the frame before, or of the file header */
    uint32_t reserved;     /* 0 */
    uint32_t header_crc;   /* CRC-32 of the 60 bytes before */
};

struct wharf_container_chunk_parameters {
    uint16_t codec_parameter; /* one of the codec's */
    uint8_t reserved[14];     /* 0 */
};

struct wharf_container_end_parameters {
    uint64_t root_offset;   /* the index's root; the chunk itself if it is the only one; else 0 */
    uint64_t member_nbytes; /* from the file header's first byte to the end frame's last */
};

/* An index entry: where a frame stands in the member, and where its first chunk's output does. */
struct wharf_container_index_entry {
    uint64_t frame_offset;
    uint64_t raw_offset;
};

#ifdef __cplusplus
#define WHARF_LAYOUT_ASSERT static_assert
#else
#define WHARF_LAYOUT_ASSERT _Static_assert
#endif
WHARF_LAYOUT_ASSERT(sizeof(struct wharf_container_file_header) == 32, "FORMAT.md says 32");
WHARF_LAYOUT_ASSERT(sizeof(struct wharf_container_frame_header) == 64, "FORMAT.md says 64");
WHARF_LAYOUT_ASSERT(sizeof(struct wharf_container_chunk_parameters) == 16, "fits parameters");
WHARF_LAYOUT_ASSERT(sizeof(struct wharf_container_end_parameters) == 16, "fits parameters");
WHARF_LAYOUT_ASSERT(sizeof(struct wharf_container_index_entry) == 16, "FORMAT.md says 16");
WHARF_LAYOUT_ASSERT(__builtin_offsetof(struct wharf_container_frame_header, parameters) == 32,
                    "FORMAT.md says 32");
WHARF_LAYOUT_ASSERT(__builtin_offsetof(struct wharf_container_frame_header, header_crc) == 60,
                    "the CRC is over the 60 bytes before it");

/* nbytes rounded up to where the next header may stand.  For nbytes up to OFFSET_MAX. */
static inline uint64_t wharf_container_pad(uint64_t nbytes)
{
    return (nbytes + WHARF_CONTAINER_ALIGN - 1) & ~(uint64_t)(WHARF_CONTAINER_ALIGN - 1);
}

#endif
